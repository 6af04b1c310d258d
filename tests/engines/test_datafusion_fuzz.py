"""Random conditions in DataFusion's SQL: its rows of a table of ours are its rows of the same rows in memory.

FUZZ_EXAMPLES draws more, FUZZ_SECONDS draws until then, INDEXTABLES_SEED draws others.
"""

from __future__ import annotations

import io
import os
import random
import time
from collections import Counter

import datafusion
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.core.predicate.nodes import And
from indextables.engines.datafusion.tables import needed_by
from indextables.plan.planner import Planner
from support.datafusion_conditions import Draw
from support.edge_rows import FILES, ROWS, SCHEMA, edge_rows

COUNT = int(os.environ.get("FUZZ_EXAMPLES", "300"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "inf"))
SEED = os.environ.get("INDEXTABLES_SEED", "1")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made, rows = it.Table.create(tmp_path_factory.mktemp("datafusion") / "t", SCHEMA), edge_rows()
    for start in range(0, FILES * ROWS, ROWS):
        made.append(rows.slice(start, ROWS))
    return made


@pytest.fixture(scope="module")
def context(table):
    made = datafusion.SessionContext()
    it.datafusion.register(made, "t", table.uri)
    # of a NULL struct DataFusion reads the fields all the same; Parquet makes them NULL, too
    file = io.BytesIO()
    pq.write_table(edge_rows(), file)
    made.register_record_batches("plain", [pq.read_table(file).to_batches()])
    return made


def _ids(frame):
    return set(frame.to_pydict()["id"])


def test_random_conditions_find_the_rows_that_datafusion_finds_in_memory(context, table):
    """No file with such a row is skipped, and a query over the rest gives these rows."""
    rng, seen, until = random.Random(SEED), Counter(), time.monotonic() + SECONDS
    draw, planner = Draw(rng), Planner.open(table.uri)
    for number in range(COUNT):
        if time.monotonic() > until:
            break
        text = draw.condition()
        case = (SEED, number, text)
        try:
            expected = _ids(context.sql(f"SELECT id FROM plain WHERE {text}"))
            needed = needed_by(context, f"SELECT id FROM t WHERE {text}")
        except Exception as error:
            assert "rror" in str(error), case
            seen["raised"] += 1
            continue
        kept = set(range(FILES))
        if "t" in needed:
            kept = set(planner.plan(And((needed["t"],))).rows.nonzero()[0].tolist())
        files = {number // ROWS for number in expected}
        assert files <= kept, (case, sorted(files - kept))
        if number % 8 == 0:
            assert _ids(it.datafusion.sql(context, f"SELECT id FROM t WHERE {text}")) >= expected, case
        seen.update({"compared": 1, "with rows": bool(expected), "needed": len(files)})
        seen.update({"kept": len(kept), "all": FILES})
    print(dict(seen))
    assert seen["compared"] > 0.5 * (seen["compared"] + seen["raised"])
    assert seen["kept"] < 0.85 * seen["all"]
