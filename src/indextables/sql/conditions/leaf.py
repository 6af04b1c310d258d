"""Comparisons of columns, constants and whole conditions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from indextables.core.predicate.nodes import (
    Compare,
    CompareOp,
    Constant,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Operand,
    Predicate,
    Ref,
)

COMPARISONS: Final[dict[str, CompareOp]] = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    "!>": "<=",
    ">": ">",
    ">=": ">=",
    "!<": ">=",
}
"""What Spark writes for each comparison."""

_FLIPPED: Final[dict[CompareOp, CompareOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FUNCTIONS: Final[dict[CompareOp, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(op: CompareOp, left: Operand, right: Operand) -> Predicate | None:
    """`left op right` with a column on the left; two constants are compared at once if that is sure."""
    match left, right:
        case Ref(), _:
            return Compare(op, left, right)
        case Literal(), Ref():
            return Compare(_FLIPPED.get(op, op), right, left)
        case Literal(a), Literal(b):
            return _compare_constants(op, a, b)
    return None


def _compare_constants(op: CompareOp, a: Any, b: Any) -> Predicate | None:
    if a is None or b is None:
        return Constant(a is b) if op == "<=>" else Constant(None)
    exact = isinstance(a, int | Decimal) and isinstance(b, int | Decimal)
    if type(a) is type(b) and type(a) in {bool, int, Decimal, str, bytes}:
        return Constant(_FUNCTIONS[op](a, b))
    return Constant(_FUNCTIONS[op](a, b)) if exact and bool not in {type(a), type(b)} else None


def is_word_of(operand: Operand, word: str) -> Predicate | None:
    """`operand IS word` for a column or constant."""
    match operand, word:
        case Ref(), "NULL" | "UNKNOWN":
            return IsNull(operand)
        case Ref(), _:
            return Compare("<=>", operand, Literal(word == "TRUE"))
        case Literal(value), "NULL":
            return Constant(value is None)
        case Literal(None | bool() as value), _:
            return Constant(value is {"UNKNOWN": None, "TRUE": True, "FALSE": False}[word])
    return None


def against_truth(op: CompareOp, inner: Predicate | None, truth: bool) -> Predicate | None:
    """`condition op TRUE` and `condition op FALSE`."""
    if inner is None:
        return None
    agrees = inner if truth else Not(inner)
    match op:
        case "=":
            return agrees
        case "<>":
            return Not(agrees)
        case "<=>":
            return IsTrue(agrees)
        case _:
            return None
