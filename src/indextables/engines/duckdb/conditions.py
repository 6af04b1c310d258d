"""The filters DuckDB offers to a scan as conditions.

They come from DuckDB's optimiser: comparisons of a column with a constant of exactly the column's
type, under AND, OR and NOT. The classes are private to DuckDB, so this reads them by name and shape.
"""

from __future__ import annotations

from typing import Any, Final

from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    IsIn,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
)
from indextables.core.types import PrimitiveType

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "=": "=",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_DEEPEST: Final = 200


def predicate_of(node: Any, depth: int = 0) -> Predicate:
    """Returns the condition a filter is; Opaque for a form that is not known."""
    match type(node).__name__:
        case _ if depth > _DEEPEST:
            return Opaque("a deep condition", (), "it is too deep")
        case "Binary" if node.op in {"AND", "OR"}:
            sides = (predicate_of(node.left, depth + 1), predicate_of(node.right, depth + 1))
            return And(sides) if node.op == "AND" else Or(sides)
        case "Binary" if node.op in _COMPARISONS and _is_column(node.left) and _is_value(node.right):
            return Compare(_COMPARISONS[node.op], Ref(tuple(node.left.parts)), _literal(node.right))
        case "Unary" if node.op == "NOT":
            return Not(predicate_of(node.operand, depth + 1))
        case "Postfix" if _is_column(node.operand) and node.op in {"IS NULL", "IS NOT NULL"}:
            found = IsNull(Ref(tuple(node.operand.parts)))
            return found if node.op == "IS NULL" else Not(found)
        case "In" if _is_column(node.operand) and node.values and all(map(_is_value, node.values)):
            return IsIn(Ref(tuple(node.operand.parts)), tuple(map(_literal, node.values)))
        case _:
            return Opaque(node.fragment(), (), "DuckDB's form of it is not known")


def _is_column(node: Any) -> bool:
    return type(node).__name__ == "Col"


def _is_value(node: Any) -> bool:
    return type(node).__name__ == "Lit"


def _literal(node: Any) -> Literal:
    # an instant comes as microseconds
    zoned = node.type == "TIMESTAMP WITH TIME ZONE"
    return Literal(node.value, PrimitiveType("timestamp") if zoned else None)
