"""PyArrow's expressions taken apart and put together again.

An expression shows nothing of itself, but it can be pickled: as an Arrow file whose schema metadata
spells the tree in prefix order (`call` … `end`, `field_ref`, `literal`, `options`), and whose columns
are the literals and the options of functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.types import FieldPath

Pair: TypeAlias = tuple[str, str]
_NULL: Final = pa.nulls(1, pa.bool_())  # pa.array() of a list would load pandas


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A column or nested field; `()` for one that is given by its position instead of its name."""

    path: FieldPath
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A literal."""

    scalar: pa.Scalar
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other expressions; `options` is a struct scalar or None."""

    name: str
    arguments: tuple[Tree, ...]
    options: Any
    options_pair: tuple[Pair, ...] = ()

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Returns the call in the spelling of its expression."""
        inner = tuple(pair for argument in self.arguments for pair in argument.pairs)
        return (("call", self.name), *inner, *self.options_pair, ("end", self.name))


Tree: TypeAlias = FieldRef | Value | Call


@dataclass(frozen=True, slots=True)
class Taken:
    """The tree of an expression, and the columns that its literals are in."""

    tree: Tree
    columns: pa.RecordBatch

    @property
    def null(self) -> Value:
        """Returns a NULL literal that any other tree passed to `expression` may use."""
        return Value(_NULL[0], (("literal", str(self.columns.num_columns)),))

    def expression(self, tree: Tree) -> pc.Expression:
        """Returns the expression of another tree over the same literals."""
        metadata = pa.KeyValueMetadata([(k.encode(), v.encode()) for k, v in tree.pairs])
        fields = [*self.columns.schema, pa.field("", pa.bool_())]
        batch = pa.RecordBatch.from_arrays(
            [*self.columns.columns, _NULL], schema=pa.schema(fields, metadata=metadata)
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return pc.Expression._deserialize(sink.getvalue())  # noqa: SLF001 - what unpickling calls


def take_apart(expression: pc.Expression) -> Taken | None:
    """Returns the tree of an expression; None if PyArrow cannot write it down or does so in an unknown way."""
    try:
        _, (serialized, *_) = expression.__reduce__()
        return _taken(serialized.to_pybytes())
    except (StopIteration, ValueError, IndexError, RecursionError, pa.ArrowException):
        return None


@lru_cache(maxsize=16)
def _taken(serialized: bytes) -> Taken:
    # Cached because DataFusion passes one filter for each file; by bytes, because for `equals` -0.0 is 0.0.
    reader = pa.ipc.open_file(pa.py_buffer(serialized))
    columns = reader.get_batch(0)
    pairs = iter(_metadata_pairs(reader.schema))
    return Taken(_tree(next(pairs), pairs, columns), columns)


def _tree(pair: Pair, rest: Iterator[Pair], columns: pa.RecordBatch) -> Tree:
    match pair:
        case ("field_ref", name):
            return FieldRef((name,), (pair,))
        case ("nested_field_ref", count):
            parts = tuple(next(rest) for _ in range(int(count)))
            named = all(key == "field_ref" for key, _ in parts)
            return FieldRef(tuple(name for _, name in parts) if named else (), (pair, *parts))
        case ("literal", index):
            return Value(columns.column(int(index))[0], (pair,))
        case ("call", name):
            return _call(name, rest, columns)
        case _:
            raise ValueError(f"unknown piece of an expression: {pair}")


def _call(name: str, rest: Iterator[Pair], columns: pa.RecordBatch) -> Call:
    arguments: list[Tree] = []
    options: pa.StructScalar | None = None
    options_pair: tuple[Pair, ...] = ()
    for pair in rest:
        match pair:
            case ("end", _):
                return Call(name, tuple(arguments), options, options_pair)
            case ("options", index):
                options, options_pair = columns.column(int(index))[0], (pair,)
            case _:
                arguments.append(_tree(pair, rest, columns))
    raise ValueError(f"the call of {name} does not end")


class _CSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


def _metadata_pairs(schema: pa.Schema) -> list[Pair]:
    # schema.metadata is a dict, so it keeps only one of the keys that repeat
    exported = _CSchema()
    schema._export_to_c(ctypes.addressof(exported))  # noqa: SLF001 - Arrow's C interface
    try:
        return list(_c_metadata(exported.metadata))
    finally:
        pa.Schema._import_from_c(ctypes.addressof(exported))  # noqa: SLF001 - releases it


def _c_metadata(address: int | None) -> Iterator[Pair]:
    """Yields the pairs of Arrow's C form: their number, then each text after its length."""
    if address is None:
        return
    position = address + 4
    for _ in range(_int32(address)):
        texts = []
        for _ in range(2):
            length = _int32(position)
            texts.append(ctypes.string_at(position + 4, length).decode())
            position += 4 + length
        yield texts[0], texts[1]


def _int32(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
