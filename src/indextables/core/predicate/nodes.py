"""Conditions on rows, as a closed union of frozen nodes.

A node never evaluates itself: `core.bind` resolves names and coerces literals, `core.prune`
evaluates the result over all splits at once. What cannot be read becomes `Opaque`, which keeps
every split and is therefore always safe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NoReturn, TypeAlias, assert_never
from typing import Literal as OneOf

from indextables.core.expr.nodes import Call, Condition, Literal, Ref, Unknown
from indextables.core.types import FieldPath

__all__ = [
    "RESULT",
    "And",
    "BoolRef",
    "Call",
    "Compare",
    "CompareOp",
    "Constant",
    "IsIn",
    "IsNan",
    "IsNull",
    "IsTrue",
    "Literal",
    "NanRule",
    "Node",
    "Not",
    "Opaque",
    "Operand",
    "Or",
    "Over",
    "Predicate",
    "Ref",
    "StartsWith",
    "Unknown",
    "over",
]

CompareOp: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">=", "<=>"]


class NanRule(Enum):
    """What a comparison with NaN means."""

    SPARK = "spark"  # NaN equals itself and is greater than every number
    IEEE = "ieee"  # NaN equals nothing: every comparison is FALSE, only <> is TRUE


class Node(Condition):
    """Shared by all nodes: a condition has no truth value of its own."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition is not true or false by itself; combine conditions with &, | and ~, "
            "not with and, or and not"
        )

    def __and__(self, other: Predicate) -> And:
        if not isinstance(other, Node):
            return NotImplemented
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: Predicate) -> Or:
        if not isinstance(other, Node):
            return NotImplemented
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Not:
        return Not(self)  # type: ignore[arg-type]


def _parts(node: Any, kind: type[Any]) -> tuple[Predicate, ...]:
    """Returns what a node adds to an AND or OR: chains stay flat, so that long ones never get deep."""
    return node.children if isinstance(node, kind) else (node,)


Operand: TypeAlias = Ref | Literal | Call | Unknown
"""One side of a comparison. A bound condition has a Call only where two sides are computed."""


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`left op right`; at least one side is no constant."""

    op: CompareOp
    left: Operand
    right: Operand
    nan: NanRule = NanRule.SPARK


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """`ref IS NULL`; IS NOT NULL is its Not."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class IsNan(Node):
    """`isnan(ref)`: TRUE for NaN, FALSE for NULL and every number."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class IsIn(Node):
    """`ref IN (values…)`; a None among the values is SQL's NULL."""

    ref: Ref
    values: tuple[Literal, ...]
    nan: NanRule = NanRule.SPARK


@dataclass(frozen=True, slots=True)
class StartsWith(Node):
    """The text begins with `prefix`; `exact` is False where the real condition says more.

    LIKE 'p%' is exact. LIKE 'p%q' is not: a row that starts with p may still be FALSE. `pattern` is
    then the whole LIKE pattern with backslash as its escape character, `regex` that of an RLIKE, in Java's syntax.
    """

    ref: Ref
    prefix: str | bytes
    exact: bool = True
    pattern: str | None = None
    regex: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class BoolRef(Node):
    """A boolean column standing as a condition."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """TRUE, FALSE or NULL (None)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class And(Node):
    """All of them; AND of nothing is TRUE."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """At least one of them; OR of nothing is FALSE."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """NULL stays NULL."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class IsTrue(Node):
    """`child IS TRUE`: TRUE where the child is TRUE, otherwise FALSE, never NULL."""

    child: Predicate


RESULT: Final = Ref(("",))
"""Stands in the condition of an `Over` for the value of its expression."""


@dataclass(frozen=True, slots=True)
class Over(Node):
    """A condition on the value of a function, which stands in it as `RESULT`."""

    expression: Call
    condition: Predicate


@dataclass(frozen=True, slots=True)
class Opaque(Node):
    """A condition that statistics cannot answer; `text` says which, `columns` which it reads.

    `why` is the reason in words. `condition` is there where rows can still be compared one by one
    (an int column against a double column, say); the pruner never looks at it.
    """

    text: str
    columns: tuple[FieldPath, ...] = ()
    why: str = field(default="", compare=False)
    condition: Predicate | None = field(default=None, compare=False)


Predicate: TypeAlias = (
    Compare
    | IsNull
    | IsNan
    | IsIn
    | StartsWith
    | BoolRef
    | Constant
    | And
    | Or
    | Not
    | IsTrue
    | Over
    | Opaque
)


def over(expression: Ref | Call | Unknown, condition: Callable[[Ref], Predicate]) -> Predicate:
    """Returns a condition on a value, whatever kind of value it is.

    >>> over(Call("year", (Ref(("ts",)),)), IsNull).condition == IsNull(RESULT)
    True
    """
    match expression:
        case Ref():
            return condition(expression)
        case Call():
            return Over(expression, condition(RESULT))
        case Unknown(text, columns, why):
            return Opaque(text, columns, why)
        case _:
            assert_never(expression)
