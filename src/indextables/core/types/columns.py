"""Naming a column: paths, the leaves of a schema, and finding one by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indextables.core.types.types import DataType, Field, FieldPath, StructType
from indextables.errors import UnknownColumnError

_NAME_PART: Final = re.compile(r"((?:`((?:[^`]|``)+)`|([^`.]+))(?:\.|$))")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that holds values of its own: not a struct. Lists, maps and variants are leaves."""

    path: FieldPath
    type: DataType
    field: Field
    nullable: bool
    """True where the field or any struct around it may be NULL."""


def leaves(schema: StructType) -> Iterator[Leaf]:
    """Every field that holds values of its own, depth first, in the schema's order."""
    return _leaves(schema, (), nullable=False)


def _leaves(struct: StructType, prefix: FieldPath, *, nullable: bool) -> Iterator[Leaf]:
    for f in struct:
        path, may_be_null = (*prefix, f.name), nullable or f.nullable
        if isinstance(f.type, StructType):
            yield from _leaves(f.type, path, nullable=may_be_null)
        else:
            yield Leaf(path, f.type, f, may_be_null)


def parse_path(text: str) -> FieldPath:
    """The path a dotted name spells; backticks hold a name that itself has a dot.

    >>> parse_path("a.b"), parse_path("`a.b`.c"), parse_path("`odd``name`")
    (('a', 'b'), ('a.b', 'c'), ('odd`name',))
    """
    parts = _NAME_PART.findall(text)
    if not text or "".join(whole for whole, _, _ in parts) != text or text.endswith("."):
        raise UnknownColumnError(
            f"{text!r} is not a column name",
            hint="write nested fields as a.b, and a name that has a dot in backticks: `a.b`",
            column=text,
        )
    return tuple(quoted.replace("``", "`") if quoted else plain for _, quoted, plain in parts)


def path_text(path: FieldPath) -> str:
    """The dotted name of a path, which `parse_path` reads back.

    >>> path_text(("a.b", "c"))
    '`a.b`.c'
    """
    return ".".join(_quoted(part) if re.search(r"[.`]", part) else part for part in path)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def resolve(
    schema: StructType, path: FieldPath, *, case_sensitive: bool = False
) -> tuple[FieldPath, DataType]:
    """The path in the schema's own spelling and its type; a struct is also a column."""
    current: DataType = schema
    found: FieldPath = ()
    for part in path:
        f = _child(current, part, case_sensitive=case_sensitive)
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
            hint="spell the name as the table does",
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
