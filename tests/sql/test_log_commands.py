"""REPAIR and the other log commands as SQL text: how they may be written, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.config import Config
from indextables.errors import ConfigError, RepairError, SqlSyntaxError
from indextables.log.transaction_log import TransactionLog
from indextables.sql.commands import find
from indextables.storage import open_store
from indextables.table.table import Table
from support.damage import RealTable, make_table, remove_one


@dataclass(frozen=True)
class Session:
    """What a command needs to run."""

    config: Config = field(default_factory=lambda: Config({}))

    def open_log(self, location: str) -> TransactionLog:
        return TransactionLog(open_store(location), self.config)


def sql(text: str, **settings: str) -> pa.Table:
    command, arguments = find(text)
    options = {f"spark.indextables.{name}": value for name, value in settings.items()}
    return command.run(Session(Config.of(session=options)), arguments)


SPELLINGS = [
    "REPAIR INDEXFILES TRANSACTION LOG '{0}' AT LOCATION '{1}'",
    "repair indexfiles transaction log '{0}' at location '{1}';",
    'Repair  IndexFiles\n\tTransaction Log "{0}"\n  At Location "{1}" ; ',
    "/* fix */ REPAIR INDEXFILES TRANSACTION LOG '{0}' -- here\n AT LOCATION r'{1}'",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_repair_in_any_spelling(tmp_path: Path, text: str):
    """Case, white space, quotes, comments and a semicolon make no difference; types are the seed's."""
    table = make_table(tmp_path / "t", commits=2)
    answer = sql(text.format(table.log, table.target))
    assert answer.schema == pa.schema(
        [
            ("source_path", pa.string()),
            ("target_path", pa.string()),
            ("source_version", pa.int64()),
            ("total_splits", pa.int32()),
            ("valid_splits", pa.int32()),
            ("missing_splits", pa.int32()),
            ("status", pa.string()),
        ]
    )
    assert [tuple(row.values()) for row in answer.to_pylist()] == [
        (str(table.log), str(table.target), 2, 4, 4, 0, "SUCCESS")
    ]


def test_quotes_in_paths_are_escaped(tmp_path: Path):
    """Backslash or doubled quote, as in Spark's own texts."""
    table = make_table(tmp_path / "it's", commits=1)
    text = str(table.log)
    one, two = text.replace("'", "\\'"), text.replace("'", "''")
    answer = sql(f"REPAIR INDEXFILES TRANSACTION LOG '{one}' AT LOCATION '{two}_new'")
    assert answer.column("status").to_pylist() == ["SUCCESS"]
    assert (tmp_path / "it's" / "_transaction_log_new" / "_last_checkpoint").exists()


@pytest.mark.parametrize(
    "text",
    [
        "REPAIR INDEXFILES TRANSACTION LOG 'a'",
        "REPAIR INDEXFILES TRANSACTION LOG a AT LOCATION b",
        "REPAIR INDEXFILES TRANSACTION LOG 'a' AT LOCATION 'b' PLEASE",
        "PURGE INDEXTABLES 'a'",
        "PURGE INDEXTABLES 'a' OLDER THAN 7 WEEKS",
        "TRUNCATE INDEXTABLES TIME TRAVEL",
    ],
)
def test_a_command_of_ours_that_is_written_wrong_shows_how_it_is_written(text: str):
    """Not Spark's syntax error, which knows nothing of these commands."""
    with pytest.raises(SqlSyntaxError) as caught:
        find(text)
    assert text.split()[0] in caught.value.hint


@pytest.mark.parametrize(
    "text", ["REPAIR TABLE t", "SELECT 'REPAIR INDEXFILES'", "TRUNCATE TABLE t", "ANALYZE TABLE t"]
)
def test_other_statements_are_the_engines(text: str):
    """They look similar and are none of ours."""
    assert find(text) is None


def test_repair_takes_its_options_from_the_session(tmp_path: Path):
    """failOnMissing, validateSplits and truncation, by their keys."""
    table = make_table(tmp_path / "t", commits=1)
    (tmp_path / "t" / table.snapshot().column("key")[0].as_py()).unlink()
    text = f"REPAIR INDEXFILES TRANSACTION LOG '{table.log}' AT LOCATION '{table.target}'"
    failed = sql(text, **{"repair.failOnMissing": "true"}).to_pylist()[0]
    assert failed["status"].startswith("ERROR: 1 splits")
    assert failed["source_version"] == -1
    unchecked = {"repair.validateSplits": "false", "stats.truncation.enabled": "false"}
    assert sql(text, **unchecked).to_pylist()[0]["valid_splits"] == 2
    assert table.snapshot("_transaction_log_repaired").files().equals(table.snapshot().files())
    with pytest.raises(RepairError, match="not empty"):
        sql(text)


@pytest.fixture
def table(tmp_path: Path) -> RealTable:
    made = make_table(tmp_path / "t", commits=4, checkpoints=(2,), length=5)
    remove_one(made)
    return made


def test_describe_shows_the_actions_from_the_newest_checkpoint_on(table: RealTable):
    """One row per action; INCLUDE ALL shows every file there is."""
    rows = sql(f"DESCRIBE INDEXTABLES TRANSACTION LOG '{table.root}'").to_pylist()
    assert {row["version"] for row in rows} == {2, 3, 4, 5}
    adds = [row for row in rows if row["action"] == "add"]
    assert len(adds) == 8
    assert all(row["path"] and row["size"] and row["stats"] for row in adds)
    assert [row["path"] for row in rows if row["action"] == "remove"] == [adds[0]["path"]]
    everything = sql(f"DESCRIBE INDEXTABLES TRANSACTION LOG '{table.root}' INCLUDE ALL").to_pylist()
    assert {row["version"] for row in everything} == set(range(6))
    assert len(everything) > len(rows)


def test_describe_shows_a_damaged_log_line_by_line(table: RealTable):
    """What cannot be read is a row too."""
    table.commit(3).write_bytes(b'{"txn":{"appId":"a","version":1}}\n{"add"')
    rows = sql(f"DESC INDEXTABLES TRANSACTION LOG '{table.root}' INCLUDE ALL").to_pylist()
    [bad] = [row for row in rows if row["action"] == "unreadable"]
    assert (bad["file"], bad["line"]) == (f"{3:018d}.json", 2)
    assert "not JSON" in bad["content"]


def test_checkpoint_writes_one(table: RealTable):
    """And says of which version."""
    [row] = sql(f"CHECKPOINT INDEXTABLES '{table.root}'").to_pylist()
    assert (row["version"], row["num_files"]) == (5, 7)
    assert table.checkpoint(5).exists()


def test_truncate_time_travel_leaves_one_version(table: RealTable):
    """A dry run names the files, the command deletes them, and the table is what it was."""
    keys, before = table.snapshot().column("key"), table.seal()
    planned = sql(f"TRUNCATE INDEXTABLES TIME TRAVEL '{table.root}' DRY RUN").to_pylist()
    assert table.seal() == before
    assert [row["deleted"] for row in planned] == [False] * 6
    done = sql(f"TRUNCATE INDEXTABLES TIME TRAVEL '{table.root}'").to_pylist()
    assert [row["path"] for row in done] == [row["path"] for row in planned]
    assert sorted(path.name for path in table.log.iterdir()) == [
        f"{5:018d}.checkpoint.json",
        f"{5:018d}.json",
        "_last_checkpoint",
    ]
    assert table.snapshot().column("key").equals(keys)
    remove_one(table)
    assert table.snapshot().version == 6


def test_purge_deletes_what_the_log_removed(table: RealTable):
    """A moment ago, which is less than seven days and has to be allowed; a dry run deletes nothing."""
    gone = next(iter(table.snapshot().tombstones.column("key").to_pylist()))
    purge = f"PURGE INDEXTABLES '{table.root}' OLDER THAN"
    assert sql(f"{purge} 7 DAYS").to_pylist() == []
    [row] = sql(f"{purge} 0 HOURS DRY RUN").to_pylist()
    assert (row["path"], row["deleted"]) == (gone, False)
    with pytest.raises(ConfigError, match="ALLOW SHORT RETENTION"):
        sql(f"{purge} 0 DAYS")
    assert (table.root / gone).exists()
    [row] = sql(f"{purge} 0 DAYS ALLOW SHORT RETENTION").to_pylist()
    assert (row["path"], row["deleted"]) == (gone, True)
    assert not (table.root / gone).exists()


def test_analyze_computes_what_is_missing(tmp_path: Path):
    """Statistics dropped before are there again, of the columns named."""
    table = Table.create(tmp_path / "t", pa.schema([("a", pa.int64()), ("b.c", pa.string())]))
    table.append(pa.table({"a": [1, 2], "b.c": ["x", "y"]}))
    table.drop_statistics(["a", "`b.c`"])
    text = f"ANALYZE INDEXTABLES '{tmp_path / 't'}' COMPUTE STATISTICS"
    [row] = sql(f"{text} FOR COLUMNS (`b.c`)").to_pylist()
    assert row["analyzed_splits"] == 1
    [split] = Table(tmp_path / "t").snapshot().splits()
    assert split.stats.min_values == {("b.c",): "x"}
    sql(text)
    [split] = Table(tmp_path / "t").snapshot().splits()
    assert split.stats.min_values == {("a",): 1, ("b.c",): "x"}


def test_optimize_packs_small_splits_where_asked_and_lays_rows_along_a_curve(tmp_path: Path):
    """Rows stay; WHERE keeps the rest of the table as it is."""
    table = Table.create(
        tmp_path / "t", pa.schema([("a", pa.int64()), ("p", pa.string())]), partition_by=["p"]
    )
    for number in range(4):
        table.append(pa.table({"a": [number, number + 10], "p": ["x", "y"]}))
    text = f"OPTIMIZE INDEXTABLES '{tmp_path / 't'}'"
    [row] = sql(f"{text} WHERE p = 'x'").to_pylist()
    assert (row["removed_splits"], row["added_splits"]) == (4, 1)
    [row] = sql(f"{text} ZORDER BY (a)").to_pylist()
    assert (row["removed_splits"], row["added_splits"]) == (4, 1)
    assert sorted(table.scan().to_arrow().column("a").to_pylist()) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert table.snapshot().num_files == 2
    with pytest.raises(SqlSyntaxError, match="field of a column"):
        sql(f"{text} ZORDER BY (a.b)")
