"""Conditions in one short line, for tables of cases."""

from __future__ import annotations

from indextables.core.expr.nodes import Expression
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    BoolRef,
    Call,
    Compare,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Opaque,
    Or,
    Over,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
)
from indextables.core.predicate.tree import fold
from indextables.core.types import path_text, type_name


def shape(predicate: Predicate) -> str:
    """Nodes as (name parts…), columns by their path, constants as Python writes them."""
    return fold(predicate, _shape)


def _shape(node: Predicate, inner: tuple[str, ...]) -> str:
    match node:
        case Compare(op, left, right):
            return f"({op} {_operand(left)} {_operand(right)})"
        case IsNull(ref):
            return f"(null {_operand(ref)})"
        case IsNan(ref):
            return f"(nan {_operand(ref)})"
        case BoolRef(ref):
            return f"(bool {_operand(ref)})"
        case IsIn(ref, values):
            return f"({' '.join(['in', _operand(ref), *map(_operand, values)])})"
        case StartsWith(ref, prefix, exact, pattern):
            rest = (
                ""
                if exact
                else f" of {pattern!r}"
                if node.regex is None
                else f" of regex {node.regex!r}"
            )
            return f"(prefix {_operand(ref)} {prefix!r}{rest})"
        case Constant(value):
            return str(value)
        case Opaque(text, columns):
            return f"({' '.join(['opaque', repr(text), *map(path_text, columns)])})"
        case Over(expression, condition):
            return f"(over {_operand(expression)} {shape(condition)})"
        case And() | Or() | Not() | IsTrue():
            return f"({' '.join([type(node).__name__.lower(), *inner])})"


def _operand(operand: Expression) -> str:
    match operand:
        case Ref(path):
            return "_" if operand == RESULT else path_text(path)
        case Literal(value):
            return repr(value)
        case Call(function, arguments, dtype):
            to = [type_name(dtype)] if function == "cast" else []
            return f"({' '.join([function, *map(_operand, arguments), *to])})"
        case Unknown(text):
            return f"(unknown {text!r})"
        case _:
            return shape(operand)


def read_cases(text: str) -> list[tuple[str, ...]]:
    """The lines of a case file: fields between ` ## `, comments after a leading #."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split(" ## ")) for line in lines]
