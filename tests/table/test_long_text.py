"""Tables with long texts: the log stays small, skipping works where it can, every row is found."""

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import SchemaMismatchError

PREFIX = "spark.indextables.stats.truncation."
FAST = {"spark.indextables.indexing.fastfields": "score"}


def documents(*letters):
    return pa.table(
        {
            "id": [f"doc{i + 1}" for i in range(len(letters))],
            "long_text": [letter * 2000 for letter in letters],
            "score": pa.array([(i + 1) * 100 for i in range(len(letters))], pa.int32()),
        }
    )


def log_size(table):
    return sum(p.stat().st_size for p in (Path(table.uri) / "_transaction_log").glob("*.json"))


def test_write_and_read_a_table_with_truncated_statistics(tmp_path):
    """The log is small, the data is whole."""
    data = documents("x", "y")
    table = it.Table.create(tmp_path / "t", data.schema)
    table.append(data, options=FAST)
    assert log_size(table) < 100_000
    found = table.scan().to_arrow()
    assert found.column("id").to_pylist() == ["doc1", "doc2"]
    assert [len(text) for text in found.column("long_text").to_pylist()] == [2000, 2000]


def test_skipping_works_for_columns_with_statistics_and_falls_back_for_truncated_ones(tmp_path):
    """score skips files, long_text does not, and both find their row."""
    data = documents("x", "y", "z")
    table = it.Table.create(tmp_path / "t", data.schema)
    for i in range(3):
        table.append(data.slice(i, 1), options=FAST)
    with it.query_stats() as by_score:
        assert table.scan("score = 100").to_arrow().column("id").to_pylist() == ["doc1"]
    with it.query_stats() as by_text:
        assert table.scan("long_text LIKE 'x%'").to_arrow().column("id").to_pylist() == ["doc1"]
    assert (by_score.data_files_opened, by_text.data_files_opened) == (1, 3)


# strategy, maxLength, files opened for a prefix search, files opened for the whole text of one row
STRATEGIES = [
    ("drop", 1024, 3, 3),
    ("truncate", 100, 1, 1),
    ("bound", 100, 1, 1),
    ("bound", 1, 2, 1),  # "y" is the bound above every x…, and it starts with y
    ("truncate", 13, 2, 1),
]


@pytest.mark.parametrize(("strategy", "length", "by_prefix", "by_value"), STRATEGIES)
def test_each_strategy_finds_every_row(tmp_path, strategy, length, by_prefix, by_value):
    """Equality on the longest row is where a truncated maximum would lose it."""
    data = documents("x", "y", "z")
    properties = {f"{PREFIX}strategy": strategy, f"{PREFIX}maxLength": length}
    table = it.Table.create(tmp_path / "t", data.schema, properties=properties)
    for i in range(3):
        table.append(data.slice(i, 1))
    with it.query_stats() as stats:
        assert table.scan("long_text LIKE 'y%'").to_arrow().num_rows == 1
    assert stats.data_files_opened == by_prefix
    with it.query_stats() as stats:
        assert table.scan(it.col("long_text") == "y" * 2000).to_arrow().num_rows == 1
    assert stats.data_files_opened == by_value
    assert table.scan(it.col("long_text") >= "z" * 1999).to_arrow().num_rows == 1
    assert table.scan(it.col("long_text") != "z" * 2000).to_arrow().num_rows == 2


def test_history_and_messages_tell_what_was_truncated(tmp_path, caplog):
    """The seed's words, once per commit."""
    data = documents("x", "y")
    table = it.Table.create(tmp_path / "t", data.schema)
    with caplog.at_level(logging.INFO, "indextables"):
        table.append(data)
    assert (
        "Truncating statistics for column 'long_text' (min length: 2000, max length: 2000, strategy: drop)"
        in caplog.messages
    )
    metrics = table.history(1)[0].metrics
    assert metrics["numTruncatedColumns"] == 1
    assert metrics["truncationBytesSaved"] >= 4000
    assert (
        f"Statistics truncated: 1 columns, estimated size reduction: {metrics['truncationBytesSaved']} bytes"
        in caplog.messages
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("long_txt", "no column 'long_txt'; did you mean 'long_text'?"),
        ("zzz", "no column 'zzz'; the columns are: id, long_text, score, st, st.a"),
        ("st", "'st' is a struct; name one of its fields"),
        ("st.b", "no column 'st.b'; did you mean 'st.a'?"),
    ],
)
@pytest.mark.parametrize("option", [("maxLength", 5), ("strategy", "bound")], ids=lambda o: o[0])
def test_a_truncation_override_for_a_column_the_table_lacks_is_warned_of_once(
    tmp_path, caplog, name, why, option
):
    """It changes nothing, which the writer should hear: in the first write, not in every one."""
    data = documents("x").append_column("st", pa.array([{"a": "y"}]))
    table = it.Table.create(tmp_path / "t", data.schema)
    key = f"{PREFIX}column.{name}.{option[0]}"
    for _ in range(2):
        table.append(data, options={key: option[1]})
    assert [m for m in caplog.messages if key in m] == [f"Option '{key}' is ignored: {why}"]


def test_a_truncation_override_for_a_column_of_the_table_is_not_warned_of(tmp_path, caplog):
    """In whatever case it is spelled, nested or new with this write."""
    data = documents("x").append_column("st", pa.array([{"a": "y"}]))
    table = it.Table.create(tmp_path / "t", documents("x").schema)
    options = {f"{PREFIX}column.{name}.maxLength": 5 for name in ("LONG_TEXT", "st.a")}
    table.append(data, options=options, merge_schema=True)
    assert not [m for m in caplog.messages if "ignored" in m]


def test_an_unknown_strategy_warns_and_drops(tmp_path, caplog):
    """A typo costs skipping, never a row or a large log."""
    data = documents("x", "y")
    table = it.Table.create(tmp_path / "t", data.schema)
    table.append(data, options={f"{PREFIX}strategy": "invalid"})
    assert caplog.messages.count("Unknown truncation strategy 'invalid', using 'drop'") == 1
    assert ("long_text",) not in table.snapshot().splits()[0].stats.min_values


def test_an_unknown_strategy_is_warned_of_once_in_an_upsert_and_in_a_property(tmp_path, caplog):
    """However many columns ask for it, and however often a write looks at its settings."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("body", pa.string())])
    wrong = {f"{PREFIX}strategy": "invalid", f"{PREFIX}column.body.strategy": "invalid"}
    table = it.Table.create(tmp_path / "t", schema, record_key=["id"], properties=wrong)
    for write in (
        lambda: None,
        lambda: table.upsert(pa.table({"id": [1], "body": ["x"]}, schema=schema)),
    ):
        write()
        assert [m for m in caplog.messages if "invalid" in m] == [
            "Unknown truncation strategy 'invalid', using 'drop'"
        ]
        caplog.clear()


def test_truncation_can_be_switched_off(tmp_path):
    """Then the log has the whole texts, and they skip."""
    data = documents("x", "y")
    small = it.Table.create(tmp_path / "small", data.schema)
    large = it.Table.create(tmp_path / "large", data.schema, properties={f"{PREFIX}enabled": False})
    for table in (small, large):
        table.append(data)
    assert log_size(large) - log_size(small) > 3900
    assert large.plan(it.col("long_text") == "z").files == []


def test_one_column_can_have_its_own_rule(tmp_path):
    """Stage 4 of the seed: a longer limit for one column."""
    data = documents("x", "y")
    table = it.Table.create(
        tmp_path / "t", data.schema, properties={f"{PREFIX}column.long_text.maxLength": 5000}
    )
    table.append(data)
    assert len(table.snapshot().splits()[0].stats.max_values["long_text",]) == 2000


@pytest.mark.parametrize(
    "options",
    [
        {f"{PREFIX}maxLength": "abc"},
        {f"{PREFIX}maxLength": -1},
        {f"{PREFIX}maxLength": 5, f"{PREFIX}strategy": "truncate"},
    ],
    ids=str,
)
def test_a_bad_option_is_an_error_before_any_data_is_written(tmp_path, options):
    """Not a surprise after an hour of writing."""
    table = it.Table.create(tmp_path / "t", documents("x").schema)
    with pytest.raises(it.errors.ConfigError):
        table.append(documents("x"), options=options)
    assert not (tmp_path / "t" / "data").exists()


def raw_texts(*values):
    """An array of texts with any bytes in them, which Arrow does not look at."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


@pytest.mark.parametrize(
    "values",
    [
        (b"a", b"b", b"z\xff"),
        (b"\x80", b"b", b"z"),
        (b"a", b"m\xed\xa0\x80", b"z"),
        (b"\xc3", b"\xa9", b"z"),
        (b"\xff" * 3000, b"a", b"\xc3" * 2000),
    ],
)
def test_bytes_that_are_no_text_never_hide_a_row(tmp_path, values):
    """In files of other writers they bound nothing: what a split holds is found by its bytes."""
    for n, value in enumerate(values):
        pq.write_table(pa.table({"n": [n], "s": raw_texts(value)}), tmp_path / f"{n}.parquet")
    pq.write_table(pa.table({"n": range(3, 6), "s": raw_texts(*values)}), tmp_path / "3.parquet")
    table = it.convert(tmp_path)
    for bound in ("a", "m", "z"):
        for sign, holds in ((">=", bytes.__ge__), ("<", bytes.__lt__)):
            expected = [n for n in range(6) if holds(values[n % 3], bound.encode())]
            found = table.scan(f"s {sign} '{bound}'", columns=["n"]).to_arrow()
            assert sorted(found.column("n").to_pylist()) == expected
    assert table.scan("s IS NOT NULL", columns=["n"]).to_arrow().num_rows == 6


def test_a_partition_value_that_is_no_text_is_refused_by_name(tmp_path):
    """It could be neither a directory nor a word of the log."""
    table = it.Table.create(
        tmp_path / "t", pa.schema([("n", pa.int64()), ("s", pa.string())]), partition_by=["s"]
    )
    with pytest.raises(SchemaMismatchError, match=r"column 's' has text that is not UTF-8"):
        table.append(pa.table({"n": [1, 2], "s": raw_texts(b"a", b"z\xff")}))
    assert table.snapshot().num_files == 0
