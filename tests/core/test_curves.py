"""Curves through several columns: close rows get close numbers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.parquet.write.curves import Ranker, _hilbert_transpose, bits_for, interleave


def cells(dimensions: int, bits: int) -> np.ndarray:
    return np.array(list(product(range(2**bits), repeat=dimensions)), np.uint64)


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 3), (3, 2), (4, 2), (5, 1)])
def test_a_curve_visits_every_cell_once(dimensions, bits):
    """Both curves are numberings: no two cells share a number, none is left out."""
    grid = cells(dimensions, bits)
    for keys in (interleave(grid, bits), interleave(_hilbert_transpose(grid, bits), bits)):
        assert sorted(keys.tolist()) == list(range(len(grid)))


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_neighbours_on_hilberts_curve_are_neighbours_in_space(dimensions, bits):
    """From one number to the next exactly one coordinate changes, by one."""
    grid = cells(dimensions, bits)
    along = grid[np.argsort(interleave(_hilbert_transpose(grid, bits), bits))].astype(int)
    steps = np.abs(np.diff(along, axis=0)).sum(axis=1)
    assert (steps == 1).all()


def test_keys_fit_a_signed_number_for_any_number_of_columns():
    """Spark and Arrow sort by a 64-bit integer."""
    for dimensions in range(1, 40):
        assert 1 <= bits_for(dimensions) * dimensions <= 63


COLUMNS = [
    pa.array([5, None, -3, 2**62, 5]),
    pa.array([1.5, float("nan"), None, -0.0, float("-inf")]),
    pa.array(["https://a", "https://b", None, "", "é"]),
    pa.array([b"\x01", b"\xff\x01", None, b"", b"\xff"]),
    pa.array([True, False, None, True, True]),
    pa.array([dt.date(2024, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 1, 1), dt.date(2024, 1, 1)]),
    pa.array([Decimal("1.25"), None, Decimal("-7"), Decimal("1.25"), Decimal("0")]),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(c.type))
def test_ranks_keep_the_order_of_values(column):
    """NULL first, then ascending; equal values have equal ranks."""
    ranks = Ranker.of([column]).ranks([column])[:, 0].tolist()
    nulls = [r for r, v in zip(ranks, column.to_pylist(), strict=True) if v is None]
    assert nulls == [0]
    order = column.take(pa.array(np.argsort(ranks, kind="stable"))).drop_null()
    pairs = list(zip(order.to_pylist(), order.to_pylist()[1:], strict=False))
    for left, right in pairs:
        assert not (left == left and right == right) or left <= right


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(max_size=5)), min_size=1, max_size=50),
    st.sampled_from(["z", "hilbert"]),
)
def test_any_rows_get_a_number_each(rows, curve):
    """Whatever the sample was: values outside it get a place too."""
    numbers, texts = (pa.array(column) for column in zip(*rows, strict=True))
    ranker = Ranker.of([numbers[: len(rows) // 2], texts[: len(rows) // 2]])
    keys = ranker.keys([numbers, texts], curve)
    assert len(keys) == len(rows)
    assert (keys >= 0).all()


@pytest.mark.parametrize("curve", ["z", "hilbert"])
def test_sorting_along_a_curve_narrows_both_columns(curve):
    """64 splits of random points: a condition on either column needs about an eighth of them, not all."""
    random = np.random.default_rng(7)
    x, y = (pa.array(random.integers(0, 10**9, 64_000)) for _ in range(2))
    order = np.argsort(Ranker.of([x, y]).keys([x, y], curve))
    for column in (x, y):
        parts = np.array_split(np.asarray(column)[order], 64)
        hit = sum(part.min() <= 5 * 10**8 <= part.max() for part in parts)
        assert hit <= 20
