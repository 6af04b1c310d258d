"""What a scan tells Spark and asks of it: options that change no row, and few calls to the JVM."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark_tables import days, write_table

from indextables.engines.spark.scan import relation
from indextables.errors import StorageError
from indextables.log.wire.actions import Add
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.storage.open import open_store
from indextables.table.table import Table

clientserver = pytest.importorskip("py4j.clientserver")

CALLS = 90
"""A read, a filter and a count made 77 calls when this was written; each takes about a fifth of a millisecond."""
FILES = {
    "data/plain.parquet": "none",
    "data/_SUCCESS.parquet": "zstd",
    "data/.hidden.gz.parquet": "gzip",
    "_data/k=1/part.snappy.parquet": "gzip",
    ".staging/x.parquet.crc": "snappy",
    "data/no suffix": "lz4",
    "data/_part=1": "none",
}
"""Names of files, and how they are compressed whatever the name says: other writers choose both."""


NO_DATA = {"data/_metadata": "none", "data/x._COPYING_": "none"}
"""Names that Spark takes for no data whatever it is told."""


@pytest.fixture
def odd(tmp_path):
    """A table whose files have names that a listing of Spark's would leave out."""
    return made_of(tmp_path / "odd", FILES)


def made_of(path, files):
    schema = pa.schema([("id", pa.int64()), ("later", pa.string())])
    Table.create(path, schema)
    adds = []
    for place, (key, codec) in enumerate(files.items()):
        file = path / key
        file.parent.mkdir(parents=True, exist_ok=True)
        columns = {"id": pa.array([place, place + 100])}
        if place % 2:  # the others are older than the second column
            columns["later"] = pa.array([codec, None])
        pq.write_table(pa.table(columns), file, compression=codec)
        adds.append(Add(key, file.stat().st_size, modification_time=1))
    TransactionLog(open_store(path)).commit(lambda _: CommitPlan(Append(), "APPEND", tuple(adds)))
    return str(path)


def load(spark, path):
    return spark.read.format("indextables").load(path)


def rows(frame):
    return sorted(map(tuple, frame.collect()), key=str)


@pytest.mark.parametrize("are_given", [True, False])
def test_options_that_a_scan_never_asks_for_change_no_row(
    spark, odd, configured, monkeypatch, are_given
):
    """Every codec under every name, under settings that the options stand in for, with them and without."""
    configured("spark.sql.parquet.mergeSchema", "true")
    configured("spark.sql.parquet.compression.codec", "gzip")
    if not are_given:
        monkeypatch.setattr(relation, "_UNASKED", {})
    expected = [(i, codec if i % 2 else None) for i, codec in enumerate(FILES.values())]
    expected += [(i + 100, None) for i in range(len(FILES))]
    frame = load(spark, odd)
    assert rows(frame) == sorted(expected, key=str)
    assert rows(frame.where("id = 2 OR later = 'zstd'")) == [(1, "zstd"), (2, None)]
    assert frame.where("later IS NULL").count() == len(expected) - len(FILES) // 2


def test_the_codec_of_a_scan_is_not_that_of_a_write(spark, odd, configured):
    """What is written from a table, or rewritten in it, is compressed as the session says."""
    configured("spark.sql.parquet.compression.codec", "zstd")
    load(spark, odd).coalesce(1).write.format("indextables").save(f"{odd}-copy")
    spark.sql(f"UPDATE indextables.`{odd}` SET later = 'x' WHERE id = 0")
    for path, others in ((f"{odd}-copy", 0), (odd, len(FILES) - 1)):
        keys = Table(path).snapshot().column("key").to_pylist()
        made = [key for key in keys if key not in FILES]
        assert (len(made), len(keys) - len(made)) == (1, others)
        assert pq.read_metadata(Path(path) / made[0]).row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize(
    ("statement", "left"),
    [("DELETE FROM {t} WHERE id = 0", 2 * len(FILES) - 1), ("OPTIMIZE {t}", 2 * len(FILES))],
)
def test_no_row_is_lost_to_the_name_of_its_file(spark, odd, statement, left):
    """Regression: the rows of files whose names Spark's listings leave out were dropped from the table."""
    spark.sql(f"ANALYZE TABLE indextables.`{odd}` COMPUTE STATISTICS")
    assert load(spark, odd).where("id >= 100").count() == len(FILES)
    spark.sql(statement.format(t=f"indextables.`{odd}`"))
    assert Table(odd).scan().to_arrow().num_rows == left


def test_files_that_spark_never_lists_are_read_and_never_replaced(spark, tmp_path):
    """Regression: their rows were dropped, and statistics called them empty."""
    path = made_of(tmp_path / "t", {**FILES, **NO_DATA})
    count = 2 * len({**FILES, **NO_DATA})
    for statement in ("OPTIMIZE {t}", "ANALYZE TABLE {t} COMPUTE STATISTICS"):
        with pytest.raises(StorageError, match="takes the others for no data"):
            spark.sql(statement.format(t=f"indextables.`{path}`"))
    assert load(spark, path).count() == count
    # a delete reads and writes anew only the files that hold the row, whatever their names
    for number in (0, 7, 8):
        spark.sql(f"DELETE FROM indextables.`{path}` WHERE id = {number}")
    assert Table(path).delete("id = 1").committed
    assert load(spark, path).where("id >= 0").count() == count - 4


@pytest.mark.parametrize("statement", ["DELETE FROM {t} WHERE id = 0", "OPTIMIZE {t}"])
@pytest.mark.parametrize("is_ignored", ["true", "false"])
def test_a_damaged_file_is_never_rewritten_without_its_rows(
    spark, odd, configured, statement, is_ignored
):
    """Regression: in a session that ignores corrupt files, what could not be read was dropped from the table."""
    configured("spark.sql.files.ignoreCorruptFiles", is_ignored)
    file = Path(odd) / "data/plain.parquet"
    content = bytearray(file.read_bytes())
    content[4:40] = bytes(36)
    file.write_bytes(content)
    with pytest.raises(Exception, match=r"plain\.parquet|rows of"):
        spark.sql(statement.format(t=f"indextables.`{odd}`"))
    assert Table(odd).snapshot().num_files == len(FILES)


def test_a_filtered_read_makes_few_calls_to_the_jvm(spark, tmp_path, monkeypatch):
    """However many splits and columns: each call costs as much as pruning a thousand splits."""
    path = tmp_path / "t"
    write_table(path, days(), splits=10)
    send = clientserver.JavaClient.send_command
    calls = []

    def counted(self, command, *args, **kwargs):
        if not command.startswith(
            "m\n"
        ):  # not what Python's garbage collector tells the JVM, at any time
            calls.append(command)
        return send(self, command, *args, **kwargs)

    monkeypatch.setattr(clientserver.JavaClient, "send_command", counted)
    counts = []
    for number in (5, 205, 405, 605):
        calls.clear()
        assert load(spark, str(path)).where(f"id = {number} AND name IS NOT NULL").count() == 1
        counts.append(len(calls))
    # The first read looks up classes and opens the log. Another thread's call may be counted: the least is ours.
    assert 0 < min(counts) <= CALLS, counts


@pytest.mark.parametrize("kind", ["BIGINT", "STRUCT<file_path: STRING, row_index: BIGINT>"])
def test_a_column_may_be_called_as_spark_calls_what_it_knows_of_files(spark, tmp_path, kind):
    """Regression: a column `_metadata` was taken for the place of a row, and OPTIMIZE dropped every row."""
    name = f"indextables.`{tmp_path}/m`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, `_metadata` {kind})")
    value = "1" if kind == "BIGINT" else "named_struct('file_path', 'x', 'row_index', 1)"
    for start in (0, 10):
        spark.sql(f"INSERT INTO {name} SELECT id, {value} FROM range({start}, {start + 10}, 1, 1)")
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS")
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(f"UPDATE {name} SET id = 40 WHERE id = 4")
    spark.sql(f"OPTIMIZE {name}")
    expected = sorted({*range(20), 40} - {3, 4})
    assert sorted(row.id for row in spark.table(name).where("id >= 0").collect()) == expected


def test_the_log_of_a_scan_says_what_it_skips(spark, tmp_path, caplog):
    """One line per scan, with the splits and bytes that are read."""
    path = tmp_path / "t"
    write_table(path, days(), splits=10)
    with caplog.at_level(logging.INFO, "indextables"):
        load(spark, str(path)).where("id = 5").count()
    said = [m for m in caplog.messages if m.startswith(f"IndexTables[{path}] v10: 1 of 10 splits kept")]
    assert len(said) == 1
    assert "9 by statistics" in said[0]
