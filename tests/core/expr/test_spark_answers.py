"""Rows of every function are Spark's: held against what Spark answered, without a JVM.

`scripts/spark_answers.py` asks Spark and writes the answers; run it when a function or a sample is new.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import pyarrow.parquet as pq
import pytest

from indextables.core.expr.evaluate import rows_of
from indextables.core.expr.vectors import column_of, is_text
from indextables.core.states import space_of
from indextables.core.types import type_name
from support.pages import ROOT

ANSWERS = ROOT / "tests" / "core" / "expr" / "answers"


def _program() -> Any:
    spec = importlib.util.spec_from_file_location("spark_answers", ROOT / "scripts" / "spark_answers.py")
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
    return PROGRAM.sql_of(case.call), type_name(case.argument), case.call.mode.value, case.call.zone.name


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
    ]
    assert not wrong, f"{len(wrong)} of {len(values)}: {wrong[:5]}"
