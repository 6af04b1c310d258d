"""Arguments of the wrong kind are typed errors with advice, before anything is read or written."""

import datetime as dt
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import ConfigError, IndexTablesError, SchemaMismatchError, StorageError

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
DATA = pa.table({"id": [1, 2], "text": ["a", "b"]}, SCHEMA)


@pytest.fixture
def table():
    found = it.Table.create(f"memory://{uuid4()}", SCHEMA)
    found.append(DATA)
    return found


@pytest.mark.parametrize("path", [5, None, b"bytes", ["a"], "", " ", "a\0b", Path("a\0b")])
def test_what_is_no_place_is_refused(path):
    """Above all the empty text: it is not the current directory."""
    with pytest.raises(IndexTablesError) as caught:
        it.Table(path)
    assert not isinstance(caught.value, FileNotFoundError)
    with pytest.raises(IndexTablesError):
        it.Table.create(path, SCHEMA)


def test_any_path_of_python_is_a_place(tmp_path):
    """Path, text, and whatever has a file system path."""

    class Place:
        def __fspath__(self):
            return str(tmp_path / "t")

    it.Table.create(Place(), SCHEMA).append(DATA)
    assert it.Table(tmp_path / "t").scan().count() == it.Table(str(tmp_path / "t")).scan().count() == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.snapshot("1"),
        lambda t: t.snapshot(1.5),
        lambda t: t.snapshot(True),
        lambda t: t.snapshot(1, "2024-01-01"),
        lambda t: t.snapshot(timestamp="soon"),
        lambda t: t.snapshot(timestamp=dt.datetime(2024, 1, 1)),
        lambda t: t.snapshot(timestamp=dt.date(2024, 1, 1)),
        lambda t: t.snapshot(timestamp=float("nan")),
        lambda t: t.snapshot(timestamp=True),
        lambda t: t.restore("1"),
        lambda t: t.restore(timestamp="soon"),
        lambda t: t.history(-1),
        lambda t: t.history("x"),
        lambda t: t.history(2**70),
        lambda t: t.optimize(target_size="large"),
        lambda t: t.optimize(target_size=0),
        lambda t: t.optimize(z_order_by=[]),
    ],
)
def test_values_no_argument_can_have(table, call):
    """ConfigError, which is a ValueError too, with a hint."""
    with pytest.raises(ConfigError) as caught:
        call(table)
    assert caught.value.hint
    assert isinstance(caught.value, ValueError)
    assert table.version == 1


def test_a_text_alone_is_one_name(tmp_path):
    """Not its letters."""
    table = it.Table.create(tmp_path / "t", SCHEMA, partition_by="text")
    table.append(DATA)
    assert table.snapshot().partition_columns == ("text",)
    assert table.scan(columns="id").to_arrow().column_names == ["id"]
    table.drop_statistics("id")
    assert table.analyze("id").metrics["numAnalyzedFiles"] == 2
    table.append(DATA)
    assert table.optimize(z_order_by="id", target_size="1 MB").committed


def test_integers_of_numpy_are_versions(table):
    """As they come out of a data frame."""
    assert table.snapshot(np.int64(0)).version == 0


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
        pd.DataFrame({"id": [1, "x"], "text": ["a", "b"]}),
        pd.DataFrame({"id": [1], "text": [object()]}),
    ],
    ids=["one name twice", "values of two types", "an object"],
)
def test_a_pandas_frame_that_is_no_table_is_a_mismatch(table, frame):
    """Not an error of Arrow's."""
    with pytest.raises(SchemaMismatchError, match="pandas frame cannot be read"):
        table.append(frame)
    assert table.version == 1


@pytest.mark.parametrize("columns", ["nope", ["id"]])
def test_a_property_that_would_fail_every_write_is_refused_when_the_table_is_made(columns):
    """Statistics of a column that is not there; a list is no text."""
    with pytest.raises(ConfigError, match="a column the table does not have"):
        it.Table.create(
            f"memory://{uuid4()}",
            SCHEMA,
            properties={"spark.indextables.dataSkippingStatsColumns": columns},
        )


def test_a_directory_that_cannot_be_made_is_no_doubtful_commit(tmp_path):
    """The system said no and nothing is there: a plain error, at once."""
    (tmp_path / "file").write_text("x")
    began = time.monotonic()
    with pytest.raises(StorageError, match="Not a directory"):
        it.Table.create(tmp_path / "file" / "t", SCHEMA)
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("settings", ["interval=5", [("a", 1)], {1: 2}, 5], ids=str)
def test_settings_without_names_are_refused(table, settings):
    """For a table, a handle and a call alike."""
    for call in (
        lambda: it.Table.create(f"memory://{uuid4()}", SCHEMA, properties=settings),
        lambda: it.Table.create(f"memory://{uuid4()}", SCHEMA, options=settings),
        lambda: it.Table(table.uri, options=settings),
        lambda: table.append(DATA, options=settings),
        lambda: table.vacuum(options=settings),
    ):
        with pytest.raises(ConfigError, match="not settings by name"):
            call()


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_uri_without_a_bucket_is_shown_with_one(scheme):
    """In its own scheme."""
    with pytest.raises(StorageError, match="does not name a bucket") as caught:
        it.Table(f"{scheme}://")
    assert caught.value.hint == f"{scheme}://bucket/path"
