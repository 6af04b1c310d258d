"""The types a table's column can have, as a closed union of frozen values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

FieldPath: TypeAlias = tuple[str, ...]
"""A column or a nested field: ("a",) is column a, ("a", "b") is field b of struct a."""

PrimitiveName: TypeAlias = Literal[
    "boolean",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "string",
    "binary",
    "variant",
]


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters, by Spark's name for it in a JSON schema."""

    name: PrimitiveName


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ListType:
    """A sequence of values of one type."""

    element: DataType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    """Pairs of a key and a value."""

    key: DataType
    value: DataType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    """A named, possibly nullable part of a struct; `metadata` is kept as it was found."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields in order; a table's schema is one of these."""

    fields: tuple[Field, ...]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names in order."""
        return tuple(f.name for f in self.fields)


DataType: TypeAlias = PrimitiveType | DecimalType | ListType | MapType | StructType
Schema: TypeAlias = StructType
