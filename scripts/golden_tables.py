"""Write the golden tables: one small table for each feature of the format, read by the tests for ever.

    python scripts/golden_tables.py          writes the tables that are not there yet
    python scripts/golden_tables.py --list   says which there are

A table that is checked in is never written again: it stands for all the tables of its kind that users have. A new
feature, or a new version of the format, adds a table; `docs/releases.md` says when. Beside each table lies
`expected.json` with the rows of every version and the files that conditions keep.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import indextables as it
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Txn
from indextables.ops.append import append
from indextables.storage.open import open_store

FOLDER: Final = Path(__file__).parents[1] / "tests" / "golden" / "v1"
LOG: Final = "_transaction_log"
PREFIX: Final = "spark.indextables."

PLAIN: Final = pa.schema([("id", pa.int64()), ("name", pa.string())])
KEYED: Final = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("score", pa.float64())]
)


def rows(schema: pa.Schema, *values: Sequence[Any]) -> pa.Table:
    """Returns the rows as a table."""
    columns = list(zip(*values, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def appended(path: str) -> it.Table:
    """Returns a table of three appends."""
    table = it.Table.create(path, PLAIN)
    for first in (1, 11, 21):
        table.append(rows(PLAIN, *((i, f"name {i}") for i in range(first, first + 3))))
    return table


def plain(path: str) -> list[str]:
    """Appends, a delete that rewrites a file, one that drops a file, an overwrite of a part."""
    table = appended(path)
    table.delete("id = 2")
    table.delete("id BETWEEN 11 AND 13")
    table.overwrite(rows(PLAIN, (22, "new"), (23, None)), where="id >= 22 AND id <= 23")
    return ["id = 1", "id > 20", "name IS NULL", "name = 'new'"]


def types(path: str) -> list[str]:
    """Every type that has statistics, at its edges, and those that have none."""
    schema = pa.schema(
        [
            ("b", pa.bool_()),
            ("i8", pa.int8()),
            ("i16", pa.int16()),
            ("i32", pa.int32()),
            ("i64", pa.int64()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("m", pa.decimal128(20, 4)),
            ("s", pa.string()),
            ("x", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("local", pa.timestamp("us")),
            ("list", pa.list_(pa.int32())),
            ("map", pa.map_(pa.string(), pa.int64())),
            ("st", pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])),
        ]
    )
    table = it.Table.create(path, schema)
    inf, nan = float("inf"), float("nan")
    utc = dt.UTC
    low = (False, -(2**7), -(2**15), -(2**31), -(2**63), -inf, -inf, Decimal("-1.5000"), "", b"",
           dt.date(1, 1, 1), dt.datetime(1, 1, 1, tzinfo=utc), dt.datetime(1, 1, 1), [], [],
           {"a": -1, "b": {"c": None}})  # fmt: skip
    high = (True, 2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, nan, nan, Decimal("99999999.9999"), "\U0010ffff",
            b"\xff\xff", dt.date(9999, 12, 31), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, utc),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999), [1, None], [("k", 1)],
            {"a": 7, "b": {"c": "z"}})  # fmt: skip
    table.append(rows(schema, low, (None,) * len(schema)))
    table.append(rows(schema, high))
    table.append(rows(schema, (None,) * len(schema)))
    return [
        "b", "i64 = 9223372036854775807", "d > 5", "d = -0.0", "m < 0", "s = ''", "day < DATE'0002-01-01'",
        "at > TIMESTAMP'9999-01-01 00:00:00'", "st.b.c = 'z'", "i8 IS NULL", "x = X'FFFF'",
    ]  # fmt: skip


def partitioned(path: str) -> list[str]:
    """Partition values of several types, with NULL and text that no directory name can hold."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("city", pa.string())])
    table = it.Table.create(path, schema, partition_by=["day", "city"])
    days = [dt.date(2024, 1, 1), None]
    values = [(i, days[i % 2], c) for i, c in enumerate(["Rome", "a/b=c%20 d", "Zoë", None])]
    table.append(rows(schema, *values))
    table.append(rows(schema, (9, dt.date(1969, 12, 31), "Rome")))
    return ["city = 'Rome'", "day IS NULL", "city = 'a/b=c%20 d'", "day < DATE'1970-01-01' AND id = 9"]


def truncated(path: str) -> list[str]:
    """A long text under each strategy of truncation."""
    schema = pa.schema([(name, pa.string()) for name in ("dropped", "truncated", "bound")])
    table = it.Table.create(
        path,
        schema,
        properties={
            f"{PREFIX}stats.truncation.maxLength": "20",
            f"{PREFIX}stats.truncation.column.truncated.strategy": "truncate",
            f"{PREFIX}stats.truncation.column.bound.strategy": "bound",
        },
    )
    for letter in "abc":
        table.append(rows(schema, (letter * 50,) * 3, (letter * 60,) * 3))
    return [f"{c} = '{'b' * 50}'" for c in schema.names] + ["bound > 'c'", "truncated LIKE 'a%'"]


def json_checkpoint(path: str) -> list[str]:
    """A checkpoint in JSON, tombstones and a txn in it, and commits after it."""
    table = appended(path)
    table.delete("id = 1")
    log = TransactionLog(open_store(path))
    append(
        log, it.Table(path)._executor, rows(PLAIN, (29, "batch")), txn=Txn("stream", 7, 1700000000000)
    )
    table.checkpoint()
    table.append(rows(PLAIN, (31, "after")))
    return ["id = 31", "id < 10"]


def parquet_checkpoint(path: str) -> list[str]:
    """A checkpoint of Parquet parts, a dead row in one, and commits after it."""
    table = it.Table.create(path, PLAIN, properties={f"{PREFIX}checkpoint.format": "parquet"})
    for i in range(6):
        table.append(rows(PLAIN, (i, f"name {i}")))
    table.checkpoint()
    table.delete("id = 3")
    table.append(rows(PLAIN, (6, None)))
    table.checkpoint()
    table.append(rows(PLAIN, (7, "after")))
    return ["id = 3", "id >= 5", "name IS NULL"]


def evolved(path: str) -> list[str]:
    """Columns added and widened: files of three schemas."""
    table = it.Table.create(path, pa.schema([("n", pa.int32()), ("f", pa.float32())]))
    table.append(
        pa.table({"n": pa.array([1, 2], pa.int32()), "f": pa.array([0.5, None], pa.float32())})
    )
    wider = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("added", pa.string())])
    table.evolve(wider)
    table.append(rows(wider, (2**40, 0.1, "x")))
    return ["n = 1", "n > 100", "added IS NULL", "added = 'x'", "f = 0.5"]


def delta_files(path: str) -> list[str]:
    """Slices: base files with delta files of data and of deleted keys, and a compacted slice."""
    table = it.Table.create(path, KEYED, record_key=["id"])
    table.upsert(rows(KEYED, (1, "Ada", 1.0), (2, "Grace", 2.0), (3, "Edsger", 3.0)))
    table.upsert(rows(KEYED, (2, "Grace Hopper", 2.5), (4, "Barbara", 4.0)))
    table.delete("id = 3")
    table.compact(min_logs=1)
    table.upsert(rows(KEYED, (1, "Ada Lovelace", None)))
    table.delete("id = 4")
    return ["id = 2", "id = 3", "name = 'Ada'", "score > 2"]


def partial_updates(path: str) -> list[str]:
    """Delta files that set some columns only."""
    table = it.Table.create(path, KEYED, record_key=["id"], merge_mode="columns")
    table.upsert(rows(KEYED, (1, "one", 1.0), (2, "two", 2.0)))
    part = pa.schema([KEYED.field("id"), KEYED.field("score")])
    table.upsert(rows(part, (1, 100.0)))
    return ["id = 1 AND score = 100", "name = 'one' AND score > 50", "score = 1"]


def vacuumed(path: str) -> list[str]:
    """The mark of a vacuum, and a log whose oldest versions are gone."""
    table = appended(path)
    table.overwrite(rows(PLAIN, (1, "only")))
    table.vacuum(
        apply=True, allow_short_retention=True, options={f"{PREFIX}vacuum.retention": "0 hours"}
    )
    table.append(rows(PLAIN, (2, "more")))
    return ["id = 1"]


def went_back(path: str) -> list[str]:
    """A rolled back commit, and a restored version."""
    table = appended(path)
    table.rollback(2)
    table.overwrite(rows(PLAIN, (99, "wrong")))
    table.restore(4)
    return ["id = 11", "id = 99"]


def analyzed(path: str) -> list[str]:
    """Statistics taken away from one column and built anew for another."""
    table = appended(path)
    table.drop_statistics(["name", "id"])
    table.analyze(["id"])
    return ["id = 1", "name = 'name 1'"]


def twenty_digits(path: str) -> list[str]:
    """Versions of 20 digits, commits in gzip with and without the two bytes before it."""
    appended(path)
    log = Path(path) / LOG
    for number in range(4):
        old = log / f"{number:018}.json"
        body = gzip.compress(old.read_bytes(), mtime=0)
        (log / f"{number:020}.json").write_bytes(b"\x01\x01" + body if number % 2 else body)
        old.unlink()
    (log / "_last_checkpoint").unlink(missing_ok=True)
    return ["id = 1"]


def other_writer(path: str) -> list[str]:
    """A log without trailers: statistics as text, unknown actions, unknown fields, absolute-looking paths."""
    folder = Path(path)
    (folder / LOG).mkdir(parents=True)
    schema = it.Table.create(f"{path}-schema", PLAIN).snapshot().metadata.schema
    shutil.rmtree(f"{path}-schema")
    from indextables.core.types import schema_to_json

    lines = []
    for number, (low, high) in enumerate([(1, 3), (4, 6)]):
        name = f"part {number}.parquet"
        pq.write_table(rows(PLAIN, *((i, f"n{i}") for i in range(low, high + 1))), folder / name)
        stats = {"numRecords": 3, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0},
                 "tightBounds": True}  # fmt: skip
        add = {"path": name.replace(" ", "%20"), "partitionValues": {}, "size": (folder / name).stat().st_size,
               "modificationTime": 1700000000000, "dataChange": True, "stats": json.dumps(stats), "theirs": [1]}  # fmt: skip
        lines.append({"add": add})
    metadata = {"id": "0b9d", "format": {"provider": "parquet", "options": {}}, "configuration": {"owner": "x"},
                "schemaString": schema_to_json(schema), "partitionColumns": [], "createdTime": 1700000000000}  # fmt: skip
    first = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 1}}, {"metaData": metadata}, lines[0],
             {"domain": {"name": "kept", "value": 1}}]  # fmt: skip
    commits = [first, [lines[1], {"commitInfo": {"timestamp": 1700000001000, "operation": "WRITE"}}]]
    for version, actions in enumerate(commits):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (folder / LOG / f"{version:018}.json").write_text(text, "utf-8")
    return ["id = 5", "id = 1"]


def converted(path: str) -> list[str]:
    """Adopted Parquet files of a Hive-style directory."""
    for city in ("Rome", "__HIVE_DEFAULT_PARTITION__"):
        folder = Path(path) / f"city={city}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), folder / "part-0.parquet")
    it.convert(path)
    return ["city = 'Rome'", "city IS NULL", "id > 5"]


def repaired(path: str) -> list[str]:
    """A log that a repair wrote, put in the place of the damaged one."""
    table = appended(path)
    table.delete("id = 1")
    (Path(path) / LOG / "_last_checkpoint").unlink(missing_ok=True)
    it.repair(f"{path}/{LOG}", f"{path}/{LOG}_repaired")
    shutil.rmtree(f"{path}/{LOG}")
    (Path(path) / f"{LOG}_repaired").rename(f"{path}/{LOG}")
    it.Table(path).append(rows(PLAIN, (41, "after the repair")))
    return ["id = 41", "id = 1"]


TABLES: Final[dict[str, Callable[[str], list[str]]]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        plain, types, partitioned, truncated, json_checkpoint, parquet_checkpoint, evolved, delta_files,
        partial_updates, vacuumed, went_back, analyzed, twenty_digits, other_writer, converted, repaired,
    )
}  # fmt: skip


def expected(path: str, conditions: Sequence[str]) -> dict[str, Any]:
    """Returns the rows of every readable version, and what each condition keeps and finds in the newest."""
    table = it.Table(path)
    versions = {}
    for version in range(table.version + 1):
        try:
            versions[str(version)] = texts(table.scan(version=version).to_arrow())
        except it.errors.IndexTablesError:
            continue  # vacuumed, or before the first commit that is kept
    plans = {
        condition: {
            "files": table.plan(condition).report.kept_files,
            "rows": texts(table.scan(condition).to_arrow()),
        }
        for condition in conditions
    }
    about = TABLES[Path(path).name].__doc__
    return {"about": about, "state": state_of(table), "versions": versions, "conditions": plans}


def state_of(table: it.Table) -> dict[str, Any]:
    """Returns everything the newest version says of the table and of each of its files."""
    now = table.snapshot()
    return {
        "min_read_version": now.min_read_version,
        "protocol": repr(now.protocol),
        "properties": dict(now.properties),
        "txns": [repr(txn) for _, txn in sorted(now.txns.items())],
        "removed": [repr(row) for row in now.tombstones.to_pylist()],
        "files": [
            {
                "facts": repr((split.path, split.size, split.seq, split.schema_id, split.file_group,
                               split.kind, split.block, split.data_change, split.modification_time)),
                "partition": dict(split.partition_values),
                "statistics": described(split.stats),
            }
            for split in now.splits()
        ],
    }  # fmt: skip


def described(stats: Any) -> dict[str, str]:
    """Returns each field as text, columns in order: sets and maps have none of their own."""
    fields = {field.name: getattr(stats, field.name) for field in dataclasses.fields(stats)}
    return {
        name: repr(sorted(value.items(), key=repr) if isinstance(value, Mapping) else sorted(value))
        if isinstance(value, Mapping | frozenset)
        else repr(value)
        for name, value in fields.items()
    }


def texts(found: pa.Table) -> list[str]:
    """Returns each row as text, sorted: what JSON has no form for is kept apart, too."""
    return sorted(repr(row) for row in found.to_pylist())


def main(arguments: list[str]) -> int:
    for name, make in TABLES.items():
        target = FOLDER / name
        if "--list" in arguments:
            print(f"{'there ' if target.exists() else 'new   '} {name:<20} {make.__doc__}")
            continue
        if target.exists():
            continue
        # made elsewhere: some commits say where, and no path of a checkout belongs into the table
        made = Path(tempfile.gettempdir()) / "golden" / name
        shutil.rmtree(made, ignore_errors=True)
        conditions = make(str(made))
        shutil.copytree(made, target)
        result = expected(str(target), conditions)
        (FOLDER / f"{name}.json").write_text(
            json.dumps(result, indent=1, ensure_ascii=True) + "\n", "utf-8"
        )
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
