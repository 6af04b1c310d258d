"""Gives each row one number from several columns, so that rows that are close in all of them get close numbers.

If rows are sorted by that number, splits have narrow ranges in *every* column, and a condition on any of them
skips splits. Sorting by one column and then by the next helps conditions on the first column only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Curve: TypeAlias = Literal["z", "hilbert"]
Ranks: TypeAlias = npt.NDArray[np.uint64]
_Sortable: TypeAlias = npt.NDArray[np.int64 | np.float64 | np.bytes_]

_BITS: Final = 63
"""Bits of a key, so that it fits a signed 64-bit number, by which every engine can sort."""
_MOST_BITS: Final = 16
_TEXT_BYTES: Final = 16


def bits_for(dimensions: int) -> int:
    """Returns the number of bits for each column, so that a key of all columns fits."""
    return min(_MOST_BITS, _BITS // max(dimensions, 1))


# Without slots: the pickle that travels with a job of Spark 3.5 loses what is in them.
@dataclass(frozen=True)
class Ranker:
    """Ranks the values of some columns by bounds from a sample, so that each rank has about as many rows.

    Ranks only decide which rows go into one split: a bad sample makes wider splits, but never wrong rows.
    """

    columns: tuple[_ColumnRanker, ...]

    @classmethod
    def of(cls, sample: Sequence[pa.Array]) -> Ranker:
        """Returns a ranker with bounds that divide each column of the sample evenly."""
        bits = bits_for(len(sample))
        return cls(tuple(_ColumnRanker.of(column, bits) for column in sample))

    def ranks(self, columns: Sequence[pa.Array]) -> Ranks:
        """Returns for each row its rank in every column; NULL has the lowest."""
        pairs = zip(self.columns, columns, strict=True)
        return np.stack([ranker.ranks(values) for ranker, values in pairs], axis=1)

    def keys(self, columns: Sequence[pa.Array], curve: Curve) -> npt.NDArray[np.int64]:
        """Returns the number of each row along the curve."""
        ranks, bits = self.ranks(columns), bits_for(len(self.columns))
        match curve:
            case "z":
                found = interleave(ranks, bits)
            case "hilbert":
                found = interleave(_hilbert_transpose(ranks, bits), bits)
            case _:
                assert_never(curve)
        return found.astype(np.int64)


@dataclass(frozen=True)
class _ColumnRanker:
    bounds: _Sortable
    skip: int = 0
    """The number of bytes with which all texts of the sample begin, and which are therefore left out."""

    @classmethod
    def of(cls, sample: pa.Array, bits: int) -> _ColumnRanker:
        filled = sample.drop_null()
        skip = _common_bytes(filled) if _is_text(filled.type) else 0
        values = np.sort(_sortable(filled, skip))
        count = min(2**bits - 2, len(values))
        chosen = np.arange(1, count + 1) * len(values) // (count + 1)
        return cls(np.unique(values[chosen]) if count else values, skip)

    def ranks(self, values: pa.Array) -> Ranks:
        found = np.zeros(len(values), np.uint64)
        filled = np.asarray(pc.is_valid(values))
        ranks = np.searchsorted(self.bounds, _sortable(values.drop_null(), self.skip), side="right")
        found[filled] = ranks.astype(np.uint64) + np.uint64(1)
        return found


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _common_bytes(values: pa.Array) -> int:
    found = pc.min_max(values.cast(pa.large_binary()))
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is None:
        return 0
    pairs = enumerate(zip(low, high, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(low), len(high)))


def _sortable(values: pa.Array, skip: int) -> _Sortable:
    """Returns values without NULL as numbers or short byte strings in the same order; close ones may become equal."""
    kind = values.type
    if _is_text(kind):
        cut = pc.binary_slice(values.cast(pa.large_binary()), skip, skip + _TEXT_BYTES)
        return np.array(cut.to_pylist(), dtype=f"S{_TEXT_BYTES}")
    if pa.types.is_temporal(kind):
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        return np.asarray(values.cast(width), np.int64)
    if pa.types.is_decimal(kind):
        return np.asarray(values.cast(pa.float64()))
    return np.asarray(values.cast(pa.int8()) if pa.types.is_boolean(kind) else values)


def interleave(ranks: Ranks, bits: int) -> Ranks:
    """Returns the bits of all columns in turn, highest bits first, which is known as Morton code or Z-order.

    >>> interleave(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.uint64), 1).tolist()
    [0, 1, 2, 3]
    """
    dimensions = ranks.shape[1]
    found = np.zeros(len(ranks), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for dimension in range(dimensions):
            lowest = (ranks[:, dimension] >> np.uint64(bit)) & np.uint64(1)
            found = (found << np.uint64(1)) | lowest
    return found


def _hilbert_transpose(ranks: Ranks, bits: int) -> Ranks:
    """Returns coordinates that, once interleaved, are the positions of the rows on Hilbert's curve.

    Consecutive points of this curve are always neighbours, while Z-order jumps. The algorithm is the one of
    J. Skilling, "Programming the Hilbert curve", 2004, for all rows at once.
    """
    x = [ranks[:, i].copy() for i in range(ranks.shape[1])]
    for bit in range(bits - 1, 0, -1):
        high, below = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for i, axis in enumerate(x):
            is_set = (axis & high) != 0
            swap = np.where(is_set, np.uint64(0), (x[0] ^ axis) & below)
            x[0] ^= np.where(is_set, below, swap)
            if i:
                x[i] ^= swap
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    turn = np.zeros_like(x[0])
    for bit in range(bits - 1, 0, -1):
        turn ^= np.where(
            (x[-1] >> np.uint64(bit)) & np.uint64(1), np.uint64((1 << bit) - 1), np.uint64(0)
        )
    return np.stack([axis ^ turn for axis in x], axis=1)
