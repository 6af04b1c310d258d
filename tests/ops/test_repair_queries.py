"""After a repair and its swap, every query of every engine answers what it answered before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import VersionNotFoundError
from indextables.ops.repair import RepairResult
from indextables.ops.repair.log_location import location_of
from indextables.ops.repair.swap import replace_log
from indextables.storage import open_store

SCHEMA = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("day", pa.string()), ("x", pa.float64())]
)
CONDITIONS = [
    None,
    "id = 42",
    "id < 30 OR id > 170",
    "text LIKE '0010%'",
    "text > '0150'",
    "day = 'd1' AND id IS NOT NULL",
    "x IS NULL",
    "NOT (x <= 50)",
    "day IN ('d0', 'd9')",
]


def rows(first: int, count: int = 20) -> pa.Table:
    ids = range(first, first + count)
    values = {
        "id": ids,
        "text": [f"{i:04d}" + "lorem ipsum " * 200 for i in ids],
        "day": [f"d{i // 50}" for i in ids],
        "x": [None if i % 7 == 0 else float(i) for i in ids],
    }
    return pa.table(values, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> it.Table:
    """Partitioned, with long texts whose bounds no truncation has touched, and a history."""
    table = it.Table.create(tmp_path / "articles", SCHEMA, partition_by=["day"])
    whole = {"spark.indextables.stats.truncation.enabled": "false"}
    for first in range(0, 200, 20):
        table.append(rows(first), options=whole)
    table.delete("id IN (3, 13, 77, 190)", options=whole)
    return table


def answers(table: it.Table, where: str | None) -> dict[str, list]:
    scan = table.scan(where)
    return {
        "arrow": scan.to_arrow().sort_by("id").to_pylist(),
        "polars": scan.to_polars().sort("id").to_dicts(),
        "pandas": scan.to_pandas().sort_values("id")["id"].to_list(),
        "duckdb": scan.to_duckdb().order("id").fetchall(),
    }


def repaired_in_place(table: it.Table) -> RepairResult:
    log = f"{table.uri}/_transaction_log"
    result = it.repair(log, f"{log}_repaired")
    replace_log(location_of(log, open_store), location_of(f"{log}_repaired", open_store))
    return result


def test_every_query_answers_the_same_after_the_swap(table: it.Table):
    """Conditions on short and on long columns, on partitions and on NULLs, in each engine."""
    before = {where: answers(table, where) for where in CONDITIONS}
    splits = table.snapshot().num_files
    assert repaired_in_place(table).row()[3:] == (splits, splits, 0, "SUCCESS")
    again = it.Table(table.uri)
    assert again.version == 1
    for where in CONDITIONS:
        assert answers(again, where) == before[where], where
    assert again.scan("id = 42").to_arrow().num_rows == 1
    assert again.check().ok


def test_skipping_still_works_on_what_was_kept(table: it.Table):
    """Statistics of short columns skip exactly as before; only the long text skips less."""
    plans = [table.plan("id = 42").report.kept_files, table.plan("text > '0190'").report.kept_files]
    repaired_in_place(table)
    again = it.Table(table.uri)
    assert again.plan("id = 42").report.kept_files == plans[0]
    assert again.plan("text > '0190'").report.kept_files > plans[1]


def test_rows_of_lost_splits_are_gone_and_no_others(table: it.Table, tmp_path: Path):
    """What a query returns is what it returned before, minus the rows of the files that are gone."""
    all_rows = table.scan().to_arrow()
    lost = table.snapshot().splits()[0]
    held = pa.concat_tables(
        [table.scan(f"id = {i}").to_arrow() for i in _ids_in(tmp_path / "articles" / lost.path)]
    )
    (tmp_path / "articles" / lost.path).unlink()
    result = repaired_in_place(table)
    assert (result.missing_splits, [one.path for one in result.excluded]) == (1, [lost.path])
    left = it.Table(table.uri).scan().to_arrow()
    gone = set(held.column("id").to_pylist())
    assert set(left.column("id").to_pylist()) == set(all_rows.column("id").to_pylist()) - gone


def _ids_in(path: Path) -> list[int]:
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=["id"], partitioning=None).column("id").to_pylist()


def test_time_travel_before_the_repair_is_gone_and_says_so(table: it.Table):
    """The handle from before and a new one agree."""
    committed = table.snapshot(version=3).timestamp_ms
    repaired_in_place(table)
    for handle in (table, it.Table(table.uri)):
        with pytest.raises(VersionNotFoundError):
            handle.snapshot(version=11)
        with pytest.raises(VersionNotFoundError, match="no version as old as"):
            handle.snapshot(timestamp=committed)


def test_writing_goes_on(table: it.Table):
    """Append, delete, overwrite, compaction of the log and a second repair of the repaired log."""
    repaired_in_place(table)
    table.append(rows(1000))
    table.delete("id = 1000")
    table.overwrite(rows(2000), where="day = 'd40'")
    assert table.scan("id >= 1000").to_arrow().num_rows == 39
    (Path(table.uri) / "_transaction_log_backup").rename(Path(table.uri) / "older")
    before = answers(table, None)
    assert repaired_in_place(table).status == "SUCCESS"
    assert answers(it.Table(table.uri), None) == before
