"""Rows of every function are Spark's: held against what Spark answered, without a JVM.

`scripts/spark_answers.py` asks Spark and writes the answers; run it when a function or a sample is new.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from indextables.core.expr.evaluate import chain_of, range_of, rows_of
from indextables.core.expr.functions import Range
from indextables.core.expr.nodes import Call, Literal, Ref
from indextables.core.expr.vectors import column_of, is_text
from indextables.core.states import space_of
from indextables.core.expr.zone_rules import zone_of
from indextables.core.types import DecimalType, PrimitiveType, is_float, type_name
from support.expressions import is_among, state_of, wanted_among, windows_over
from support.pages import ROOT

# Zones whose clocks change every year are known up to here; a scan refuses later times there by an error, and no
# statistics decide anything about them.
_KNOWN_UNTIL = (dt.date(9999, 12, 20) - dt.date(1970, 1, 1)).days
ANSWERS = ROOT / "tests" / "core" / "expr" / "answers"


def _program() -> Any:
    spec = importlib.util.spec_from_file_location(
        "spark_answers", ROOT / "scripts" / "spark_answers.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _of_spark() -> tuple[dict[Any, Any], dict[str, list[str]]]:
    rows = pq.read_table(ANSWERS / "4.3.parquet").to_pylist()
    calls = {(r["call"], r["argument"], r["mode"], r["zone"]): r for r in rows if r["function"]}
    return calls, {r["argument"]: r["answers"] for r in rows if not r["function"]}


PROGRAM = _program()
CALLS, VALUES = _of_spark()
CASES = list(PROGRAM.cases())


def _key(case: Any) -> Any:
    return (
        PROGRAM.sql_of(case.call),
        type_name(case.argument),
        case.call.mode.value,
        case.call.zone.name,
    )


def _own(case: Any, values: list[Any]) -> list[str] | None:
    """What this library makes of the values, in the words of the fixture; None if only an engine computes it."""
    array = PROGRAM.column_of(case.argument, values)
    vector = rows_of(case.call, lambda _: array, len(values))
    if vector is None:
        return None
    results = column_of(vector)
    texts = (
        results.to_pylist()
        if is_text(vector.type)
        else PROGRAM.physical(PROGRAM.pa.chunked_array([results]))
    )
    return [
        "error" if vector.error[i] else "null" if vector.null[i] else PROGRAM.as_text(text)
        for i, text in enumerate(texts)
    ]


def _is_beyond(case: Any, value: Any) -> bool:
    """Whether a date or time is so late that a zone with changing clocks does not know it, or no time at all."""
    if case.function == "from_unixtime" and value is not None:
        # Spark wraps around where the microseconds leave 64 bits
        return not -(9 * 10**12) < value < 9 * 10**12 or (
            case.call.zone.known_until is not None and value // 86_400 > _KNOWN_UNTIL
        )
    if case.call.zone.known_until is None:
        return False
    unit = 1 if type_name(case.argument) == "date" else 86_400_000_000
    return isinstance(value, int) and value // unit > _KNOWN_UNTIL


def _is_odd(case: Any, value: Any) -> bool:
    """Whether a cast of text leaves it to Spark what a text of unusual characters is: it refuses, and never guesses."""
    is_cast = case.function == "cast" and type_name(case.argument) == "string"
    return is_cast and value is not None and not value.isprintable()


def test_spark_was_asked_for_every_sample_of_every_function():
    """A function is one entry, and one line of answers for each of its samples."""
    assert {_key(case) for case in CASES} == set(CALLS)
    for case in CASES:
        values = [PROGRAM.as_text(value) for value in PROGRAM.values_of(case.argument)]
        assert values == VALUES[type_name(case.argument)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(_key(case))[:70])
def test_the_rows_of_a_function_are_sparks(case):
    """For each value at the edges of its argument's type: the value, NULL, NaN or an error."""
    values = PROGRAM.values_of(case.argument)
    own = _own(case, values)
    if own is None:
        return  # `why_not` says so, and a scan names the function; nothing is computed that could be wrong
    row = CALLS[_key(case)]
    wrong = [
        (value, mine, sparks)
        for value, mine, sparks in zip(values, own, row["answers"], strict=True)
        if mine != sparks
        and not (mine == "error" and (_is_beyond(case, value) or _is_odd(case, value)))
    ]
    assert not wrong, f"{len(wrong)} of {len(values)}: {wrong[:5]}"


def _outcome(case: Any, text: str) -> Any:
    """Returns an answer of Spark as an ordinal, or 'null', 'nan', 'error'."""
    if text in {"null", "error", "nan"}:
        return text
    space, dtype = space_of(case.call.type), case.call.type
    if is_text(dtype):
        return space.ordinal(text[1:])
    if dtype == PrimitiveType("boolean"):
        return int(text == "True")
    read = Decimal if isinstance(dtype, DecimalType) else float if is_float(dtype) else int
    return space.ordinal(read(text))


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(_key(case))[:70])
def test_no_preimage_and_no_range_leaves_out_what_spark_answers(case):
    """Values whose answer is wanted are in the preimage; between two values no answer lies outside the range."""
    rng = random.Random(repr(_key(case)))
    dtype, values = case.argument, PROGRAM.values_of(case.argument)
    outcomes = [_outcome(case, text) for text in CALLS[_key(case)]["answers"]]
    states = [state_of(value, dtype) for value in values]
    ordinals = sorted(s for s in states if not isinstance(s, str))
    for windows in (None, None if is_text(dtype) else windows_over(ordinals, rng)):
        chain = chain_of(case.call, lambda _, w=windows: w)
        if chain is None:
            continue
        wanted = wanted_among(outcomes, case.call.type, rng)
        found, errors = chain.preimage(wanted), chain.errors
        for state, outcome in zip(states, outcomes, strict=True):
            if outcome == "error":
                assert is_among(state, errors), state
            elif is_among(outcome, wanted):
                assert is_among(state, found), (state, outcome, wanted)
    if is_text(dtype) or (isinstance(dtype, DecimalType) and dtype.precision > 18):
        return
    pairs = sorted((s, o) for s, o in zip(states, outcomes, strict=True) if not isinstance(s, str))
    part = pairs[(start := rng.randrange(len(pairs))) : start + rng.choice((2, 5, 1000))]
    low, high = np.array([part[0][0]]), np.array([part[-1][0]])
    yes, no = np.array([True]), np.array([False])
    known = range_of(case.call, lambda ref: Range(dtype, low, high, yes, no, no, no))
    for state, outcome in part if known is not None else ():
        if isinstance(outcome, str):
            assert getattr(known, outcome)[0], (state, outcome)
        else:
            assert known.low[0] <= outcome <= known.high[0], (state, outcome)


def test_a_midnight_that_happens_twice_is_truncated_to_the_one_with_its_own_offset():
    """In Havana the clock of 1 November 2020 goes back from 1:00 to 0:00; Spark tells the two midnights apart."""
    zone = zone_of("America/Havana")
    noon, before = 1_604_250_000_000_000, 1_604_205_000_000_000
    for unit in ("DAY", "MONTH"):
        literal = Literal(unit, PrimitiveType("string"))
        column = Ref(("x",), PrimitiveType("timestamp"))
        call = Call("date_trunc", (literal, column), PrimitiveType("timestamp"), zone=zone)
        array = PROGRAM.column_of(PrimitiveType("timestamp"), [noon, before])
        found = rows_of(call, lambda _, array=array: array, 2)
        assert found.values.tolist() == [1_604_206_800_000_000, 1_604_203_200_000_000]


def test_what_older_sparks_answer_otherwise_is_known_to_the_reader_of_their_conditions():
    """Floor and ceil have no mode there, so they are not read; date_trunc to days or more is left out by version."""
    older = [path for path in ANSWERS.glob("*.parquet") if path.stem != PROGRAM.NEWEST]
    assert older
    for path in older:
        found = {row["function"] for row in pq.read_table(path).to_pylist()}
        assert found <= {"floor", "ceil", "date_trunc"}, path.stem
