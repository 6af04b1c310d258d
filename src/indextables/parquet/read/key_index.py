"""Finds rows by their record key, for whole columns at a time.

Two keys are equal if all their columns are, and NULL equals NULL. Both sides of a comparison have the same
types, because the reader returns the table's current types however old a file is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The distinct keys of some rows, numbered from 0, in which other rows can be looked up.

    Every argument `keys` has only the columns of the key, always in the same order.
    """

    numbers: Numbers
    """For each row, the number of its key."""
    size: int
    """The number of distinct keys."""
    _columns: tuple[pa.Array, ...]
    """The distinct values of each column; the index of a value is its code."""
    _pairs: tuple[Numbers, ...]
    """For each column after the first, the sorted combinations of codes that occur."""

    @classmethod
    def of(cls, keys: pa.Table | pa.RecordBatch) -> KeyIndex:
        """Returns the keys of these rows."""
        # One pass finds the distinct values and the code of each row.
        encoded = [array.dictionary_encode(null_encoding="encode") for array in _arrays(keys)]
        distinct = tuple(each.dictionary for each in encoded)
        numbers, size, pairs = _codes(encoded[0]), len(distinct[0]), []
        for codes, values in zip(map(_codes, encoded[1:]), distinct[1:], strict=True):
            mixed = numbers * max(len(values), 1) + codes
            # Keys are numbered anew after each column, so that the product cannot overflow.
            found, numbers = np.unique(mixed, return_inverse=True)
            pairs.append(found)
            size = len(found)
        return cls(numbers, size, distinct, tuple(pairs))

    def find(self, keys: pa.Table | pa.RecordBatch) -> Numbers:
        """Returns for each of these rows the number of its key in this index; -1 if it is not there."""
        arrays = _arrays(keys)
        numbers = _index_in(arrays[0], self._columns[0])
        for array, values, pairs in zip(arrays[1:], self._columns[1:], self._pairs, strict=True):
            codes = _index_in(array, values)
            mixed = numbers * max(len(values), 1) + codes
            numbers = np.where((numbers < 0) | (codes < 0), -1, _index_in_sorted(mixed, pairs))
        return numbers

    def newest(self, seq: npt.ArrayLike) -> Numbers:
        """Returns for each key the highest `seq` of its rows; `seq` is one for all rows, or one for each."""
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
        """Returns for each key the last row that has it."""
        last = np.empty(self.size, np.int64)
        last[self.numbers] = np.arange(len(self.numbers))
        return last


def hidden_mask(
    rows: pa.Table | pa.RecordBatch,
    row_seq: npt.ArrayLike,
    deltas: pa.Table | pa.RecordBatch,
    delta_seq: npt.ArrayLike,
) -> Mask:
    """Returns True for each row that was replaced or deleted: a delta file with a higher `seq` has its key.

    `rows` and `deltas` are the key columns; a `seq` is one for all rows, or one for each.
    """
    index = KeyIndex.of(deltas)
    return newer_mask(index.find(rows), row_seq, index.newest(delta_seq))


def newer_mask(found: Numbers, row_seq: npt.ArrayLike, newest: Numbers) -> Mask:
    """Returns True for each row whose key has a higher `seq` in `newest` than the row.

    `found` has the number of each row's key (see `KeyIndex.find`), and `newest` is by number of key.
    """
    if not len(newest):
        return np.zeros(len(found), np.bool_)
    return (found >= 0) & (newest[found] > np.asarray(row_seq, np.int64))


def surely_distinct(keys: pa.Table | pa.RecordBatch) -> bool:
    """Returns True only if no two rows have the same key, and False if that is not known without an index.

    Keys of a single column of numbers are sorted, which is ten times as fast as an index.
    """
    if keys.num_columns != 1:
        return False
    (column,) = _arrays(keys)
    is_number = pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)
    if not is_number or column.null_count:
        return False
    numbers = np.asarray(column.view(f"int{column.type.bit_width}"))
    return bool(np.all(numbers[1:] > numbers[:-1])) or len(distinct_numbers(numbers)) == len(numbers)


def distinct_numbers(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Returns the distinct numbers, ascending."""
    # np.unique uses a hash table if no indices are asked for, which takes sixty times as long for a million.
    ascending = np.sort(numbers)
    is_first = np.ones(len(ascending), np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    return ascending[is_first]


def by_number(numbers: Numbers, rows: Numbers) -> dict[int, Numbers]:
    """Returns the rows of each number, ascending."""
    order = np.lexsort((rows, numbers))
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    parts = np.split(order, cuts) if len(order) else []
    return {int(numbers[part[0]]): rows[part] for part in parts}


def repeated_mask(keys: pa.Table | pa.RecordBatch) -> Mask:
    """Returns True for each row whose key an earlier row has."""
    return KeyIndex.of(keys).repeated()


def _arrays(keys: pa.Table | pa.RecordBatch) -> list[pa.Array]:
    if not keys.num_columns:
        raise ValueError("a key has at least one column")
    return [_plain(column) for column in keys.columns]


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns one array of a type that Arrow can hash and that can hold any amount of text."""
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


def _index_in(values: pa.Array, among: pa.Array) -> Numbers:
    """Returns the index of each value among distinct ones; -1 if it is not there."""
    found = pc.fill_null(pc.index_in(values, value_set=among), -1)
    return np.asarray(found).astype(np.int64)


def _index_in_sorted(values: Numbers, among: Numbers) -> Numbers:
    if not len(among):
        return np.full(len(values), -1, np.int64)
    nearest = np.minimum(np.searchsorted(among, values), len(among) - 1)
    return np.where(among[nearest] == values, nearest, -1)
