"""Check finds every problem and names the file and line; it never stops at the first."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import SchemaMismatchError
from indextables.log.commit.intent import Analyze, Append, CommitPlan

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("p", pa.string())])


def rows(start):
    return pa.table(
        {"id": range(start, start + 5), "x": [1.0, None, 2.0, float("nan"), 3.0], "p": ["a"] * 5},
        SCHEMA,
    )


@pytest.fixture
def table(tmp_path):
    found = it.Table.create(
        tmp_path / "t",
        SCHEMA,
        partition_by=["p"],
        properties={"spark.indextables.checkpoint.interval": 4},
    )
    for i in range(6):
        found.append(rows(i * 5))
    return found


def log_file(table, name):
    return Path(table.uri) / "_transaction_log" / name


def commit(table, version):
    return log_file(table, f"{version:018d}.json")


def found(report):
    return [(problem.kind, problem.file, problem.line) for problem in report.problems]


def test_a_sound_table_has_no_problems(table):
    """Neither in the log nor in the rows."""
    report = table.check(deep=True)
    assert report.ok
    assert (report.commits, report.files, report.notes) == (7, 6, ())
    assert str(report) == "7 commits, 6 files (log, files and rows): no problem found"


def test_a_torn_commit_is_named_with_its_last_line(table):
    """The newest one, cut in the middle of a line."""
    file = commit(table, 6)
    file.write_bytes(file.read_bytes()[:-20])
    report = table.check()
    assert ("garbled-line", file.name, 2) in found(report)
    assert "not-opened" in {note.kind for note in report.notes}


def test_every_damaged_commit_is_listed_not_only_the_first(table):
    """Two garbled lines in one file, a changed byte in another, a missing one: four findings."""
    lines = commit(table, 1).read_bytes().split(b"\n")
    commit(table, 1).write_bytes(b"\n".join([b"{oops", b"{again", *lines[1:]]))
    text = commit(table, 3).read_bytes()
    commit(table, 3).write_bytes(text.replace(b'"numRecords":5', b'"numRecords":6'))
    commit(table, 5).unlink()
    kinds = found(table.check())
    assert ("garbled-line", commit(table, 1).name, 1) in kinds
    assert ("garbled-line", commit(table, 1).name, 2) in kinds
    assert ("torn-file", commit(table, 3).name, 2) in kinds
    assert ("missing-commit", commit(table, 5).name, None) in kinds


def test_damage_below_a_checkpoint_is_still_found(table):
    """The table opens, but its history is not whole."""
    commit(table, 2).write_bytes(b"{}\n")
    assert it.Table(table.uri).scan().count() == 30
    assert [kind for kind, file, _ in found(table.check()) if file == commit(table, 2).name]


def test_a_torn_checkpoint_is_named(table):
    """Readers fall back to the commits; check says why they are slow."""
    file = log_file(table, f"{4:018d}.checkpoint.json")
    file.write_bytes(file.read_bytes()[:-5])
    assert [kind for kind, name, _ in found(table.check()) if name == file.name] == ["bad-checkpoint"]


def test_a_checkpoint_that_shows_another_table_is_named(table):
    """Intact by its checksum, but not what the commits say."""
    other = it.Table.create(table.uri + "-other", SCHEMA, partition_by=["p"])
    for _ in range(4):
        other.append(rows(100))
    other.checkpoint()
    file = log_file(table, f"{4:018d}.checkpoint.json")
    file.write_bytes(log_file(other, file.name).read_bytes())
    report = table.check()
    assert ("bad-checkpoint", file.name) in {(kind, name) for kind, name, _ in found(report)}


def test_a_useless_pointer_is_a_note(table):
    """It costs a listing, never an answer."""
    log_file(table, "_last_checkpoint").write_text("nonsense")
    assert [note.kind for note in table.check().notes] == ["bad-pointer"]
    log_file(table, "_last_checkpoint").write_text(json.dumps({"version": 5}))
    assert [note.kind for note in table.check().notes] == ["bad-pointer"]


def test_a_commit_of_another_log_is_named(table):
    """Its parent is a commit this log never had."""
    other = it.Table.create(table.uri + "-other", SCHEMA, partition_by=["p"])
    for _ in range(5):
        other.append(rows(100))
    commit(table, 5).write_bytes(commit(other, 5).read_bytes())
    assert ("foreign-commit", commit(table, 5).name) in {(k, f) for k, f, _ in found(table.check())}


def test_missing_and_shortened_data_files_are_listed(table):
    """All of them, by their keys."""
    paths = [split.path for split in table.snapshot().splits()]
    (Path(table.uri) / paths[0]).unlink()
    (Path(table.uri) / paths[1]).write_bytes(b"short")
    assert found(table.check()) == [("missing-file", paths[0], None), ("wrong-size", paths[1], None)]


def test_files_nobody_refers_to_are_notes(table):
    """They cost space; vacuum removes those that are ours."""
    stray = Path(table.uri) / "data" / "stray.parquet"
    stray.write_bytes(b"12345")
    assert [(n.kind, n.file, n.message) for n in table.check().notes] == [
        ("unreferenced-file", "data/stray.parquet", "5 bytes that the newest version does not use")
    ]


def forge(table, change):
    """A commit that replaces the entry of the first split by one with changed statistics."""
    add = table.snapshot().splits()[0].to_add()
    plan = CommitPlan(Analyze(), "FORGE", (replace(add, stats=change(add.stats)),))
    table._log.commit(lambda _: plan)
    return add.path


LIES = [
    (lambda s: _with(s, num_records=6), "the log says 6 rows, the file has 5"),
    (
        lambda s: _with(s, null_count={**s.null_count, ("x",): 0}),
        "column x: the log counts 0 NULL, the file has 1",
    ),
    (lambda s: _with(s, nan_count={("x",): 0}), "column x: the log counts 0 NaN, the file has 1"),
    (lambda s: _with(s, min_values={**s.min_values, ("id",): 2}), "nothing is below 2, the file has 0"),
    (
        lambda s: _with(s, max_values={**s.max_values, ("x",): 2.5}),
        "nothing is above 2.5, the file has 3.0",
    ),
]


def _with(stats, **changes):
    return replace(stats, **changes)


@pytest.mark.parametrize(("change", "message"), LIES, ids=[m for _, m in LIES])
def test_each_statistic_that_contradicts_the_rows_is_named(table, change, message):
    """A count or bound that is wrong would make a query lose rows."""
    path = forge(table, change)
    assert table.check().ok
    (problem,) = table.check(deep=True).problems
    assert (problem.kind, problem.file) == ("wrong-statistics", path)
    assert message in problem.message


def test_a_damaged_page_is_found_by_its_checksum(table):
    """The footer is intact, the rows are not."""
    split = table.snapshot().splits()[0]
    file = Path(table.uri) / split.path
    data = bytearray(file.read_bytes())
    offset = pq.ParquetFile(file).metadata.row_group(0).column(0).data_page_offset + 30
    for i in range(8):
        data[offset + i] ^= 0xFF
    file.write_bytes(bytes(data))
    assert table.check().ok
    kinds = {(p.kind, p.file) for p in table.check(deep=True).problems}
    assert kinds == {("unreadable-file", split.path)}


def test_a_partition_value_of_the_wrong_type_is_named(tmp_path):
    """It would fail every query that reads this split."""
    schema = pa.schema([("v", pa.int64()), ("k", pa.int32())])
    table = it.Table.create(tmp_path / "t", schema, partition_by=["k"])
    table.append(pa.table({"v": [1], "k": [1]}, schema))
    add = table.snapshot().splits()[0].to_add()
    table._log.commit(
        lambda _: CommitPlan(Append(), "FORGE", (replace(add, partition_values={"k": "x"}),))
    )
    assert found(table.check()) == [("bad-partition-value", add.path, None)]


def test_progress_is_reported_while_rows_are_read(table):
    """(done, total) up to the end."""
    seen = []
    table.check(deep=True, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (6, 6)


def test_a_log_whose_beginning_was_cleaned_up_has_no_problems(tmp_path):
    """What is left begins with a checkpoint, and the commit of its version is there as well."""
    settings = {"checkpoint.interval": 2, "log.retention": "0 seconds"}
    table = it.Table.create(
        tmp_path / "t",
        pa.schema([("n", pa.int64())]),
        properties={f"spark.indextables.{name}": value for name, value in settings.items()},
    )
    for n in range(9):
        table.append(pa.table({"n": [n]}))
    assert not (tmp_path / "t/_transaction_log/000000000000000000.json").exists()
    assert table.check(deep=True).problems == ()


def not_utf8(count=1):
    offsets = pa.py_buffer(np.array([0, *[2] * count], np.int32))
    return pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(b"\xff\xfe")])


def test_text_that_is_not_utf8_is_refused_by_the_writer(tmp_path):
    """DuckDB and Polars could not read the file; also where it is inside of another value."""
    schema = pa.schema([("s", pa.string()), ("st", pa.struct([("t", pa.string())]))])
    table = it.Table.create(tmp_path / "t", schema)
    inside = pa.StructArray.from_arrays([not_utf8()], ["t"])
    good = pa.array(["ü"])
    for columns in ([not_utf8(), None], [good, inside]):
        arrays = [
            pa.nulls(1, field.type) if c is None else c
            for field, c in zip(schema, columns, strict=True)
        ]
        with pytest.raises(SchemaMismatchError, match="not UTF-8"):
            table.append(pa.table(arrays, schema=schema))
    assert table.version == 0


@pytest.mark.parametrize("kind", ["plain", "struct", "list", "map"])
def test_text_that_is_not_utf8_in_a_file_of_another_writer_is_named(tmp_path, kind):
    """Spark writes any bytes as a string, at any depth."""
    column = {
        "plain": lambda text: text,
        "struct": lambda text: pa.StructArray.from_arrays([text], ["t"]),
        "list": lambda text: pa.ListArray.from_arrays([0, 1], text),
        "map": lambda text: pa.MapArray.from_arrays([0, 1], pa.array(["k"]), text),
    }[kind](not_utf8())
    pq.write_table(pa.table({"id": [1], "s": column}), tmp_path / "a.parquet")
    table = it.convert(tmp_path)
    (problem,) = table.check(deep=True).problems
    assert (problem.kind, problem.file) == ("bad-text", "a.parquet")
    assert "column s" in problem.message
