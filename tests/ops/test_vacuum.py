"""Vacuum deletes what nobody can need, and nothing else."""

import os
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import ConfigError, ObjectNotFoundError
from indextables.storage.base import folded_name
from support.folding import FoldingStore

NOW = {"spark.indextables.vacuum.retention": "0 seconds"}
SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids):
    return pa.table({"id": list(ids)}, SCHEMA)


@pytest.fixture
def table(tmp_path):
    """Three versions with data; the first split is no longer part of the newest."""
    found = it.Table.create(tmp_path / "t", SCHEMA)
    found.append(rows(1))
    found.append(rows(2))
    found.delete("id = 1")
    return found


def files(table):
    root = Path(table.uri)
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def data(table):
    return {name for name in files(table) if name.startswith("data/")}


def test_without_apply_nothing_is_deleted_or_committed(table):
    """The plan that is shown is the one that would be carried out."""
    before = files(table)
    plan = table.vacuum(options=NOW)
    assert (plan.applied, files(table), table.version) == (False, before, 3)
    removed = table.snapshot(1).splits()[0]
    assert [meta.key for meta in plan.files] == [removed.path]
    assert plan.total_bytes == removed.size


def test_apply_deletes_exactly_what_was_shown(table):
    """The live file and the log stay; the deletion is announced by a commit first."""
    plan = table.vacuum(options=NOW)
    before = data(table)
    done = table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    assert (done.files, done.applied) == (plan.files, True)
    assert before - data(table) == {meta.key for meta in plan.files}
    assert table.scan().to_arrow().to_pylist() == [{"id": 2}]
    assert table.history(1)[0].operation == "VACUUM"
    assert table.snapshot().min_read_version == 3
    assert table.check(deep=True).ok


def test_nothing_is_old_enough_within_the_retention(table):
    """Seven days unless told otherwise: a reader of version 1 still works."""
    assert table.vacuum(apply=True).files == ()
    assert table.scan(version=1).to_arrow().to_pylist() == [{"id": 1}]


def test_a_version_whose_files_are_gone_says_so(table):
    """Not a wrong answer, and not a bare 'no such file'."""
    table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    with pytest.raises(ObjectNotFoundError, match="older than the last vacuum"):
        table.scan(version=1).to_arrow()


def test_files_of_a_writer_at_work_survive(table):
    """It read the version that is current, so it may commit them any moment."""
    root = Path(table.uri)
    at_work = root / f"data/{table.version}-00000000-0000-0000-0000-000000000000/part.parquet"
    dead = root / "data/1-00000000-0000-0000-0000-000000000000/part.parquet"
    for file in (at_work, dead):
        file.parent.mkdir()
        file.write_bytes(b"x")
    table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    assert at_work.exists()
    assert not dead.exists()


def test_files_of_others_survive(table):
    """Whatever no log ever named and no writer of ours can have made."""
    root = Path(table.uri)
    for name in (
        "README.md",
        "other.parquet",
        "data/mine.parquet",
        "data/0-x/y.parquet",
        "dat/1.parquet",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    kept = files(table)
    plan = table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    assert kept - files(table) == {meta.key for meta in plan.files}
    assert (root / "other.parquet").exists() and (root / "data/0-x/y.parquet").exists()


def test_temporary_files_of_dead_writers_are_collected(table):
    """They are hidden from listings, so nothing else would ever find them."""
    leftover = (
        Path(table.uri) / "_transaction_log" / ".indextables-0123456789abcdef0123456789abcdef.tmp"
    )
    leftover.write_bytes(b"half a commit")
    os.utime(leftover, (0, 0))
    assert [meta.key for meta in table.vacuum(options=NOW).temporaries] == [
        f"_transaction_log/{leftover.name}"
    ]
    table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    assert not leftover.exists()


def test_a_converted_file_is_deleted_once_it_was_removed(tmp_path):
    """Its name says nothing about a writer; the log says that it was part of the table."""
    import pyarrow.parquet as pq

    for name in ("a", "b"):
        pq.write_table(rows(ord(name)), tmp_path / f"{name}.parquet")
    table = it.convert(tmp_path)
    table.delete("id = 97")
    (gone,) = table.vacuum(apply=True, allow_short_retention=True, options=NOW).files
    assert gone.key == "a.parquet"
    assert files(table) >= {"b.parquet"}
    assert "a.parquet" not in files(table)


def test_a_second_vacuum_finds_nothing(table):
    """And does not write a commit for it."""
    table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    done = table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    assert done.files == ()


def test_progress_is_reported(table):
    """(done, total) per file, for a progress bar."""
    seen = []
    table.vacuum(
        apply=True,
        allow_short_retention=True,
        options=NOW,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 1)]


@pytest.mark.parametrize("retention", ["0 seconds", "6 days", "167 hours"])
def test_a_short_retention_has_to_be_allowed(table, retention):
    """A write or a query that takes longer than it would lose its files."""
    short = {"spark.indextables.vacuum.retention": retention}
    before = files(table)
    with pytest.raises(ConfigError, match="allow_short_retention"):
        table.vacuum(apply=True, options=short)
    assert files(table) == before
    assert table.vacuum(apply=True, allow_short_retention=True, options=short).applied


def test_a_table_may_promise_less_than_seven_days(tmp_path):
    """Its property is known to all who write to it; a call below that is refused still."""
    hour = {"spark.indextables.vacuum.retention": "1 hour"}
    table = it.Table.create(tmp_path / "t", SCHEMA, properties=hour)
    assert table.vacuum(apply=True).applied
    assert table.vacuum(apply=True, options=hour).applied
    with pytest.raises(ConfigError, match="shorter than the 1:00:00"):
        table.vacuum(apply=True, options=NOW)


def test_a_retention_in_the_session_is_no_promise_of_the_table(table):
    """Nobody else knows of it."""
    handle = it.Table(table.uri, options=NOW)
    with pytest.raises(ConfigError, match="shorter than the 7 days"):
        handle.vacuum(apply=True)


@pytest.mark.parametrize("pair", [("A", "a"), ("\u00e9", "e\u0301"), ("STRASSE", "stra\u00dfe")])
def test_a_file_that_is_listed_under_another_spelling_survives(pair):
    """Both partitions land in one directory, which has the name of the first: the other is not in the log."""
    store = FoldingStore(f"folding-{uuid4()}")
    schema = pa.schema([("k", pa.string()), ("id", pa.int64())])
    table = it.Table.create(store, schema, partition_by=["k"])
    for name in pair:
        table.append(pa.table({"k": [pair[0], name], "id": [1, 2]}, schema))
    table.delete("id = 1")
    before = sorted(table.scan().to_arrow().to_pylist(), key=str)
    table.vacuum(apply=True, allow_short_retention=True, options=NOW)
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == before
    assert folded_name(pair[0]) == folded_name(pair[1])
