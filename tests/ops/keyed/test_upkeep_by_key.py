"""What keeps a table in shape keeps its slices: statistics, checkpoints, vacuum, optimize, checks, repair."""

import json
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import SchemaError
from indextables.log.wire.actions import Remove
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.storage.open import open_store

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("p", pa.string())])
AT_ONCE = {"spark.indextables.vacuum.retention": "0 seconds"}


def rows(v, *ids, p="a"):
    return pa.table({"id": list(ids), "v": [v] * len(ids), "p": [p] * len(ids)}, SCHEMA)


def contents(table, **when):
    found = [(row["id"], row["v"]) for row in table.scan(**when).to_arrow().to_pylist()]
    assert len(found) == len(dict(found))
    return dict(found)


def sliced(path, mode="columns", **more):
    """Two slices: one with a data log, a partial one and a delete log; one without any."""
    table = it.Table.create(path, SCHEMA, record_key=["id"], merge_mode=mode, **more)
    table.upsert(rows("old", 1, 2, 3, 4))
    table.upsert(rows("log", 2))
    table.upsert(pa.table({"id": [3], "v": ["part"]}) if mode == "columns" else rows("part", 3))
    table.delete("id = 4")
    table.upsert(rows("two", 11, 12))
    return table


EXPECTED = {1: "old", 2: "log", 3: "part", 11: "two", 12: "two"}


def facts(table):
    """What the log says of each file."""
    return [replace(split.to_add(), stats=None) for split in table.snapshot().splits()]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_checkpoints_keep_all_that_is_known_of_a_slice(path, form):
    """Also without the commits before them."""
    table = sliced(path, properties={"spark.indextables.checkpoint.format": form})
    before = facts(table)
    version = table.checkpoint()
    store = open_store(path)
    for old in range(version):
        store.delete(f"_transaction_log/{old:018}.json")
    again = it.Table(path)
    assert facts(again) == before
    assert contents(again) == EXPECTED
    again.upsert(rows("more", 1, 12))
    assert contents(again) == {**EXPECTED, 1: "more", 12: "more"}


def test_analyze_says_nothing_of_columns_a_log_does_not_hold(path):
    """What is untouched is not NULL."""
    table = sliced(path)
    table.drop_statistics(["id", "v"])
    assert table.analyze().metrics["numAnalyzedFiles"] == 5
    assert not table.analyze().committed
    assert table.analyze(rebuild=True).committed
    base, data, partial, delete, second = table.snapshot().splits()
    assert set(base.stats.null_count) == set(data.stats.null_count) == {("id",), ("v",), ("p",)}
    assert set(partial.stats.null_count) == {("id",), ("v",)}
    assert set(delete.stats.null_count) == {("id",)}
    by_column = {info.column[0]: (info.splits, info.missing) for info in table.statistics_info()}
    assert by_column == {"id": (5, 0), "v": (4, 0), "p": (3, 0)}
    assert json.loads(partial.to_add().tags["columns"]) == ["id", "v"]
    assert contents(table, where="p is null") == {}
    assert contents(table) == EXPECTED
    assert table.check(deep=True).problems == ()


def test_vacuum_leaves_every_file_of_a_slice(path):
    """And takes those of slices that are gone."""
    table = sliced(path)
    assert table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE).files == ()
    table.delete("id < 10")
    gone = table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE).files
    assert len(gone) == 4
    assert contents(table) == {11: "two", 12: "two"}


@pytest.mark.parametrize("curve", [{}, {"z_order_by": ["v"]}])
def test_optimize_leaves_slices_with_logs_alone(path, curve):
    """The others become new groups, whose rows can be replaced and deleted as before."""
    table = sliced(path)
    table.upsert(rows("three", 21, 22))
    logged = facts(table)[:4]
    assert table.optimize(**curve).committed
    assert facts(table)[:4] == logged
    (packed,) = [split for split in table.snapshot().splits() if split.stats.num_records == 4][1:]
    assert (packed.kind, packed.file_group is None) == ("base", False)
    table.upsert(rows("new", 2, 21))
    table.delete("id = 12")
    wanted = {**EXPECTED, 2: "new", 21: "new", 22: "three"}
    del wanted[12]
    assert contents(table) == wanted
    assert table.check(deep=True).problems == ()


def test_time_travel_sees_the_slices_of_its_version(path):
    """A log that came later changes nothing there."""
    table = sliced(path)
    assert contents(table, version=1) == dict.fromkeys([1, 2, 3, 4], "old")
    assert contents(table, version=2) == {1: "old", 2: "log", 3: "old", 4: "old"}
    assert contents(table, version=4) == {1: "old", 2: "log", 3: "part"}


def test_a_directory_of_parquet_files_gets_no_key(tmp_path):
    """Whether its rows have distinct keys, nobody has checked."""
    import pyarrow.parquet as pq

    pq.write_table(rows("a", 1, 1), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="may be NULL"):
        it.Table.convert(tmp_path, properties={"recordKey": "id"})


# -- check ----------------------------------------------------------------------------------------


def put(path, *adds):
    """A commit by somebody who knows no rules."""
    TransactionLog(open_store(path)).commit(lambda _: CommitPlan(Append(), "?", adds))


def copied(path, split, **changes):
    """The same file again under another name."""
    store = open_store(path)
    name = f"data/0-{uuid4()}/copy.parquet"
    store.put(name, store.get(split.path))
    return replace(split.to_add(), path=name, seq=None, **changes)


def kinds(path):
    return sorted({problem.kind for problem in it.Table(path).check(deep=True).problems})


def test_a_key_that_is_there_twice_is_found(path):
    """In two groups; its value and its files are named."""
    table = sliced(path)
    put(path, copied(path, table.snapshot().splits()[-1], file_group="another"))
    problems = table.check(deep=True).problems
    assert [problem.kind for problem in problems] == ["duplicate-key"] * 2
    assert "id = 11" in problems[0].message
    assert problems[0].message.count(".parquet") == 2
    assert table.check().ok
    # and the next upsert leaves one of them
    table.upsert(rows("one", 11, 12))
    assert table.check(deep=True).problems == ()
    assert contents(table) == {**EXPECTED, 11: "one", 12: "one"}


def test_files_that_are_in_no_slice_are_found(path):
    """Nothing in them can be replaced."""
    table = sliced(path)
    split = table.snapshot().splits()[-1]
    put(path, copied(path, split, file_group=None))
    assert kinds(path) == ["no-file-group"]


def test_a_second_base_and_another_partition_are_found(path):
    """A slice has one base and one partition."""
    table = it.Table.create(path, SCHEMA, record_key=["id"], partition_by=["p"])
    table.upsert(rows("a", 1))
    (split,) = table.snapshot().splits()
    put(path, copied(path, split, partition_values={"p": "b"}))
    assert kinds(path) == ["mixed-partitions", "two-bases"]


def test_a_partial_log_without_its_base_is_found(path):
    """Its rows would show NULL for what they had."""
    table = sliced(path)
    base, *_ = table.snapshot().splits()
    put(path, Remove(base.path, 1))
    assert kinds(path) == ["lost-base"]


def test_log_files_in_a_table_without_a_key_are_found(path):
    """Nobody can say which rows they replace."""
    table = it.Table.create(path, SCHEMA)
    table.append(rows("a", 1))
    (split,) = table.snapshot().splits()
    put(path, copied(path, split, kind="log", block="data", file_group="g"))
    assert kinds(path) == ["log-without-key"]


# -- repair ---------------------------------------------------------------------------------------


def repaired(table, tmp_path):
    target = tmp_path / f"repaired-{uuid4()}"
    result = it.repair(f"{table.uri}/_transaction_log", str(target))
    return result, target


def test_repair_keeps_what_makes_a_slice(tmp_path):
    """Group, kind, block, tags and seq; rows written later are still later."""
    table = sliced(tmp_path / "t")
    before = facts(table)
    result, target = repaired(table, tmp_path)
    assert result.status == "SUCCESS"
    for meta in list(open_store(tmp_path / "t").list("_transaction_log/")):
        open_store(tmp_path / "t").delete(meta.key)
    for meta in open_store(target).list(""):
        open_store(tmp_path / "t").put(f"_transaction_log/{meta.key}", open_store(target).get(meta.key))
    again = it.Table(tmp_path / "t")
    assert facts(again) == before
    assert again.version == 1
    assert contents(again) == EXPECTED
    again.upsert(rows("later", 2, 3))
    assert contents(again) == {**EXPECTED, 2: "later", 3: "later"}
    assert again.check(deep=True).problems == ()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_repair_cannot_do_without_a_log_file(tmp_path, number):
    """Replaced and deleted rows would come back."""
    table = sliced(tmp_path / "t")
    open_store(tmp_path / "t").delete(table.snapshot().splits()[number].path)
    result, target = repaired(table, tmp_path)
    assert result.status.startswith("ERROR: delta files are not stored")
    assert not target.exists()


def test_repair_cannot_do_without_a_base_that_other_files_complete(tmp_path):
    """In record mode its rows are lost and that is all; here others would show NULL for what they had."""
    table = sliced(tmp_path / "t")
    open_store(tmp_path / "t").delete(table.snapshot().splits()[0].path)
    result, target = repaired(table, tmp_path)
    assert result.status.startswith("ERROR: files whose rows delta files update")
    assert not target.exists()
    whole = sliced(tmp_path / "r", mode="record")
    open_store(tmp_path / "r").delete(whole.snapshot().splits()[0].path)
    result, _ = repaired(whole, tmp_path)
    assert result.status == "SUCCESS"
