"""What a node of Catalyst means to the one above it: a column, a constant, a value, a tuple or a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from indextables.core.expr.nodes import Expression, Mode, call, refs_of
from indextables.core.predicate.nodes import (
    BoolRef,
    Call,
    Constant,
    Literal,
    Opaque,
    Predicate,
    Ref,
    Unknown,
    over,
)
from indextables.core.predicate.tree import columns_of
from indextables.core.types import DataType, Field, FieldPath, PrimitiveType, is_orderable, path_text
from indextables.engines.spark.scan.functions import Interval

_BOOLEAN: Final = PrimitiveType("boolean")


@dataclass(frozen=True, slots=True)
class Tuple:
    """Values side by side, as `(a, b)` or a struct made in the query."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column or nested field as Catalyst names it, with the type the filter sees it in."""

    ref: Ref
    field: Field
    cast: DataType | None = None
    """The type it is compared in, where Spark casts it to one that keeps its order."""

    @property
    def type(self) -> DataType:
        """Returns the type of the constants it is compared with."""
        return self.cast or self.field.type


Part: TypeAlias = Column | Literal | Call | Unknown | Interval | Tuple | Predicate
"""What a node means to the one above it; an Opaque may stand for a value that cannot be read, too."""


def value_of(part: Part) -> Expression | Interval | None:
    """Returns what a part is as an argument of a function; None for what is not understood."""
    match part:
        case Column(ref, Field(type=source), cast) as column:
            if not is_orderable(source, column.field.metadata):
                return None
            return ref if cast is None else call("cast", ref, type=cast, mode=Mode.LEGACY)
        case Opaque() | Tuple():
            return None
        case _:
            return part


def type_of(part: Part) -> DataType | None:
    """Returns the type of a part that is a value."""
    match part:
        case Column() | Literal() | Call():
            return part.type
        case _:
            return None


def side_of(part: Part) -> Ref | Call | Literal | None:
    """Returns a part as a side of a comparison."""
    found = value_of(part)
    return found if isinstance(found, Ref | Call | Literal) else None


def text_of(part: Part) -> str:
    """Returns a part as reports show it."""
    match part:
        case Column(ref):
            return path_text(ref.path)
        case Literal(value):
            return "NULL" if value is None else repr(value)
        case Opaque(text):
            return text
        case Call(function, arguments):
            return f"{function}({', '.join(text_of(argument) for argument in arguments)})"  # type: ignore[arg-type]
        case Ref(path):
            return path_text(path)
        case _:
            return type(part).__name__.lower()


def columns_in(parts: Sequence[Part]) -> tuple[FieldPath, ...]:
    """Returns the columns of these parts, each once."""
    found: dict[FieldPath, None] = {}
    for part in parts:
        match part:
            case Column(ref):
                found[ref.path] = None
            case Literal() | Interval():
                continue
            case Tuple(inner):
                found.update(dict.fromkeys(columns_in(inner)))
            case Call() | Unknown():
                found.update(dict.fromkeys(refs_of(part)))
            case _:
                found.update(dict.fromkeys(columns_of(part)))
    return tuple(found)


def condition_of(part: Part) -> Predicate:
    """Returns the part in a place where Catalyst wants a boolean."""
    match part:
        case Column(ref) as column:
            return BoolRef(ref) if column.type == _BOOLEAN else Opaque(path_text(ref.path), (ref.path,))
        case Literal(value):
            return Constant(value) if value is None or isinstance(value, bool) else Opaque(repr(value))
        case Call() | Unknown():
            return over(part, BoolRef)
        case Interval():
            return Opaque("an interval")
        case Tuple(parts):
            return Opaque("a tuple", columns_in(parts))
        case _:
            return part


def is_truth(part: Part) -> bool:
    """Returns whether a part is a condition: what has no value of its own, TRUE, FALSE or NULL."""
    match part:
        case Column() | Literal():
            return part.type == _BOOLEAN
        case Call() | Unknown() | Interval() | Tuple():
            return False
        case _:
            return True
