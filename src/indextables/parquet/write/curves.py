"""One number per row from several columns, so that rows that are close in all of them get close numbers.

Sorted by that number, rows go into splits whose ranges are narrow in *every* column: a condition on any
one of them skips splits. Sorting by one column after the other serves the first only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Curve: TypeAlias = Literal["z", "hilbert"]
Ranks: TypeAlias = npt.NDArray[np.uint64]

_BITS: Final = 63
"""A key fits a signed 64-bit number, which every engine can sort by."""
_MOST_BITS: Final = 16
_TEXT_BYTES: Final = 16


def bits_for(dimensions: int) -> int:
    """Returns how finely each column is divided, so that a key still fits."""
    return min(_MOST_BITS, _BITS // max(dimensions, 1))


@dataclass(frozen=True, slots=True)
class Ranker:
    """Places values of some columns among equally many, by bounds taken from a sample.

    A rank only decides which rows lie together: an unlucky sample makes wider splits, never wrong rows.
    """

    columns: tuple[_ColumnRanker, ...]

    @classmethod
    def of(cls, sample: Sequence[Any]) -> Ranker:
        """Returns the bounds that divide each of these columns into parts of about the same number of rows."""
        bits = bits_for(len(sample))
        return cls(tuple(_ColumnRanker.of(column, bits) for column in sample))

    def ranks(self, columns: Sequence[Any]) -> Ranks:
        """Returns a row of small numbers for each row: its place in every column, NULL first."""
        pairs = zip(self.columns, columns, strict=True)
        return np.stack([ranker.ranks(values) for ranker, values in pairs], axis=1)

    def keys(self, columns: Sequence[Any], curve: Curve) -> npt.NDArray[np.int64]:
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


@dataclass(frozen=True, slots=True)
class _ColumnRanker:
    bounds: npt.NDArray[Any]
    skip: int = 0
    """Bytes that all texts of the sample begin with, and that therefore tell nothing."""

    @classmethod
    def of(cls, sample: Any, bits: int) -> _ColumnRanker:
        filled = sample.drop_null()
        skip = _common_bytes(filled) if _is_text(filled.type) else 0
        values = np.sort(_sortable(filled, skip))
        parts = min(2**bits - 2, len(values))
        places = np.arange(1, parts + 1) * len(values) // (parts + 1)
        return cls(np.unique(values[places]) if parts else values, skip)

    def ranks(self, values: Any) -> Ranks:
        found = np.zeros(len(values), np.uint64)
        filled = np.asarray(pc.is_valid(values))
        places = np.searchsorted(self.bounds, _sortable(values.drop_null(), self.skip), side="right")
        found[filled] = places.astype(np.uint64) + np.uint64(1)
        return found


def _is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _common_bytes(values: Any) -> int:
    found = pc.min_max(values.cast(pa.large_binary()))
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is None:
        return 0
    pairs = enumerate(zip(low, high, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(low), len(high)))


def _sortable(values: Any, skip: int) -> npt.NDArray[Any]:
    """Returns values without NULL as numbers or short byte strings in the same order.

    Close ones may become equal.
    """
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
    """Returns the bits of all columns in turn, the highest ones first: Morton's number, or Z-order.

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
    """Coordinates turned so that their interleaved bits are the place on Hilbert's curve.

    Consecutive places are always neighbours, where Z-order jumps: J. Skilling, "Programming the Hilbert
    curve", 2004, for all rows at once.
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
