"""REPAIR: what is kept, what is left out, every option, and the seven columns."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from indextables.config import Config
from indextables.errors import ConfigError, LogCorruptedError, RepairError, StorageError
from indextables.log.wire.actions import Add
from indextables.log.commit.intent import Append, CommitPlan
from indextables.ops.repair import plan_repair, repair
from indextables.storage import open_store
from indextables.table.recovery import check_table
from support.damage import RealTable, make_table, new_split, remove_one
from support.faults import FaultyStore

REPAIRED = "_transaction_log_repaired"


@pytest.fixture
def table(tmp_path: Path) -> RealTable:
    return make_table(tmp_path / "t", commits=3, splits=4)


def add_to(table: RealTable, *adds: Add) -> None:
    table.transaction_log().commit(lambda _: CommitPlan(Append(), "APPEND", adds))


# -- the seed's integration tests ------------------------------------------------------------------


def test_a_healthy_log_is_consolidated_into_two_commits_and_a_checkpoint(table: RealTable):
    """Happy path: the same table, whose log has exactly the files the command promises."""
    before = table.seal()
    result = repair(table.log, table.target)
    assert result.row() == (str(table.log), str(table.target), 3, 12, 12, 0, "SUCCESS")
    assert sorted(path.name for path in table.target.iterdir()) == [
        "000000000000000000.json",
        "000000000000000001.checkpoint.json",
        "000000000000000001.json",
        "_last_checkpoint",
    ]
    assert table.seal().items() >= before.items()
    assert table.snapshot(REPAIRED).column("key").equals(table.snapshot().column("key"))


def test_missing_splits_are_left_out_counted_and_named(table: RealTable, caplog):
    """Orphaned entries: the new log has none, the result says how many, the log says which."""
    keys = table.snapshot().column("key").to_pylist()
    for key in keys[:2]:
        (table.root / key).unlink()
    before = table.seal()
    with caplog.at_level(logging.WARNING, "indextables"):
        result = repair(table.log, table.target)
    assert result.row()[2:] == (3, 12, 10, 2, "SUCCESS")
    assert [excluded.path for excluded in result.excluded] == keys[:2]
    assert [r.getMessage() for r in caplog.records] == [
        f"Split file not found: {key}" for key in keys[:2]
    ]
    assert table.snapshot(REPAIRED).column("key").to_pylist() == keys[2:]
    assert table.seal().items() >= before.items()


@pytest.mark.parametrize("where", ["nothing/_transaction_log", "empty", "file.txt"])
def test_a_source_without_a_log_is_an_error_row(tmp_path: Path, where: str):
    """Empty or missing source: version -1, zeros, and nothing written."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no log")
    result = repair(tmp_path / where, tmp_path / "target")
    assert result.row()[2:6] == (-1, 0, 0, 0)
    assert result.status.startswith("ERROR: there is no transaction log at ")
    assert not (tmp_path / "target").exists()


# -- plan, then apply --------------------------------------------------------------------------------


def test_the_plan_says_everything_and_changes_nothing(table: RealTable):
    """Kept, missing and mismatched splits with reasons, and the bytes the statistics will save."""
    keys = table.snapshot().column("key").to_pylist()
    (table.root / keys[0]).unlink()
    with (table.root / keys[1]).open("ab") as file:
        file.write(b"more")
    size = (table.root / keys[1]).stat().st_size
    before = table.seal()
    plan = plan_repair(table.log)
    assert plan.kept == tuple(keys[2:])
    assert [str(one) for one in plan.missing] == [f"{keys[0]}: there is no such file"]
    assert [str(one) for one in plan.mismatched] == [
        f"{keys[1]}: it has {size} bytes, but the log says {size - 4}"
    ]
    assert (plan.version, plan.base, plan.total_splits) == (3, -1, 12)
    # two bounds of 4 + 2,000 characters in each of the ten splits that stay
    assert plan.stats_bytes_saved == 10 * 2 * 2004
    assert plan.unreadable == ()
    shown = str(plan)
    assert all(text in shown for text in (keys[0], keys[1], "10 of 12 splits are kept"))
    assert table.seal() == before
    assert repair(table.log, table.target).row()[2:] == (3, 12, 10, 2, "SUCCESS")


def test_data_files_newer_than_the_newest_commit_are_pointed_out(table: RealTable):
    """A wholly lost newest commit cannot be proven, but its data files can be seen."""
    committed = table.snapshot().timestamp_ms / 1000
    for name, when in (
        ("data/9-old/x.parquet", committed - 60),
        ("data/9-new/x.parquet", committed + 60),
    ):
        path = table.root / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"PAR1")
        os.utime(path, (when, when))
    [note] = [note for note in plan_repair(table.log).notes if "in no commit" in note]
    assert "data/9-new/x.parquet" in note
    assert "data/9-old" not in note


# -- options -----------------------------------------------------------------------------------------


def test_fail_on_missing_names_every_path_and_writes_nothing(table: RealTable):
    """failOnMissing=true: an ERROR row with the paths."""
    keys = table.snapshot().column("key").to_pylist()
    for key in keys[:3]:
        (table.root / key).unlink()
    before = table.seal()
    result = repair(table.log, table.target, fail_on_missing=True)
    assert result.row()[2:6] == (-1, 0, 0, 0)
    assert all(key in result.status for key in keys[:3])
    assert table.seal() == before


def test_without_validation_no_split_is_asked_for(table: RealTable):
    """validateSplits=false takes the log at its word, and never touches the data."""
    (table.root / table.snapshot().column("key")[0].as_py()).unlink()
    stores: list[FaultyStore] = []

    def opener(uri: str) -> FaultyStore:
        stores.append(FaultyStore(open_store(uri)))
        return stores[-1]

    result = repair(table.log, table.target, validate_splits=False, opener=opener)
    assert result.row()[2:] == (3, 12, 12, 0, "SUCCESS")
    asked = [key for store in stores for _, key in store.calls]
    assert not [key for key in asked if key.startswith("data/")]


def test_a_missing_log_file_of_a_slice_is_always_an_error(table: RealTable):
    """Leaving it out would bring deleted rows back, so not even failOnMissing=false allows it."""
    log_file = replace(
        new_split(table.root, 900), kind="log", block="delete", file_group="g", data_change=True
    )
    base = replace(new_split(table.root, 901), kind="base", file_group="g")
    add_to(table, base, log_file)
    (table.root / base.path).unlink()
    assert repair(table.log, table.root / "one").row()[2:] == (4, 14, 13, 1, "SUCCESS")
    (table.root / log_file.path).unlink()
    before = table.seal()
    result = repair(table.log, table.root / "two", fail_on_missing=False)
    assert result.status.startswith("ERROR: delta files are not stored")
    assert log_file.path in result.status
    assert table.seal() == before


def test_long_statistics_are_truncated_by_default(tmp_path: Path):
    """The new log is less than a fifth of the old one, and what was short is untouched."""
    table = make_table(tmp_path / "t", commits=3, splits=20, checkpoints=(3,))
    before = table.seal()
    original = sum(path.stat().st_size for path in table.log.iterdir())
    assert original > 100_000
    assert repair(table.log, table.target).status == "SUCCESS"
    assert sum(path.stat().st_size for path in table.target.iterdir()) < 0.2 * original
    old, new = table.snapshot().splits(), table.snapshot(REPAIRED).splits()
    for was, now in zip(old, new, strict=True):
        assert ("text",) not in {*now.stats.min_values, *now.stats.max_values}
        assert now.stats.dropped == {("text",)}
        assert now.stats.min_values == {k: v for k, v in was.stats.min_values.items() if k != ("text",)}
        assert now.stats.null_count == was.stats.null_count
    assert table.seal().items() >= before.items()


def test_with_truncation_disabled_the_original_statistics_are_preserved(table: RealTable):
    """Every bound, however long, exactly as it was."""
    off = {"spark.indextables.stats.truncation.enabled": "false"}
    assert repair(table.log, table.target, config=off).status == "SUCCESS"
    assert table.snapshot(REPAIRED).files().equals(table.snapshot().files())
    assert len(table.snapshot(REPAIRED).splits()[0].stats.min_values["text",]) > 1024


def test_the_session_wins_over_the_tables_own_truncation(tmp_path: Path):
    """A table property decides how long bounds may be, unless the caller says otherwise."""
    table = make_table(tmp_path / "t", commits=1, length=50)
    key = "spark.indextables.stats.truncation.maxLength"
    metadata = table.snapshot().metadata
    change = replace(metadata, properties={**metadata.properties, key: "20"})
    table.transaction_log().commit(lambda _: CommitPlan(Append(), "SET", (change,)))
    assert plan_repair(table.log).stats_bytes_saved == 2 * 2 * 54
    assert plan_repair(table.log, config={key: "60"}).stats_bytes_saved == 0


@pytest.mark.parametrize("strategy", ["drop", "truncate", "bound"])
def test_each_strategy_is_the_one_of_the_write_path(table: RealTable, strategy: str):
    """What repair makes of a long bound is what the shared function makes of it."""
    from indextables.core.stats.truncate import TruncationOptions, truncate_stats

    config = Config.of(session={"spark.indextables.stats.truncation.strategy": strategy})
    assert repair(table.log, table.target, config=config).status == "SUCCESS"
    options = TruncationOptions.from_config(config)
    old, new = table.snapshot().splits(), table.snapshot(REPAIRED).splits()
    for was, now in zip(old, new, strict=True):
        assert now.stats == truncate_stats(was.stats, was.schema, options)[0]


def test_without_statistics_nothing_is_said_about_values(table: RealTable):
    """preserveStats=false: the splits stay, what was known of their rows does not."""
    assert repair(table.log, table.target, preserve_stats=False).status == "SUCCESS"
    repaired = table.snapshot(REPAIRED)
    assert repaired.column("stats").null_count == 12
    assert b'"stats"' not in (table.target / "000000000000000001.json").read_bytes()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("repair.parallelism", "0"),
        ("repair.validateSplits", "maybe"),
        ("stats.truncation.maxLength", "long"),
    ],
)
def test_a_bad_option_raises_before_anything_is_read(table: RealTable, key: str, value: str):
    """ConfigError, not an ERROR row: this is about the call, not about the log."""
    with pytest.raises(ConfigError, match=value):
        repair(table.log, table.target, config={f"spark.indextables.{key}": value})
    assert not table.target.exists()


def test_arguments_win_over_the_configuration(table: RealTable):
    """`it.repair(…, fail_on_missing=False)` beats the session's setting."""
    (table.root / table.snapshot().column("key")[0].as_py()).unlink()
    config = {"spark.indextables.repair.failOnMissing": "true"}
    assert repair(table.log, table.target, config=config).status.startswith("ERROR")
    assert repair(table.log, table.target, config=config, fail_on_missing=False).status == "SUCCESS"


# -- validation --------------------------------------------------------------------------------------


class Barrier:
    """A store whose `head` waits until so many calls are under way at once."""

    def __init__(self, inner, parties: int) -> None:
        self._inner = inner
        self._barrier = threading.Barrier(parties, timeout=20)

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    def head(self, key: str):
        if key.startswith("data/") and key.endswith("00.parquet"):
            self._barrier.wait()
        return self._inner.head(key)


def test_splits_are_checked_side_by_side_with_progress(tmp_path: Path):
    """With parallelism 3 three questions are under way at once; the last report is (all, all)."""
    table = make_table(tmp_path / "t", commits=3, splits=100, length=5)
    seen: list[tuple[int, int]] = []
    result = repair(
        table.log,
        table.target,
        parallelism=3,
        opener=lambda uri: Barrier(open_store(uri), 3),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert result.row()[2:] == (3, 300, 300, 0, "SUCCESS")
    assert seen == sorted(seen)
    assert seen[-1] == (300, 300)
    assert len(seen) > 3


@pytest.mark.parametrize("problem", ["403 Forbidden", "timed out"])
def test_only_not_found_means_missing(table: RealTable, problem: str):
    """A store that refuses or fails proves nothing about a split: the run fails, nothing is written."""

    class Refusing(FaultyStore):
        def head(self, key: str):
            raise StorageError(problem, key=key)

    before = table.seal()
    result = repair(table.log, table.target, opener=lambda uri: Refusing(open_store(uri)))
    assert result.status == f"ERROR: {problem}"
    assert table.seal() == before
    with pytest.raises(StorageError, match=problem):
        plan_repair(table.log, opener=lambda uri: Refusing(open_store(uri)))


# -- other stores, other places ------------------------------------------------------------------------


def test_a_log_in_an_object_store_is_repaired_there(s3_server, tmp_path: Path):
    """Source and target on S3; the same result as on disk, and the source's objects are as they were."""
    local = make_table(tmp_path / "t", commits=2)
    uri = s3_server.uri("repair me")
    store = open_store(uri, options=s3_server.options)
    for path in sorted(local.root.rglob("*")):
        if path.is_file():
            store.put(str(path.relative_to(local.root)), path.read_bytes())
    store.delete(local.snapshot().column("key")[0].as_py())
    before = [(m.key, m.size, m.modified_ms) for m in store.list("_transaction_log/")]
    result = repair(
        f"{uri}/_transaction_log",
        f"{uri}/_transaction_log_repaired/",
        storage_options=s3_server.options,
    )
    assert result.row()[2:] == (2, 4, 3, 1, "SUCCESS")
    assert [(m.key, m.size, m.modified_ms) for m in store.list("_transaction_log/")] == before
    assert len([*store.list("_transaction_log_repaired/")]) == 4


def test_paths_resolve_against_the_table_of_the_source_wherever_the_target_is(tmp_path: Path):
    """Relocation: the new log is somewhere else, the splits are looked for beside the old one."""
    table = make_table(tmp_path / "old place", commits=2)
    target = f"memory://{uuid4().hex}/new place/_transaction_log"
    assert repair(f"file://{tmp_path}/old%20place/_transaction_log", target).row()[2:] == (
        2,
        4,
        4,
        0,
        "SUCCESS",
    )
    from indextables.log.transaction_log import TransactionLog

    moved = TransactionLog(open_store(target.rpartition("/")[0])).snapshot()
    assert moved.column("key").equals(table.snapshot().column("key"))


@pytest.mark.parametrize("text", ["/", "s3://bucket", "s3://bucket/", "hdfs://name"])
def test_a_text_that_names_no_log_directory_is_refused(text: str, tmp_path: Path):
    """Before any store is opened."""
    with pytest.raises(RepairError, match="does not name the directory"):
        repair(text, tmp_path / "x")


def test_a_scheme_that_only_an_engine_can_open_is_left_to_its_opener(table: RealTable):
    """hdfs:// is nothing to this library alone; with Spark's opener it is a place like any other."""
    with pytest.raises(StorageError, match="no store for"):
        repair("hdfs://host/t/_transaction_log", "hdfs://host/t/_new")
    asked: list[str] = []

    def opener(uri: str):
        asked.append(uri)
        return open_store(table.root)

    result = repair("hdfs://host/t/_transaction_log", "hdfs://host/t/_new", opener=opener)
    assert result.row()[2:] == (3, 12, 12, 0, "SUCCESS")
    assert asked == ["hdfs://host/t"] * 2


# -- after the repair ----------------------------------------------------------------------------------


def test_a_repaired_log_goes_on_and_knows_no_time_before_it(table: RealTable):
    """Commits, checkpoints and history work; versions of the old log are outside its history."""
    from indextables.errors import VersionNotFoundError

    remove_one(table)
    assert repair(table.log, table.target).status == "SUCCESS"
    log = table.transaction_log(REPAIRED)
    done = log.commit(lambda _: CommitPlan(Append(), "APPEND", (new_split(table.root, 800),)))
    assert (done.version, done.snapshot.num_files) == (2, 12)
    # later rows must win over earlier ones, although the versions start again
    assert [split.seq for split in done.snapshot.splits()][-1] > table.snapshot().splits()[-1].seq
    assert [entry.operation for entry in log.history()] == ["APPEND", "REPAIR", "REPAIR"]
    with pytest.raises(VersionNotFoundError):
        log.snapshot(version=3)


def test_the_vacuum_mark_of_the_old_log_does_not_lock_the_new_one(table: RealTable):
    """It counts versions of the old log; in the new one every writer would be below it."""
    from indextables.log.wire.actions import Vacuum
    from indextables.log.commit.intent import Maintain

    table.transaction_log().commit(lambda _: CommitPlan(Maintain(), "VACUUM", (Vacuum(3),)))
    assert repair(table.log, table.target).status == "SUCCESS"
    log = table.transaction_log(REPAIRED)
    assert log.snapshot().min_read_version == 0
    log.commit(lambda _: CommitPlan(Append(), "APPEND", (new_split(table.root, 801),)))


# -- checkpoints in Parquet parts ----------------------------------------------------------------------


@pytest.fixture
def columnar(tmp_path: Path) -> RealTable:
    """Checkpoints at 2 and 4 in Parquet parts; the commits below the first are gone."""
    made = make_table(
        tmp_path / "t", commits=5, checkpoints=(2, 4), length=1500, checkpoint_format="parquet"
    )
    for version in range(3):
        made.commit(version).unlink()
    return made


def parts(table: RealTable, version: int) -> list[Path]:
    return sorted(table.log.glob(f"{version:018d}.checkpoint.*.parquet"))


def test_a_checkpoint_in_parts_is_a_base_like_any_other(columnar: RealTable):
    """Rows come from the parts, dead ones left out, long bounds shortened."""
    remove_one(columnar)
    columnar.transaction_log(checkpoint_format="parquet").checkpoint()
    for version in range(3, 6):
        columnar.commit(version).unlink()
    expected, before = columnar.snapshot(), columnar.seal()
    plan = plan_repair(columnar.log)
    assert plan.stats_bytes_saved == 9 * 2 * 1504
    assert repair(columnar.log, columnar.target).row()[2:] == (6, 9, 9, 0, "SUCCESS")
    repaired = columnar.snapshot(REPAIRED)
    assert repaired.files().drop_columns("stats").equals(expected.files().drop_columns("stats"))
    assert repaired.splits()[0].stats.dropped == {("text",)}
    assert columnar.seal().items() >= before.items()


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "empty"])
def test_a_damaged_part_makes_its_checkpoint_useless_and_is_named(columnar: RealTable, damage: str):
    """Without another base: an ERROR that names the part. With one: the repair takes that."""
    expected = columnar.snapshot()
    [part] = parts(columnar, 2)
    data = part.read_bytes()
    match damage:
        case "missing":
            part.unlink()
        case "cut":
            part.write_bytes(data[:-10])
        case "flipped":
            part.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
        case "empty":
            part.write_bytes(b"")
    # the checkpoint of version 4 names the part of version 2 again, if it is used at all
    used_again = part.name.encode() in columnar.checkpoint(4).read_bytes()
    result = repair(columnar.log, columnar.target)
    if used_again:
        assert result.status.startswith("ERROR: ")
        assert part.name in result.status
    else:
        assert result.row()[2:] == (5, 10, 10, 0, "SUCCESS")
        assert columnar.snapshot(REPAIRED).column("key").equals(expected.column("key"))
        columnar.checkpoint(4).unlink()
        assert part.name in repair(columnar.log, columnar.root / "two").status


def test_a_part_of_another_checkpoint_does_not_fit(columnar: RealTable):
    """Right name, wrong bytes: its checksum is in the manifest."""
    [one], [two] = parts(columnar, 2), parts(columnar, 4)
    one.write_bytes(two.read_bytes())
    two.unlink()
    columnar.checkpoint(4).unlink()
    assert one.name in repair(columnar.log, columnar.target).status


def test_the_new_checkpoint_is_stored_as_the_options_say(columnar: RealTable):
    """JSON by default for a small table, Parquet parts when asked for; both are whole."""
    assert repair(columnar.log, columnar.target).status == "SUCCESS"
    assert not [*columnar.target.glob("*.parquet")]
    config = {"spark.indextables.checkpoint.format": "parquet"}
    assert repair(columnar.log, columnar.root / "again", config=config).status == "SUCCESS"
    assert len([*(columnar.root / "again").glob("*.parquet")]) == 1
    (columnar.root / "again" / "000000000000000000.json").unlink()
    assert columnar.snapshot("again").files().equals(columnar.snapshot(REPAIRED).files())


# -- a part of a log is not a log --------------------------------------------------------------------


def half_copied(table: RealTable, tmp_path: Path, *names: str) -> RealTable:
    """A table whose repaired log is put in place by hand, file by file, as the advice for object stores says."""
    assert repair(table.log, table.target).ok
    half = RealTable(tmp_path / "half")
    half.log.mkdir(parents=True)
    for name in names:
        (half.log / name).write_bytes((table.target / name).read_bytes())
    return half


PARTS = ["000000000000000000.json", "000000000000000001.json"]
CHECKPOINT = "000000000000000001.checkpoint.json"


@pytest.mark.parametrize("names", [PARTS[:1], [PARTS[0], "_last_checkpoint"]])
def test_a_manual_copy_cut_short_is_refused_by_everybody(table: RealTable, tmp_path: Path, names):
    """Version 0 of a repaired log has no splits; it says that there is a version 1."""
    half = half_copied(table, tmp_path, *names)
    with pytest.raises(LogCorruptedError, match="goes to version 1, but ends at 0"):
        half.snapshot()
    with pytest.raises(LogCorruptedError, match="goes to version 1"):
        add_to(half, new_split(half.root, 900))
    result = repair(half.log, half.target)
    assert result.status.startswith("ERROR") and "version 1 is missing" in result.status
    assert "missing-commit" in {p.kind for p in check_table(half.root).problems}


@pytest.mark.parametrize("names", [PARTS, PARTS[1:] + [CHECKPOINT], [CHECKPOINT], [*PARTS, CHECKPOINT]])
def test_what_is_enough_of_a_repaired_log_is_the_table(table: RealTable, tmp_path: Path, names):
    """Both commits, or the checkpoint of the second one."""
    keys = table.snapshot().column("key")
    assert half_copied(table, tmp_path, *names).snapshot().column("key").equals(keys)


def test_a_log_none_of_whose_splits_is_there_is_not_repaired(table: RealTable):
    """It lies beside another table, or the store is another one: SUCCESS would be an empty table."""
    for key in table.snapshot().column("key").to_pylist():
        (table.root / key).unlink()
    result = repair(table.log, table.target)
    assert result.status.startswith("ERROR: none of the 12 splits is where the log says")
    assert not table.target.exists() or not list(table.target.iterdir())
    assert repair(table.log, table.target, validate_splits=False).ok


@pytest.mark.parametrize("needed", [False, True])
def test_an_unreadable_file_of_the_log_stops_a_repair_only_if_it_is_needed(
    tmp_path: Path, needed: bool
):
    """Named in the plan either way."""
    table = make_table(tmp_path / "t", commits=4, checkpoints=(2,))
    key = f"_transaction_log/{4 if needed else 1:018d}.json"

    class Unreadable(FaultyStore):
        def get_range(self, name, start, length):
            return self._refuse(name) or super().get_range(name, start, length)

        def get(self, name):
            return self._refuse(name) or super().get(name)

        def _refuse(self, name):
            if name == key:
                raise StorageError(f"{name!r}: permission denied", key=name)

    plan = plan_repair(table.log, opener=lambda uri: Unreadable(open_store(uri)))
    assert [finding.needed for finding in plan.unreadable] == [needed]
    assert "permission denied" in str(plan.unreadable[0])
    assert (plan.error is not None) == needed
