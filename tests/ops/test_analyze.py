"""Analyze builds statistics where they are missing, drop removes them; rows never change."""

from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import UnknownColumnError

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("x", pa.float64()),
        ("s", pa.struct([("a", pa.int64())])),
        ("l", pa.list_(pa.int8())),
        ("p", pa.int32()),
    ]
)
NONE = {"spark.indextables.dataSkippingNumIndexedCols": 0}


def rows(start, text="t"):
    return pa.table(
        {
            "id": range(start, start + 10),
            "text": [f"{text}{i}" for i in range(10)],
            "x": [float(i) for i in range(10)],
            "s": [{"a": start + i} for i in range(10)],
            "l": [[i] for i in range(10)],
            "p": [start] * 10,
        },
        SCHEMA,
    )


@pytest.fixture
def table():
    found = it.Table.create(f"memory://{uuid4()}", SCHEMA, partition_by=["p"])
    found.append(rows(0), options=NONE)
    found.append(rows(10))
    found.append(rows(20), options=NONE)
    return found


def kept(table, where):
    return len(table.plan(where).files)


def test_splits_without_statistics_get_them(table):
    """Bounds for what has an order, counts for everything; then files are skipped."""
    assert kept(table, "id = 15") == 3
    before = table.scan().to_arrow()
    seen = []
    result = table.analyze(progress=lambda done, total: seen.append((done, total)))
    assert (result.metrics["numAnalyzedFiles"], seen) == (2, [(2, 2)])
    assert kept(table, "id = 15") == kept(table, "s.a = 15") == 1
    assert kept(table, "l is null") == 0
    assert table.scan().to_arrow().equals(before)
    assert [split.seq for split in table.snapshot().splits()] == [1, 2, 3]
    assert table.check(deep=True).ok


def test_a_second_analyze_has_nothing_to_do(table):
    """And commits nothing."""
    table.analyze()
    assert not table.analyze().committed
    assert table.analyze(rebuild=True).metrics["numAnalyzedFiles"] == 3


def test_only_the_columns_asked_for_are_analyzed(table):
    """The others stay as they are; a struct stands for its fields, in whatever case."""
    table.analyze(["ID", "s"])
    missing = {info.column: info.missing for info in table.statistics_info()}
    assert missing == {("id",): 0, ("text",): 2, ("x",): 2, ("s", "a"): 0, ("l",): 2}


def test_statistics_can_be_dropped_and_rebuilt(table):
    """Queries stay correct without them, and skip again with them."""
    table.analyze()
    assert table.drop_statistics(["id"]).metrics["numAnalyzedFiles"] == 3
    assert kept(table, "id = 15") == 3
    assert kept(table, "s.a = 15") == 1
    assert table.scan("id = 15").count() == 1
    assert not table.drop_statistics(["id"]).committed
    table.analyze(["id"])
    assert kept(table, "id = 15") == 1


def test_info_tells_shortened_from_missing(table):
    """A shortened bound skips files, but cannot answer MIN and MAX."""
    table.analyze(
        ["text"],
        rebuild=True,
        options={
            "spark.indextables.stats.truncation.strategy": "bound",
            "spark.indextables.stats.truncation.maxLength": 1,
        },
    )
    info = next(i for i in table.statistics_info() if i.column == ("text",))
    assert (info.splits, info.complete, info.inexact, info.missing) == (3, 3, 3, 0)
    assert kept(table, "text = 'z'") == 0


def test_bounds_dropped_for_their_length_are_not_collected_over_and_over(table):
    """The rule that dropped them would drop them again; another rule gets its chance."""
    long = rows(30, text="x" * 5000)
    table.append(long)
    table.analyze()
    assert not table.analyze().committed
    bound = {"spark.indextables.stats.truncation.strategy": "bound"}
    assert table.analyze(options=bound).metrics["numAnalyzedFiles"] == 1
    assert kept(table, "text = 'y'") == 0


def test_history_counts_what_was_truncated(table):
    """As for a write."""
    table.append(rows(40, text="y" * 5000), options=NONE)
    table.analyze(["text"])
    metrics = table.history(1)[0].metrics
    assert metrics["numTruncatedColumns"] == 1
    assert metrics["truncationBytesSaved"] > 9000


@pytest.mark.parametrize(("names", "message"), [(["nope"], "no column"), (["p"], "partition column")])
def test_a_name_that_has_no_statistics_is_an_error(table, names, message):
    """Misspelled, or known for every split anyway."""
    for action in (table.analyze, table.drop_statistics):
        with pytest.raises(UnknownColumnError, match=message):
            action(names)
