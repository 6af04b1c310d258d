"""A few short adds as the parser left them: a column is made of them when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import NoneType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from indextables.log.bulk import Run
from indextables.log.lenient import Place
from indextables.log.rows import add_row, sound, sound_stats, stats_object, types_below
from indextables.log.segments import FIELDS, Shape

_ROWS: Final = 256
_BYTES: Final = 64 << 10
"""Up to so much text, objects of Python are there sooner than the columns of Arrow's parser."""
_BEFORE: Final = len(b'{"add":')
_AFTER: Final = len(b"}\n")

_NATURAL: Final[Mapping[Any, frozenset[type]]] = {
    pa.int64(): frozenset({int, NoneType}),
    pa.float64(): frozenset({float, NoneType}),
    pa.bool_(): frozenset({bool, NoneType}),
    pa.string(): frozenset({str, NoneType}),
}
"""What JSON has for a value of an Arrow type; any other value is looked at on its own."""
_TEXT: Final = _NATURAL[pa.string()]
_OBJECT: Final[frozenset[type]] = frozenset({dict, NoneType})

_TYPES: Final[Mapping[str, frozenset[type]]] = {
    **{field: _NATURAL.get(kind, _OBJECT) for _, field, kind in FIELDS},
    "path": frozenset({str}),
}
_INTEGERS: Final = tuple(column for column, _, kind in FIELDS if kind == pa.int64())
_FIELD_OF: Final = {column: (field, kind) for column, field, kind in FIELDS}
_CHECKED: Final = Place("", 0)
"""A line in which nothing is wrong that a message would have to name it for."""

Columns: TypeAlias = Mapping[str, Sequence[Any]]


class RowTable:
    """Adds of one shape, with what `Segment` needs of an Arrow table.

    Everything about them but their statistics is known to be as it should be. A column has the values that
    the parser in bulk would have read, so that it makes no difference which of the two read a commit.
    """

    def __init__(self, shape: Shape, adds: Sequence[dict[str, Any]], made: Mapping[str, Any]) -> None:
        self._shape = shape
        self._adds = adds
        self._made = {name: _chunked(column) for name, column in made.items()}
        self._leaves: dict[tuple[str, ...], Any] = {}

    @classmethod
    def of(cls, run: Run, shape: Shape, keys_of: Callable[[Any], Any]) -> RowTable | None:
        """These lines; None unless they are few, a checksum vouches for them, and all are as ours are.

        `keys_of` makes keys of an array of paths, and raises for one that is no file of this table.
        """
        if not 0 < len(run) <= _ROWS or len(run.raw) > _BYTES or not run.trusted:
            return None
        adds = _bodies(run)
        if adds is None:
            return None
        columns = _columns(adds)
        if "path" not in columns or not _fit(columns, _TYPES) or not _are_partitions(columns, shape):
            return None
        try:
            made = {name: _integers(columns, name, run) for name in _INTEGERS}
        except OverflowError:
            return None
        return cls(shape, adds, {"key": keys_of(pa.array(columns["path"], pa.string())), **made})

    @property
    def num_rows(self) -> int:
        """The number of rows, dead ones included."""
        return len(self._adds)

    @property
    def schema(self) -> Any:
        """The Arrow schema of `whole`."""
        return self._shape.columns()

    def column(self, name: str) -> Any:
        """One column; kept, because it is asked for again and again."""
        if name not in self._made:
            self._made[name] = _chunked(self._make(name))
        return self._made[name]

    def leaf(self, path: tuple[str, ...]) -> Any:
        """One part of the statistics, without a look at the others."""
        if path not in self._leaves:
            self._leaves[path] = _chunked(self._leaf(path))
        return self._leaves[path]

    def take(self, rows: npt.NDArray[np.int64]) -> Any:
        """These rows, as a table in memory."""
        made = {name: column.take(rows) for name, column in self._made.items()}
        return RowTable(self._shape, [self._adds[row] for row in rows.tolist()], made).whole()

    def filter(self, mask: Any) -> Any:
        """The rows where the mask is set, as a table in memory."""
        return self.whole().filter(mask)

    def set_column(self, index: int, name: Any, column: Any) -> Any:
        """A table in memory with one column replaced."""
        return self.whole().set_column(index, name, column)

    def whole(self) -> Any:
        """All columns of all rows, as a table in memory."""
        return pa.table([self.column(name) for name in self.schema.names], schema=self.schema)

    def _make(self, name: str) -> Any:
        match name:
            case "extra":
                extras = [add_row(add, self._shape, _CHECKED).extra for add in self._adds]
                return pa.array(extras, pa.string())
            case "stats":
                return self._struct(name, [sound_stats(stats, self._shape) for stats in self._stats])
            case "partition_values":
                return self._struct(name, [_no_empty(add.get("partitionValues")) for add in self._adds])
            case "data_change":  # of another writer who does not say: a file comes with rows
                return pa.array([add.get("dataChange") is not False for add in self._adds])
            case _:
                field, kind = _FIELD_OF[name]
                return pa.array([add.get(field) for add in self._adds], kind)

    def _struct(self, column: str, values: list[Any]) -> Any:
        layout = self._shape.layout.parts[_FIELD_OF[column][0]]
        return layout.hollow_is_null(pa.array(values, layout.kind))

    @cached_property
    def _stats(self) -> list[Mapping[str, Any] | None]:
        """The statistics, without bounds of which it is not known if they are prefixes."""
        return [stats_object(add.get("stats"), _CHECKED)[0] for add in self._adds]

    def _leaf(self, path: tuple[str, ...]) -> Any:
        values: list[Any] = list(self._stats)
        layout, dtype = self._shape.layout.parts["stats"], None
        for depth, name in enumerate(path):
            values = [value.get(name) if type(value) is dict else None for value in values]
            layout = layout.parts[name]
            dtype = types_below(dtype).get(name) if depth else self._shape.schema
        kind = layout.kind
        if {*map(type, values)} <= _NATURAL.get(kind, frozenset()):
            try:
                return pa.array(values, kind)
            except OverflowError:
                pass  # an integer that 64 bits do not hold
        return pa.array([sound(value, kind, dtype) for value in values], kind)


def _bodies(run: Run) -> list[dict[str, Any]] | None:
    """The add of each line; None if a line is anything else."""
    starts, ends = run.at[:-1] + _BEFORE, run.at[1:] - _AFTER
    if (np.frombuffer(run.raw, np.uint8)[ends] != ord("}")).any():
        return None
    spans, text = zip(starts.tolist(), ends.tolist(), strict=True), run.raw
    try:
        adds = [orjson.loads(text[start:end]) for start, end in spans]
    except orjson.JSONDecodeError:
        return None
    return adds if {*map(type, adds)} == {dict} else None


def _columns(objects: Sequence[dict[str, Any]]) -> Columns:
    """The members of these objects by name; None where an object lacks one."""
    forms = {*map(tuple, objects)}
    if len(forms) == 1:  # as in nearly every commit
        return dict(zip(forms.pop(), zip(*map(dict.values, objects), strict=True), strict=True))
    names = {name for form in forms for name in form}
    return {name: [value.get(name) for value in objects] for name in names}


def _fit(columns: Columns, types: Mapping[str, frozenset[type]]) -> bool:
    """True if each name is known and all its values are of a type that it may have."""
    return all({*map(type, values)} <= types.get(name, set()) for name, values in columns.items())


def _are_partitions(columns: Columns, shape: Shape) -> bool:
    given = [values for values in columns.get("partitionValues", ()) if values]
    return not given or _fit(_columns(given), dict.fromkeys(shape.partition_columns, _TEXT))


def _integers(columns: Columns, name: str, run: Run) -> Any:
    """A column of integers; an add without a `seq`, of another writer, has that of its commit."""
    field, kind = _FIELD_OF[name]
    values = columns.get(field) or [None] * len(run)
    if name == "seq" and None in values:
        versions = run.versions.tolist()
        values = [v if seq is None else seq for seq, v in zip(values, versions, strict=True)]
    return pa.array(values, kind)


def _no_empty(values: Mapping[str, str | None] | None) -> Mapping[str, str | None] | None:
    """Spark stores an empty text as NULL, so here it is NULL too."""
    if values is None or "" not in values.values():
        return values
    return {name: value or None for name, value in values.items()}


def _chunked(array: Any) -> Any:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
