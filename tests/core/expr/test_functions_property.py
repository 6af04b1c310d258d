"""Every entry of the function table: preimages and ranges against its own rows, at edges and at random."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.core.expr.evaluate import chain_of, range_of, rows_of
from indextables.core.expr.functions import FUNCTIONS, Range
from indextables.core.expr.image import Pieces, first_where
from indextables.core.expr.nodes import Call, Ref
from indextables.core.expr.vectors import column_of, is_text
from indextables.core.expr.zone_rules import zone_of
from indextables.core.expr.zones import Zone
from indextables.core.states import States, holds, space_of
from indextables.core.types import DataType, DecimalType, PrimitiveType
from support.expressions import edges, is_among, samples, state_of, wanted_among, windows_over

ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "America/Havana")
CASES = list(samples())


def _outcomes(call: Call, values: list[Any], dtype: DataType) -> list[Any]:
    """Returns for each value the ordinal of its result, or 'null', 'nan', 'error'."""
    import pyarrow as pa

    from indextables.core.types import type_to_arrow

    array = (
        pa.array(values, pa.int32()).cast(pa.date32())
        if dtype == PrimitiveType("date")
        else pa.array(values, type_to_arrow(dtype))
    )
    vector = rows_of(call, lambda _: array, len(values))
    if vector is None:
        pytest.skip("only an engine computes it")
    found: list[Any] = []
    results = column_of(vector).to_pylist() if is_text(vector.type) else vector.values.tolist()
    space = space_of(vector.type)
    for row, result in enumerate(results):
        kind = next((k for k in ("error", "null", "nan") if getattr(vector, k)[row]), None)
        found.append(kind or (space.ordinal(result) if is_text(vector.type) else result))
    return found


@pytest.mark.parametrize(("function", "sample"), CASES, ids=lambda case: str(case)[:60])
@settings(max_examples=max(4, settings.default.max_examples // 10))
@given(seed=st.integers(0, 2**32))
def test_a_preimage_holds_every_value_that_leads_to_a_wanted_result(
    function: str, sample: Any, seed: int
) -> None:
    """Where it says it is exact, it holds no other value between the bounds of the splits."""
    rng = random.Random(seed)
    call, dtype = _drawn(function, sample, rng)
    values = edges(dtype, rng)
    outcomes = _outcomes(call, values, dtype)
    states = [state_of(value, dtype) for value in values]
    ordinals = sorted(s for s in states if not isinstance(s, str))
    windows = None if is_text(dtype) or rng.random() < 0.2 else windows_over(ordinals, rng)
    chain = chain_of(call, lambda _: windows)
    if chain is None:
        return
    assert call.type is not None
    for _ in range(5):
        wanted = wanted_among(outcomes, call.type, rng)
        found, errors = chain.preimage(wanted), chain.errors
        for state, outcome, value in zip(states, outcomes, values, strict=True):
            if outcome == "error":
                assert is_among(state, errors), (value, "raises")
                continue
            inside = is_among(state, found)
            if is_among(outcome, wanted):
                assert inside, (value, outcome, wanted)
            elif chain.exact and not is_among(state, errors):
                assert not inside or _is_outside(state, windows), (value, outcome, wanted)


def _is_outside(state: Any, windows: Any) -> bool:
    return windows is None or (
        not isinstance(state, str) and not any(a <= state <= b for a, b in windows)
    )


def _drawn(function: str, sample: Any, rng: random.Random) -> tuple[Call, DataType]:
    call, dtype = sample
    zone: Zone | None = zone_of(rng.choice(ZONES)) if FUNCTIONS[function].zoned else None
    mode = rng.choice(FUNCTIONS[function].modes)
    return Call(call.function, call.arguments, call.type, mode, zone), dtype


@pytest.mark.parametrize(("function", "sample"), CASES, ids=lambda case: str(case)[:60])
@settings(max_examples=max(4, settings.default.max_examples // 10))
@given(seed=st.integers(0, 2**32))
def test_a_range_holds_every_result_of_the_values_between_two_bounds(
    function: str, sample: Any, seed: int
) -> None:
    """What lies between its least and its greatest is said of values; NULL, NaN and errors are said apart."""
    rng = random.Random(seed)
    call, dtype = _drawn(function, sample, rng)
    if is_text(dtype) or (isinstance(dtype, DecimalType) and dtype.precision > 18):
        return
    values = [v for v in edges(dtype, rng) if v is not None and v == v]
    values.sort()
    start = rng.randrange(len(values))
    part = values[start : start + rng.choice((1, 2, 5, 1000))]
    low, high = (np.array([space_of(dtype).ordinal(end)]) for end in (part[0], part[-1]))
    yes, no = np.array([True]), np.array([False])
    known = range_of(call, lambda ref: Range(dtype, low, high, yes, no, no, no))
    if known is None:
        return
    for value, outcome in zip(part, _outcomes(call, part, dtype), strict=True):
        if isinstance(outcome, str):
            assert getattr(known, outcome)[0], (value, outcome)
        else:
            assert known.value[0], value
            assert known.low[0] <= outcome <= known.high[0], (value, outcome)


def test_every_function_has_a_sample() -> None:
    """A function that no test tries is not to be trusted."""
    assert {function for function, _ in CASES} == set(FUNCTIONS)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_of_thousands_of_pieces_each_is_cut_where_the_wanted_values_begin_and_end(seed: int) -> None:
    """Pieces that are alike, and pieces that are not; rising and falling ones."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 50, 300) if seed % 2 else np.full(300, 24)
    first = np.cumsum(size) - size
    slope = rng.choice([-3, 1, 1, 7], 300)
    step = int(rng.choice([1, 5]))

    def f(x: Any) -> Any:
        at = np.searchsorted(first, x, side="right") - 1
        return (x - first[at]) // step * slope[at]

    long = space_of(PrimitiveType("long"))
    pieces = Pieces(long, long, first, first + size - 1, f)
    xs = np.arange(size.sum())
    for _ in range(5):
        start, end = sorted(rng.integers(-60, 60, 2).tolist())
        cuts = (start, end + 1, end + 5, end + 7)
        y = f(xs)
        wanted = ((y >= start) & (y <= end)) | ((y >= end + 5) & (y < end + 7))
        found = pieces.preimage(States(cuts)).cuts
        assert [bool(holds(found, x)) for x in xs.tolist()] == wanted.tolist()


def test_a_search_crosses_the_whole_of_64_bits() -> None:
    """The distance of the ends is more than int64 can hold."""
    low, high = np.array([-(2**63)] * 2), np.array([2**63 - 1] * 2)
    for wanted in (-(2**63), -5, 0, 7, 2**62 + 3, 2**63 - 1):
        assert first_where(low, high, lambda x, w=wanted: x >= w) == [wanted] * 2  # type: ignore[misc]
    assert first_where(low, high, lambda x: x > 2**63 - 1) == [2**63] * 2


def test_columns_of_one_name_are_not_taken_for_each_other() -> None:
    """The states of a byte and of a long, one asked after the other, under the same cast."""
    double = PrimitiveType("double")
    found = []
    for name in ("byte", "long", "byte"):
        column = Ref(("x",), PrimitiveType(name))
        chain = chain_of(Call("cast", (column,), double), lambda _: None)
        assert chain is not None
        found.append(chain.preimage(States(space_of(double).universe)).cuts)
    assert found == [(-128, 128), (-(2**63), 2**63), (-128, 128)]
