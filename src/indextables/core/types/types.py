"""The types a table's column can have, as a closed union of frozen values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, assert_never

from indextables.display import html_table
from indextables.errors import UnknownColumnError, UnsupportedTypeError

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
    """A named field of a struct or a schema; `metadata` is kept as it was found."""

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
        """Returns the fields' names in order."""
        return tuple(f.name for f in self.fields)

    def __str__(self) -> str:
        return "\n".join(" ".join(words).rstrip() for words in self._rows())

    def _repr_html_(self) -> str:
        return html_table("Columns", ("column", "type", ""), list(self._rows()))

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for one in self.fields:
            yield path_text((one.name,)), type_name(one.type), "" if one.nullable else "not null"


DataType: TypeAlias = PrimitiveType | DecimalType | ListType | MapType | StructType
Schema: TypeAlias = StructType

INTEGERS: Final = {"byte": 8, "short": 16, "integer": 32, "long": 64}
"""The bits of each integer type, narrowest first."""

# The metadata in which Spark keeps what the name of the JSON type does not say.
CHAR_VARCHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS: Final = "__COLLATIONS"

_SQL_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def is_float(dtype: DataType) -> bool:
    """Returns whether values of this type can be NaN."""
    return isinstance(dtype, PrimitiveType) and dtype.name in {"float", "double"}


def is_orderable(dtype: DataType, metadata: Mapping[str, object] | None = None) -> bool:
    """Returns whether bounds say anything, because every engine orders the values as this library does.

    A collated string is ordered by its collation and a CHAR is padded when it is read, so bounds of
    the stored text would be wrong for both.
    """
    match dtype:
        case DecimalType():
            return True
        case PrimitiveType(name):
            meta = metadata or {}
            is_char = str(meta.get(CHAR_VARCHAR, "")).lower().startswith("char")
            return name != "variant" and not is_char and not meta.get(COLLATIONS)
        case ListType() | MapType() | StructType():
            return False
        case _:
            assert_never(dtype)


def can_widen(old: DataType, new: DataType) -> bool:
    """Returns whether every file written as `old` reads as `new` without changing a value."""
    if old == new:
        return True
    match old, new:
        case PrimitiveType(a), PrimitiveType(b) if a in INTEGERS and b in INTEGERS:
            return INTEGERS[a] < INTEGERS[b]
        case PrimitiveType(a), PrimitiveType("double"):
            # A double cannot hold every long, and Spark cannot read one as the other.
            return a in {"byte", "short", "integer", "float"}
        case PrimitiveType(a), DecimalType(precision, scale) if a in INTEGERS:
            return precision - scale >= 20
        case DecimalType(p, s), DecimalType(precision, scale):
            return scale >= s and precision - scale >= p - s
        case PrimitiveType("date"), PrimitiveType("timestamp_ntz"):
            return True
        case StructType(), StructType():
            pairs = zip(old, new, strict=False)
            return old.names == new.names and all(can_widen(a.type, b.type) for a, b in pairs)
        case _:
            return False


def type_name(dtype: DataType) -> str:
    """Returns the type as SQL writes it.

    >>> type_name(ListType(PrimitiveType("long")))
    'array<bigint>'
    """
    match dtype:
        case PrimitiveType(name):
            return _SQL_NAMES.get(name, name)
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ListType(element):
            return f"array<{type_name(element)}>"
        case MapType(key, value):
            return f"map<{type_name(key)},{type_name(value)}>"
        case StructType(fields):
            return f"struct<{','.join(f'{f.name}:{type_name(f.type)}' for f in fields)}>"
        case _:
            assert_never(dtype)


def type_of_name(name: str) -> DataType:
    """Returns the type SQL writes so; UnsupportedTypeError for one that is no single value.

    >>> type_of_name("decimal(10, 2)"), type_of_name("bigint")
    (DecimalType(precision=10, scale=2), PrimitiveType(name='long'))
    """
    bare = "".join(name.lower().split())
    if found := re.fullmatch(r"(?:decimal|numeric)(?:\((\d+)(?:,(\d+))?\))?", bare):
        return DecimalType(int(found[1] or 10), int(found[2] or 0))
    names = {sql: ours for ours, sql in _SQL_NAMES.items()}
    ours = names.get(bare, bare)
    known = {
        *INTEGERS,
        "boolean",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
        "binary",
    }
    if ours not in known:
        raise UnsupportedTypeError(
            f"{name!r} is not the name of a type a value can be cast to",
            hint=f"the names are: {', '.join(sorted({_SQL_NAMES.get(n, n) for n in known}))}, decimal(p,s)",
        )
    return PrimitiveType(ours)  # type: ignore[arg-type]


# Columns by name: paths, the leaves of a schema, and looking one up.

_NAME: Final = re.compile(r"((?:`((?:[^`]|``)+)`|([^`.]+))(?:\.|$))")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that holds values of its own, so not a struct; lists, maps and variants are leaves."""

    path: FieldPath
    type: DataType
    field: Field
    nullable: bool
    """True where the field or any struct around it may be NULL."""


def leaves(schema: StructType) -> Iterator[Leaf]:
    """Returns every field that holds values of its own, depth first in the schema's order."""
    return _leaves(schema, (), nullable=False)


def _leaves(struct: StructType, prefix: FieldPath, *, nullable: bool) -> Iterator[Leaf]:
    for f in struct:
        path, may_be_null = (*prefix, f.name), nullable or f.nullable
        if isinstance(f.type, StructType):
            yield from _leaves(f.type, path, nullable=may_be_null)
        else:
            yield Leaf(path, f.type, f, may_be_null)


def has_text(kind: DataType) -> bool:
    """Returns True if values of this type have text in them, at any depth."""
    match kind:
        case StructType():
            return any(has_text(field.type) for field in kind)
        case ListType(element=element):
            return has_text(element)
        case MapType(key=key, value=value):
            return has_text(key) or has_text(value)
        case _:
            return kind == PrimitiveType("string")


def parse_path(text: str) -> FieldPath:
    """Returns the path that a dotted name spells; a name that has a dot itself is in backticks.

    >>> parse_path("a.b"), parse_path("`a.b`.c"), parse_path("`odd``name`")
    (('a', 'b'), ('a.b', 'c'), ('odd`name',))
    """
    names = _NAME.findall(text)
    if not text or "".join(whole for whole, _, _ in names) != text or text.endswith("."):
        raise UnknownColumnError(
            f"{text!r} is not a column name",
            hint="write a nested field as a.b; put a name that has a dot itself in backticks: `a.b`",
            column=text,
        )
    return tuple(quoted.replace("``", "`") if quoted else plain for _, quoted, plain in names)


def path_text(path: FieldPath) -> str:
    """Returns the dotted name of a path, which `parse_path` reads back.

    >>> path_text(("a.b", "c"))
    '`a.b`.c'
    """
    return ".".join(_quoted(name) if re.search(r"[.`]", name) else name for name in path)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def resolve(
    schema: StructType, path: FieldPath, *, case_sensitive: bool = False
) -> tuple[FieldPath, DataType]:
    """Returns the path as the schema spells it, and its type; a struct can be looked up, too."""
    current: DataType = schema
    found: FieldPath = ()
    for name in path:
        f = _child(current, name, case_sensitive=case_sensitive)
        if f is None:
            raise _unknown(schema, path)
        found, current = (*found, f.name), f.type
    return found, current


def _child(parent: DataType, name: str, *, case_sensitive: bool) -> Field | None:
    if not isinstance(parent, StructType):
        return None
    exact = [f for f in parent if f.name == name]
    if exact or case_sensitive:
        return exact[0] if exact else None
    similar = [f for f in parent if f.name.lower() == name.lower()]
    if len(similar) > 1:
        raise UnknownColumnError(
            f"column {name!r} is ambiguous: it could be {' or '.join(repr(f.name) for f in similar)}",
            hint="spell the name exactly as the table does",
            column=name,
        )
    return similar[0] if similar else None


def _unknown(schema: StructType, path: FieldPath) -> UnknownColumnError:
    wanted = path_text(path)
    known = [*((name,) for name in schema.names), *(leaf.path for leaf in leaves(schema))]
    names = list(dict.fromkeys(map(path_text, known)))
    close = difflib.get_close_matches(wanted.lower(), {name.lower(): name for name in names}, n=1)
    close = [name for name in names if name.lower() in close]
    listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    hint = f"did you mean {close[0]!r}?" if close else f"the columns are: {listed}"
    return UnknownColumnError(f"no column {wanted!r}", hint=hint, column=wanted)
