"""COMPACT, RESTORE and ROLLBACK as SQL text: how they may be written, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.config import Config
from indextables.errors import ConfigError, SqlSyntaxError, VersionNotFoundError
from indextables.log.transaction_log import TransactionLog
from indextables.sql.commands import find, may_be_ours
from indextables.storage import open_store
from indextables.table.table import Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("min", pa.int64())])


@dataclass(frozen=True)
class Session:
    """What a command needs to run."""

    config: Config = field(default_factory=lambda: Config({}))

    def open_log(self, location: str) -> TransactionLog:
        return TransactionLog(open_store(location), self.config)


def sql(text: str) -> dict:
    assert may_be_ours(text)
    command, arguments = find(text)
    (row,) = command.run(Session(), arguments).to_pylist()
    return row


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two slices; the first has two logs, the second one."""
    found = Table.create(tmp_path / "t", SCHEMA, record_key=["id"])
    for ids in ([1, 2], [11, 12], [1, 11], [2]):
        found.upsert(pa.table({"id": ids, "min": [found.version] * len(ids)}, SCHEMA))
    return found


def values(table: Table) -> dict:
    return {row["id"]: row["min"] for row in table.scan().to_arrow().to_pylist()}


def test_compact_answers_what_it_did(table: Table):
    """By path in quotes or as a table, for some slices or all; the rows stay."""
    expected = values(table)
    row = sql(f"COMPACT INDEXTABLES '{table.uri}' MIN LOGS 2")
    assert row == {
        "table_path": table.uri,
        "version": 5,
        "compacted_slices": 1,
        "removed_files": 3,
        "added_files": 1,
    }
    assert (
        sql(f"compact indextables '{table.uri}' where `min` > 99 min logs 1")["compacted_slices"] == 0
    )
    assert sql(f"COMPACT INDEXTABLES '{table.uri}' MIN PERCENT 100000")["version"] == 5
    assert sql(f"COMPACT TABLE indextables.`{table.uri}` WHERE id > 10;")["compacted_slices"] == 1
    assert sql(f"COMPACT indextables.`{table.uri}`") == {
        "table_path": table.uri,
        "version": 6,
        "compacted_slices": 0,
        "removed_files": 0,
        "added_files": 0,
    }
    assert values(table) == expected


def test_restore_goes_to_a_version_or_a_moment(table: Table):
    """With or without Delta's AS OF."""
    row = sql(f"RESTORE INDEXTABLES '{table.uri}' TO VERSION 2")
    assert row == {"table_path": table.uri, "version": 5, "removed_files": 3, "restored_files": 0}
    assert values(table) == {1: 0, 2: 0, 11: 1, 12: 1}
    moment = datetime.fromtimestamp(table.history()[-2].timestamp_ms / 1000, UTC).isoformat()
    assert sql(f"RESTORE TABLE indextables.`{table.uri}` TO TIMESTAMP AS OF '{moment}'")["version"] == 6
    assert values(table) == {1: 0, 2: 0}
    assert sql(f"restore indextables.`{table.uri}` to version as of 4")["restored_files"] == 4
    with pytest.raises(VersionNotFoundError):
        sql(f"RESTORE INDEXTABLES '{table.uri}' TO VERSION 77")
    with pytest.raises(ConfigError, match="not a date or time"):
        sql(f"RESTORE INDEXTABLES '{table.uri}' TO TIMESTAMP 'yesterday'")


def test_rollback_undoes_one_version(table: Table):
    """And says how many files that were."""
    row = sql(f"ROLLBACK INDEXTABLES '{table.uri}' VERSION 4")
    assert row == {"table_path": table.uri, "version": 5, "removed_files": 1, "restored_files": 0}
    assert values(table)[2] == 0
    assert sql(f"ROLLBACK TABLE indextables.`{table.uri}` VERSION 5")["restored_files"] == 1
    assert values(table)[2] == 3


@pytest.mark.parametrize(
    "text",
    [
        "COMPACT INDEXTABLES '/t' MIN LOGS few",
        "COMPACT INDEXTABLES '/t' MIN PERCENT 5 MIN LOGS 3",
        "COMPACT INDEXTABLES /t",
        "RESTORE INDEXTABLES '/t' TO 3",
        "RESTORE TABLE indextables.`/t` TO VERSION x",
        "ROLLBACK INDEXTABLES '/t'",
        "ROLLBACK indextables.`/t` TO VERSION 3",
    ],
)
def test_what_goes_wrong_shows_how_it_is_written(text: str):
    """It is never handed to an engine that does not know it."""
    with pytest.raises(SqlSyntaxError, match="not how the command is written"):
        find(text)


@pytest.mark.parametrize("text", ["ROLLBACK", "RESTORE TABLE db.t TO VERSION AS OF 3", "COMPACT t"])
def test_statements_of_others_are_left_to_them(text: str):
    """The words alone make no command of ours."""
    assert find(text) is None
