"""Conditions on rows, as a closed union of frozen nodes.

A node never evaluates itself: `core.bind` resolves names and coerces literals, `core.prune`
evaluates the result over all splits at once. What cannot be read becomes `Opaque`, which keeps
every split and is therefore always safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn, TypeAlias
from typing import Literal as OneOf

from indextables.core.types import DataType, FieldPath

CompareOp: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">=", "<=>"]


class NanRule(Enum):
    """What a comparison with NaN means."""

    SPARK = "spark"  # NaN equals itself and is greater than every number
    IEEE = "ieee"  # NaN equals nothing: every comparison is FALSE, only <> is TRUE


class Node:
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


@dataclass(frozen=True, slots=True)
class Ref:
    """A column or nested field, by its path as the user wrote it."""

    path: FieldPath


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a natural Python value (None for NULL) and its SQL type where it is known.

    Python values: bool, int, float, Decimal, str, bytes, datetime.date, datetime.datetime (naive =
    timestamp_ntz, aware = timestamp). Dates and timestamps outside years 1-9999 come as `int` (days,
    microseconds) together with their type.
    """

    value: Any
    type: DataType | None = None


Operand: TypeAlias = Ref | Literal


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`left op right`; at least one side is a Ref."""

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
    then the whole LIKE pattern with backslash as its escape character.
    """

    ref: Ref
    prefix: str | bytes
    exact: bool = True
    pattern: str | None = None


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
    Compare | IsNull | IsNan | IsIn | StartsWith | BoolRef | Constant | And | Or | Not | IsTrue | Opaque
)
