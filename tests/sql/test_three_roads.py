"""Every log command exists in SQL, in Python and on the command line, and does the same on each road."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables as it
from indextables.sql.commands import COMMANDS
from support.commands import run, run_json

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("text", pa.string())])
NOW = {"spark.indextables.vacuum.retention": "0 hours"}


@dataclass(frozen=True)
class Verb:
    """One command on its three roads; each returns the fact that the roads are compared by."""

    sql: str
    python: Callable[[it.Table], Any]
    words: tuple[str, ...]
    from_sql: Callable[[list[dict]], Any] = len
    from_cli: Callable[[Any], Any] = len


def column(name):
    return lambda rows: rows[0][name]


def field(name):
    return lambda facts: facts[name]


VERBS = {
    "DESCRIBE": Verb(
        "DESCRIBE INDEXTABLES TRANSACTION LOG '{0}'",
        lambda t: t.describe_log().num_rows,
        ("log", "{0}"),
    ),
    "DESCRIBE … INCLUDE ALL": Verb(
        "DESCRIBE INDEXTABLES TRANSACTION LOG '{0}' INCLUDE ALL",
        lambda t: t.describe_log(include_all=True).num_rows,
        ("log", "{0}", "--all"),
    ),
    "CHECKPOINT": Verb(
        "CHECKPOINT INDEXTABLES '{0}'",
        lambda t: t.checkpoint(),
        ("checkpoint", "{0}"),
        column("version"),
        field("checkpoint"),
    ),
    "PURGE … DRY RUN": Verb(
        "PURGE INDEXTABLES '{0}' OLDER THAN 0 HOURS DRY RUN",
        lambda t: len(t.vacuum(options=NOW).files),
        ("vacuum", "{0}", "--retention", "0 hours"),
    ),
    "PURGE": Verb(
        "PURGE INDEXTABLES '{0}' OLDER THAN 0 HOURS ALLOW SHORT RETENTION",
        lambda t: len(t.vacuum(apply=True, allow_short_retention=True, options=NOW).files),
        ("vacuum", "{0}", "--retention", "0 hours", "--allow-short-retention", "--apply"),
    ),
    "VACUUM … DRY RUN": Verb(
        "VACUUM indextables.`{0}` RETAIN 0 HOURS DRY RUN",
        lambda t: len(t.vacuum(options=NOW).files),
        ("vacuum", "{0}", "--retention", "0 hours"),
    ),
    "VACUUM": Verb(
        "VACUUM indextables.`{0}` RETAIN 0 HOURS ALLOW SHORT RETENTION",
        lambda t: len(t.vacuum(apply=True, allow_short_retention=True, options=NOW).files),
        ("vacuum", "{0}", "--retention", "0 hours", "--allow-short-retention", "--apply"),
    ),
    "TRUNCATE … DRY RUN": Verb(
        "TRUNCATE INDEXTABLES TIME TRAVEL '{0}' DRY RUN",
        lambda t: len(t.truncate_time_travel().files),
        ("truncate-time-travel", "{0}"),
    ),
    "TRUNCATE": Verb(
        "TRUNCATE INDEXTABLES TIME TRAVEL '{0}'",
        lambda t: len(t.truncate_time_travel(apply=True).files),
        ("truncate-time-travel", "{0}", "--apply"),
    ),
    "ANALYZE": Verb(
        "ANALYZE INDEXTABLES '{0}' COMPUTE STATISTICS FOR COLUMNS (text)",
        lambda t: t.analyze(["text"]).metrics["numAnalyzedFiles"],
        ("analyze", "{0}", "--column", "text"),
        column("analyzed_splits"),
        field("numAnalyzedFiles"),
    ),
    "OPTIMIZE": Verb(
        "OPTIMIZE INDEXTABLES '{0}' WHERE id >= 0 ZORDER BY (id, text)",
        lambda t: t.optimize("id >= 0", z_order_by=["id", "text"]).metrics["numRemovedFiles"],
        ("optimize", "{0}", "--where", "id >= 0", "--zorder-by", "id,text"),
        column("removed_splits"),
        field("numRemovedFiles"),
    ),
    "REPAIR": Verb(
        "REPAIR INDEXFILES TRANSACTION LOG '{0}/_transaction_log' AT LOCATION '{0}/new'",
        lambda t: it.repair(f"{t.uri}/_transaction_log", f"{t.uri}/new").valid_splits,
        ("repair", "{0}/_transaction_log", "--at-location", "{0}/new"),
        column("valid_splits"),
        column("valid_splits"),
    ),
    "RESTORE": Verb(
        "RESTORE INDEXTABLES '{0}' TO VERSION 2",
        lambda t: t.restore(2).version,
        ("restore", "{0}", "--version", "2"),
        column("version"),
        field("version"),
    ),
    "ROLLBACK": Verb(
        "ROLLBACK INDEXTABLES '{0}' VERSION 2",
        lambda t: t.rollback(2).version,
        ("rollback", "{0}", "--version", "2"),
        column("version"),
        field("version"),
    ),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """Four appends, a checkpoint between them, and statistics of one column dropped."""
    path = tmp_path_factory.mktemp("roads") / "t"
    table = it.Table.create(path, SCHEMA)
    for i in range(4):
        table.append(pa.table({"id": [i, i + 10], "text": ["a", "b"]}, SCHEMA))
        if i == 1:
            table.checkpoint()
    table.drop_statistics(["text"])
    return path


@pytest.mark.parametrize("name", sorted(VERBS))
def test_the_three_roads_do_the_same(original, tmp_path, name):
    """The same answer, and the same table afterwards."""
    verb = VERBS[name]
    here = {road: tmp_path / road for road in ("sql", "python", "cli")}
    for path in here.values():
        shutil.copytree(original, path)
    answers = {
        "sql": verb.from_sql(run_json("sql", verb.sql.format(here["sql"]))),
        "python": verb.python(it.Table(here["python"])),
        "cli": verb.from_cli(run_json(*(word.format(here["cli"]) for word in verb.words))),
    }
    assert len(set(answers.values())) == 1, answers
    shown = {json.dumps(contents(path), sort_keys=True) for path in here.values()}
    assert len(shown) == 1


def contents(path):
    """What a reader sees: rows, versions, and what the statistics of each split say."""
    table = it.Table(path)
    return {
        "rows": sorted(map(str, table.scan().to_arrow().to_pylist())),
        "history": [(entry.version, entry.operation) for entry in table.history()],
        "files": table.snapshot().num_files,
        "statistics": [(info.column, info.complete) for info in table.statistics_info()],
        "stored": len(list(path.rglob("*.parquet"))),
    }


def test_compact_on_three_roads(tmp_path):
    """A keyed table with one log file."""
    answers, rows = set(), set()
    for road in ("sql", "python", "cli"):
        table = it.Table.create(tmp_path / road, SCHEMA, record_key=["id"])
        table.upsert(pa.table({"id": [1, 2], "text": ["a", "b"]}, SCHEMA))
        table.upsert(pa.table({"id": [2], "text": ["B"]}, SCHEMA))
        if road == "sql":
            answers.add(
                run_json("sql", f"COMPACT INDEXTABLES '{tmp_path / road}'")[0]["compacted_slices"]
            )
        elif road == "python":
            answers.add(table.compact().metrics["numCompactedSlices"])
        else:
            answers.add(run_json("compact", tmp_path / road)["numCompactedSlices"])
        rows.add(str(sorted(map(str, table.scan().to_arrow().to_pylist()))))
    assert answers == {1}
    assert len(rows) == 1


def test_no_command_of_sql_was_forgotten():
    """A new verb needs its row in the table above."""
    verbs = {command.usage.split()[0].split("|")[0] for command in COMMANDS}
    assert verbs == {name.split()[0] for name in VERBS} | {"COMPACT"}


def test_every_command_that_deletes_asks_for_apply():
    """SQL has DRY RUN, Python and the command line have apply."""
    for name in ("vacuum", "truncate-time-travel"):
        assert "--apply" in run(name, "--help")[1]
