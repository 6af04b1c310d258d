"""Rows matched by their record key, whatever its columns are; never one row after the other.

Keys are equal if all their columns are; NULL counts as a value. Both sides of a match have the same
types: the reader gives the table's current ones, however old the file is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The distinct keys of some rows, numbered from 0; other rows are looked up in it.

    `keys` everywhere is a Table or RecordBatch of the key columns alone, always in the same order.
    """

    numbers: Numbers
    """For each row, the number of its key."""
    size: int
    """How many distinct keys there are."""
    _columns: tuple[pa.Array, ...]
    """The distinct values of each column: a value's place among them is its code."""
    _pairs: tuple[Numbers, ...]
    """For each column after the first, the combinations of codes that occur, sorted."""

    @classmethod
    def of(cls, keys: pa.Table | pa.RecordBatch) -> KeyIndex:
        """Returns the keys of these rows."""
        # the distinct values and every row's place among them, from one pass
        encoded = [array.dictionary_encode(null_encoding="encode") for array in _arrays(keys)]
        distinct = tuple(each.dictionary for each in encoded)
        numbers, size, pairs = _codes(encoded[0]), len(distinct[0]), []
        for codes, values in zip(map(_codes, encoded[1:]), distinct[1:], strict=True):
            mixed = numbers * max(len(values), 1) + codes
            # renumbered after each column, so that the product cannot overflow
            found, numbers = np.unique(mixed, return_inverse=True)
            pairs.append(found)
            size = len(found)
        return cls(numbers, size, distinct, tuple(pairs))

    def find(self, keys: pa.Table | pa.RecordBatch) -> Numbers:
        """For each of these other rows, the number of its key here; -1 where there is none."""
        arrays = _arrays(keys)
        numbers = _places(arrays[0], self._columns[0])
        for array, values, pairs in zip(arrays[1:], self._columns[1:], self._pairs, strict=True):
            codes = _places(array, values)
            mixed = numbers * max(len(values), 1) + codes
            numbers = np.where((numbers < 0) | (codes < 0), -1, _sorted_places(mixed, pairs))
        return numbers

    def newest(self, seq: npt.ArrayLike) -> Numbers:
        """For each key the highest of its rows' numbers; `seq` is one for all rows, or one for each."""
        highest = np.full(self.size, -1, np.int64)
        np.maximum.at(highest, self.numbers, np.asarray(seq, np.int64))
        return highest

    def repeated(self) -> Mask:
        """Returns True for each row whose key an earlier row has."""
        repeated = np.zeros(len(self.numbers), np.bool_)
        if self.size < len(self.numbers):
            _, first = np.unique(self.numbers, return_index=True)
            repeated[:] = True
            repeated[first] = False
        return repeated

    def rows(self) -> Numbers:
        """For each key the last row that has it."""
        last = np.empty(self.size, np.int64)
        last[self.numbers] = np.arange(len(self.numbers))
        return last


def hidden_mask(
    rows: pa.Table | pa.RecordBatch,
    row_seq: npt.ArrayLike,
    logs: pa.Table | pa.RecordBatch,
    log_seq: npt.ArrayLike,
) -> Mask:
    """Returns True for each row whose key a log has with a higher number: it was replaced or deleted since.

    `rows` and `logs` are the key columns; the numbers are one for all rows of a side, or one for each.
    """
    index = KeyIndex.of(logs)
    return newer_mask(index.find(rows), row_seq, index.newest(log_seq))


def newer_mask(found: Numbers, row_seq: npt.ArrayLike, newest: Numbers) -> Mask:
    """`hidden_mask` for rows looked up already: `found` from `KeyIndex.find`, `newest` by key."""
    if not len(newest):
        return np.zeros(len(found), np.bool_)
    return (found >= 0) & (newest[found] > np.asarray(row_seq, np.int64))


def surely_distinct(keys: pa.Table | pa.RecordBatch) -> bool:
    """Returns True only if no two rows have one key.

    Sorting numbers tells it ten times as fast as an index.
    """
    if keys.num_columns != 1:
        return False
    (column,) = _arrays(keys)
    is_number = pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)
    if not is_number or column.null_count:
        return False
    numbers = np.asarray(column.view(f"int{column.type.bit_width}"))
    return bool(np.all(numbers[1:] > numbers[:-1])) or len(distinct_numbers(numbers)) == len(numbers)


def distinct_numbers(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns the numbers that occur, ascending."""
    # np.unique hashes where no places are asked for: of a million numbers it takes sixty times as long
    ascending = np.sort(numbers)
    is_first = np.ones(len(ascending), np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    return ascending[is_first]


def repeated_mask(keys: pa.Table | pa.RecordBatch) -> Mask:
    """Returns True for each row whose key an earlier row has."""
    return KeyIndex.of(keys).repeated()


def _arrays(keys: pa.Table | pa.RecordBatch) -> list[pa.Array]:
    if not keys.num_columns:
        raise ValueError("a key has at least one column")
    return [_plain(column) for column in keys.columns]


def _plain(column: Any) -> pa.Array:
    """Returns one array in a type that Arrow can hash, and that holds any amount of text."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        kind = pa.decimal128(kind.precision, kind.scale)
    elif kind in {pa.string(), pa.string_view()}:
        kind = pa.large_string()
    elif kind in {pa.binary(), pa.binary_view()}:
        kind = pa.large_binary()
    cast = column.cast(kind)
    return cast.combine_chunks() if isinstance(cast, pa.ChunkedArray) else cast


def _codes(encoded: pa.DictionaryArray) -> Numbers:
    return np.asarray(encoded.indices).astype(np.int64)


def _places(values: pa.Array, among: pa.Array) -> Numbers:
    """Returns where each value is among distinct ones; -1 where it is not."""
    found = pc.fill_null(pc.index_in(values, value_set=among), -1)
    return np.asarray(found).astype(np.int64)


def _sorted_places(values: Numbers, among: Numbers) -> Numbers:
    if not len(among):
        return np.full(len(values), -1, np.int64)
    places = np.minimum(np.searchsorted(among, values), len(among) - 1)
    return np.where(among[places] == values, places, -1)
