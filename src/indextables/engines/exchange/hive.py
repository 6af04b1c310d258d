"""Hive's search arguments: numbered leaves, and an expression over them.

The form is the one of `SearchArgument` and `PredicateLeaf` as plain data:
`{"leaves": [{"operator": "LESS_THAN", "column": "a", "literal": 5}, …], "expression": …}`, where an
expression is `{"leaf": 0}`, `{"operator": "AND" | "OR" | "NOT", "children": […]}` or
`{"constant": "YES" | "NO" | "NULL" | "YES_NO_NULL"}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from indextables.core.domain.column_domain import ColumnDomain
from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
)
from indextables.core.predicate.tree import fold
from indextables.core.types import parse_path, path_text
from indextables.errors import PredicateError

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "EQUALS": "=",
    "NULL_SAFE_EQUALS": "<=>",
    "LESS_THAN": "<",
    "LESS_THAN_EQUALS": "<=",
}
_CONSTANTS: Final[dict[str, bool | None]] = {"YES": True, "NO": False, "NULL": None}


def from_search_argument(argument: Mapping[str, Any]) -> Predicate:
    """Returns the condition a search argument is; PredicateError for a form Hive does not have."""
    leaves = [_leaf(each) for each in argument["leaves"]]
    return _expression(argument["expression"], leaves)


def _expression(tree: Mapping[str, Any], leaves: Sequence[Predicate]) -> Predicate:
    match tree:
        case {"leaf": int(number)} if 0 <= number < len(leaves):
            return leaves[number]
        case {"constant": str(name)}:
            known = name in _CONSTANTS
            return Constant(_CONSTANTS[name]) if known else Opaque(name, (), "Hive leaves it open")
        case {"operator": "AND", "children": children}:
            return And(tuple(_expression(child, leaves) for child in children))
        case {"operator": "OR", "children": children}:
            return Or(tuple(_expression(child, leaves) for child in children))
        case {"operator": "NOT", "children": [child]}:
            return Not(_expression(child, leaves))
        case _:
            raise PredicateError(
                f"{tree!r} is no expression of a search argument",
                hint='write {"leaf": 0}, or {"operator": "AND", "children": […]}',
            )


def _leaf(leaf: Mapping[str, Any]) -> Predicate:
    ref = Ref(parse_path(leaf["column"]))
    values = tuple(Literal(value) for value in leaf.get("literals", ()))
    match leaf["operator"]:
        case "IS_NULL":
            return IsNull(ref)
        case "IN":
            return IsIn(ref, values)
        case "BETWEEN" if len(values) == 2:
            return Compare(">=", ref, values[0]) & Compare("<=", ref, values[1])
        case str(name) if name in _COMPARISONS and "literal" in leaf:
            return Compare(_COMPARISONS[name], ref, Literal(leaf["literal"]))
        case _:
            raise PredicateError(
                f"{leaf!r} is no leaf of a search argument",
                hint="operators are EQUALS, NULL_SAFE_EQUALS, LESS_THAN, LESS_THAN_EQUALS, IN, BETWEEN, IS_NULL",
            )


def to_search_argument(condition: Predicate | ColumnDomain) -> dict[str, Any]:
    """Returns the condition as a search argument, TRUE for every row it is TRUE for.

    Exact where Hive can say it.
    """
    predicate = condition.to_predicate() if isinstance(condition, ColumnDomain) else condition
    leaves: list[dict[str, Any]] = []

    def visit(node: Predicate, inner: tuple[Any, ...]) -> Any:
        match node:
            case And() | Or():
                return {"operator": type(node).__name__.upper(), "children": list(inner)}
            case Not():
                return {"operator": "NOT", "children": list(inner)}
            case Constant(value):
                names = {known: name for name, known in _CONSTANTS.items()}
                return {"constant": names[value]}
            case _:
                return _leaf_tree(node, leaves)

    return {"expression": fold(predicate, visit), "leaves": leaves}


def _leaf_tree(node: Predicate, leaves: list[dict[str, Any]]) -> Any:
    match node:
        case Compare(">" | ">=" | "<>" as op, Ref() as ref, Literal() as value, nan):
            opposite: CompareOp = {">": "<=", ">=": "<", "<>": "="}[op]  # type: ignore[assignment]
            positive = _leaf_tree(Compare(opposite, ref, value, nan), leaves)
            return {"operator": "NOT", "children": [positive]}
        case Compare(op, Ref(path), Literal(value)) if op in _COMPARISONS.values():
            name = next(name for name, known in _COMPARISONS.items() if known == op)
            return _number({"operator": name, "column": path_text(path), "literal": value}, leaves)
        case IsIn(Ref(path), values) if values:
            literals = [value.value for value in values]
            return _number({"operator": "IN", "column": path_text(path), "literals": literals}, leaves)
        case IsNull(Ref(path)):
            return _number({"operator": "IS_NULL", "column": path_text(path)}, leaves)
        case _:
            return {"constant": "YES_NO_NULL"}


def _number(leaf: dict[str, Any], leaves: list[dict[str, Any]]) -> dict[str, int]:
    if leaf not in leaves:
        leaves.append(leaf)
    return {"leaf": leaves.index(leaf)}
