"""Random conditions as Polars' expressions: their rows of a table of ours are those of the rows in memory.

FUZZ_EXAMPLES draws more, FUZZ_SECONDS draws until then, INDEXTABLES_SEED draws others.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import polars as pl
import pytest
from polars.lazyframe.resolver import LazyFrameResolver, ResolvedLazyFrameProps

import indextables as it
from indextables.core.predicate.nodes import And
from indextables.engines.polars.expressions import predicate_of
from indextables.errors import PredicateError
from indextables.parquet.read.row_filter import is_evaluable, to_row_mask
from indextables.plan.planner import Planner
from support.edge_rows import FILES, ROWS, SCHEMA, edge_rows
from support.polars_conditions import Draw

COUNT = int(os.environ.get("FUZZ_EXAMPLES", "400"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "inf"))
SEED = os.environ.get("INDEXTABLES_SEED", "1")


@pytest.fixture(scope="module")
def rows():
    # a truncation of a time far beyond the calendar ends Polars' process
    return edge_rows()


@pytest.fixture(scope="module")
def table(tmp_path_factory, rows):
    made = it.Table.create(tmp_path_factory.mktemp("polars") / "t", SCHEMA)
    for start in range(0, FILES * ROWS, ROWS):
        made.append(rows.slice(start, ROWS))
    return made


class Listener(LazyFrameResolver):
    """Remembers the filters that Polars hands over, in the form it hands them over."""

    def __init__(self, frame):
        self.frame, self.filters = frame, []

    def schema(self):
        return self.frame.collect_schema()

    def resolve_lazyframe(self, *, filters, **_others):
        self.filters = [each.expr for each in filters]
        return self.frame, ResolvedLazyFrameProps(version_key="1")


def _ids(frame, condition):
    return set(frame.filter(condition).select("id").collect()["id"].to_list())


def test_random_conditions_find_the_rows_that_polars_finds_in_memory(table, rows):
    """No file with such a row is skipped, a scan of the rest gives these rows, and so do our own functions."""
    rng, seen, until = random.Random(SEED), Counter(), time.monotonic() + SECONDS
    draw, planner = Draw(rng), Planner.open(table.uri)
    plain = pl.from_arrow(rows).lazy()
    for number in range(COUNT):
        if time.monotonic() > until:
            break
        text = ""
        try:
            condition = draw.condition()
            text = str(condition)
            listener = Listener(plain)
            expected = _ids(plain, condition)
            _ids(pl.LazyFrame.from_lazyframe_resolver(listener), condition)
        except (pl.exceptions.PolarsError, OverflowError):
            seen["raised"] += 1
            continue
        case = (SEED, number, text)
        parts = tuple(predicate_of(part, planner.schema) for part in listener.filters)
        bound = planner.bind(And(parts))
        kept = set(planner.plan_bound(bound).rows.nonzero()[0].tolist())
        files = {number // ROWS for number in expected}
        assert files <= kept, (case, sorted(files - kept))
        if parts and is_evaluable(bound):
            # what Polars keeps to itself is not handed over
            handed = set(plain.filter(*listener.filters).select("id").collect()["id"].to_list())
            _same_rows(bound, rows, handed, case, seen)
        if number % 8 == 0:
            assert _ids(it.scan_polars(table.uri), condition) == expected, case
        seen.update({"compared": 1, "with rows": bool(expected), "needed": len(files)})
        seen.update({"kept": len(kept), "all": FILES})
    print(dict(seen))
    assert seen["compared"] > 0.6 * (seen["compared"] + seen["raised"])
    assert seen["computed"] > 0.2 * seen["compared"]
    assert seen["kept"] < 0.85 * seen["all"]


def _same_rows(bound, rows, expected, case, seen):
    try:
        mask = to_row_mask(bound, rows)
    except PredicateError:  # beyond what we know of the calendar, or an error Polars did not look at
        seen["not computed"] += 1
        return
    assert set(rows.filter(mask)["id"].to_pylist()) == expected, case
    seen["computed"] += 1
