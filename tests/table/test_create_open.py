"""Creating and opening: what cannot work is refused before anything is written."""

import subprocess
import sys
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.core.types import Field, PrimitiveType, StructType, schema_from_arrow, schema_to_json
from indextables.errors import (
    ConfigError,
    NotATableError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnknownColumnError,
    UnsupportedTypeError,
)

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("x", pa.float64())]
)


def test_importing_the_package_loads_no_engine():
    """A program that only wants the errors does not pay for Spark, DuckDB, Polars or pandas."""
    code = (
        "import sys, indextables as it; it.Table; it.col; it.parse_predicate; it.query_stats;"
        "print([m for m in ('pyspark', 'duckdb', 'polars', 'pandas', 'obstore') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_is_there():
    """`dir` and `__all__` promise nothing that an import would not deliver."""
    for name in it.__all__:
        assert getattr(it, name) is not None
    assert set(it.__all__) <= set(dir(it))
    with pytest.raises(AttributeError, match="no attribute 'Tabel'"):
        it.Tabel  # noqa: B018


def test_a_new_table_is_empty_and_readable(tmp_path):
    """Version 0, no files, the schema as given."""
    table = it.Table.create(tmp_path / "t", SCHEMA, partition_by=["DAY"], name="events")
    assert (table.version, table.snapshot().num_files) == (0, 0)
    assert table.snapshot().partition_columns == ("day",)
    assert table.snapshot().metadata.name == "events"
    assert table.scan().to_arrow().schema.names == ["id", "day", "x"]
    assert repr(table) == f"Table({str(tmp_path / 't')!r}, version=0, files=0)"


class SparkSchema:
    """Stands for pyspark's StructType, which has this one method in common with nothing else."""

    def json(self):
        return schema_to_json(schema_from_arrow(SCHEMA))


@pytest.mark.parametrize(
    "schema",
    [SCHEMA, schema_from_arrow(SCHEMA), schema_to_json(schema_from_arrow(SCHEMA)), SparkSchema()],
    ids=lambda s: type(s).__name__,
)
def test_a_schema_can_be_given_in_every_form(tmp_path, schema):
    """Arrow's, ours, Spark's JSON and Spark's own object mean the same table."""
    assert it.Table.create(tmp_path / "t", schema).schema == schema_from_arrow(SCHEMA)


def test_a_pandas_schema_in_nanoseconds_makes_a_table_of_microseconds(tmp_path):
    """That is what every engine can read; values that do not fit are refused when they come."""
    table = it.Table.create(tmp_path / "t", pa.schema([("t", pa.timestamp("ns"))]))
    assert table.schema == StructType((Field("t", PrimitiveType("timestamp_ntz")),))


def nested(levels, wrap):
    """A schema of one column of structs in structs, or lists in lists."""
    return pa.schema([("deep", reduce(lambda kind, _: wrap(kind), range(levels), pa.int64()))])


def in_struct(kind):
    return pa.struct([("f", kind)])


@pytest.mark.parametrize(("wrap", "most"), [(in_struct, 63), (pa.list_, 31)])
def test_what_is_nested_as_deep_as_a_table_can_hold_is_read_back(tmp_path, wrap, most):
    """Also from a checkpoint in parts, which wraps each column once more; one level deeper is refused."""
    value = reduce(lambda below, _: {"f": below} if wrap is in_struct else [below], range(most), 1)
    rows = pa.table({"deep": [value, None]}, nested(most, wrap))
    table = it.Table.create(
        tmp_path / "t", rows.schema, properties={"spark.indextables.checkpoint.format": "parquet"}
    )
    table.append(rows)
    table.checkpoint()
    assert it.Table(tmp_path / "t").scan().to_arrow().to_pylist() == rows.to_pylist()
    with pytest.raises(UnsupportedTypeError, match="nested deeper than 64 levels"):
        it.Table.create(tmp_path / "u", nested(most + 1, wrap))
    with pytest.raises(SchemaMismatchError, match="nested deeper than 64 levels"):
        table.append(pa.table({"deep": pa.nulls(1, nested(1000, wrap).field(0).type)}))


REFUSED = [
    ({"schema": pa.schema([])}, SchemaError, "no columns"),
    ({"schema": nested(300, in_struct)}, UnsupportedTypeError, "nested deeper than 64 levels"),
    ({"schema": 5}, SchemaError, "a int is not a schema"),
    ({"schema": pa.schema([("t", pa.time32("s"))])}, UnsupportedTypeError, "time32"),
    ({"schema": pa.schema([("a", pa.int64()), ("A", pa.int64())])}, SchemaError, "the same name"),
    ({"schema": pa.schema([("a", pa.int64()), ("a", pa.int64())])}, SchemaError, "the same name"),
    (
        {"schema": pa.schema([("s", pa.struct([("a", pa.int8()), ("A", pa.int8())]))])},
        SchemaError,
        "the same name",
    ),
    ({"partition_by": ["nope"]}, UnknownColumnError, "nope"),
    ({"partition_by": ["day", "Day"]}, SchemaError, "repeat"),
    ({"partition_by": ["id", "day", "x"]}, SchemaError, "every column is a partition"),
    (
        {"schema": pa.schema([("l", pa.list_(pa.int8())), ("a", pa.int8())]), "partition_by": ["l"]},
        SchemaError,
        "cannot be a partition",
    ),
    ({"record_key": ["day"]}, SchemaError, "may be NULL"),
    ({"record_key": ["nope"]}, UnknownColumnError, "nope"),
    (
        {"schema": pa.schema([pa.field("f", pa.float64(), nullable=False)]), "record_key": ["f"]},
        SchemaError,
        "NaN has no identity",
    ),
    ({"properties": {"spark.indextables.stats.truncation.maxLength": "abc"}}, ConfigError, "abc"),
    ({"properties": {"spark.indextables.stats.truncation.maxLength": "-1"}}, ConfigError, "-1"),
    (
        {
            "properties": {
                "spark.indextables.stats.truncation.strategy": "truncate",
                "spark.indextables.stats.truncation.maxLength": 5,
            }
        },
        ConfigError,
        "12 characters",
    ),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=lambda x: str(x)[:40])
def test_what_cannot_work_is_refused_before_anything_is_written(tmp_path, options, error, message):
    """A typed error with what happened; the directory stays as it was."""
    options = {"schema": SCHEMA, **options}
    with pytest.raises(error, match=message):
        it.Table.create(tmp_path / "t", options.pop("schema"), **options)
    assert not (tmp_path / "t").exists()


def test_a_record_key_is_kept_with_the_table(tmp_path):
    """By the names of the schema, in the order given."""
    table = it.Table.create(tmp_path / "t", SCHEMA, record_key=["ID"])
    assert it.Table(table.uri).properties == {"recordKey": '["id"]', "mergeMode": "record"}


def test_a_table_is_not_created_twice(tmp_path):
    """The one that is there stays untouched."""
    it.Table.create(tmp_path / "t", SCHEMA)
    with pytest.raises(TableExistsError, match="already"):
        it.Table.create(tmp_path / "t", SCHEMA)


def test_nothing_there_is_a_missing_table(tmp_path):
    """Also a FileNotFoundError, for those who catch that."""
    with pytest.raises(TableNotFoundError, match=r"create one with Table\.create"):
        it.Table(tmp_path / "nope")
    with pytest.raises(FileNotFoundError):
        it.Table(tmp_path)


FOREIGN = [
    ("_delta_log/00000000000000000000.json", "Delta Lake", "deltalake"),
    (".hoodie/hoodie.properties", "Apache Hudi", "Spark"),
    ("metadata/v1.metadata.json", "Apache Iceberg", "pyiceberg"),
    ("day=2024-01-01/a.parquet", "plain Parquet", r"indextables\.convert"),
    ("notes.txt", "other files", "new directory"),
]


@pytest.mark.parametrize(("name", "what", "hint"), FOREIGN)
def test_a_foreign_directory_is_named_for_what_it_is(tmp_path, name, what, hint):
    """With the way from there to a table, both for opening and for creating."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("{}")
    for action in (lambda: it.Table(tmp_path), lambda: it.Table.create(tmp_path, SCHEMA)):
        with pytest.raises(NotATableError, match=what) as caught:
            action()
        assert caught.match(hint)
    assert not (tmp_path / "_transaction_log").exists()


def test_a_handle_sees_what_others_commit(tmp_path):
    """Each call looks at the newest version; a snapshot stays what it was."""
    one = it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    other, before = it.Table(tmp_path / "t"), one.snapshot()
    other.append(pa.table({"a": [1, 2]}))
    assert one.version == 1
    assert one.scan().count() == 2
    assert before.num_files == 0
    assert one.scan(version=0).count() == 0


def test_time_travel_by_text_number_and_datetime(tmp_path):
    """All name the version that was current then; a text without a zone is UTC."""
    import datetime as dt

    table = it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    first = table.snapshot(0).timestamp_ms
    moment = dt.datetime.fromtimestamp(first / 1000, dt.UTC)
    assert table.snapshot(timestamp=first).version == 0
    assert table.snapshot(timestamp=moment.isoformat()).version == 0
    assert table.snapshot(timestamp=moment.replace(tzinfo=None).isoformat()).version == 0
    assert table.scan(timestamp=moment).count() == 0


def test_options_of_a_handle_give_way_to_those_of_a_call(tmp_path):
    """Call over handle over property; keys without regard to case."""
    key = "spark.indextables.write.targetFileSize"
    data = pa.table({"a": list(range(100_000))})
    table = it.Table.create(
        tmp_path / "t", data.schema, properties={key: "1GB"}, options={key.lower(): "50KB"}
    )
    assert table.append(data).metrics["numAddedFiles"] > 1
    assert table.append(data, options={key: "1GB"}).metrics["numAddedFiles"] == 1
    with pytest.raises(ConfigError, match="targetFileSize"):
        table.append(data, options={key: "big"})
    assert table.version == 2


def test_a_table_in_memory_is_shared_by_name():
    """For tests and notebooks; the same calls as on a disk."""
    uri = "memory://test_a_table_in_memory/t"
    it.Table.create(uri, pa.schema([("a", pa.int64())])).append(pa.table({"a": [1]}))
    assert it.Table(uri).scan().to_arrow().to_pylist() == [{"a": 1}]


def test_plain_parquet_files_are_not_mistaken_for_a_table(tmp_path):
    """They hint at convert, which makes them one."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(NotATableError):
        it.Table(tmp_path)
    assert it.convert(tmp_path).scan().count() == 1


def test_log_files_are_refused_rather_than_read_unmerged(tmp_path):
    """A slice's base without its logs would show rows that were replaced."""
    import dataclasses

    import indextables as it
    from indextables.config import Config
    from indextables.log.commit.intent import Append, CommitPlan
    from indextables.log.transaction_log import TransactionLog
    from indextables.storage import open_store

    table = it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    (split,) = table.snapshot().splits()
    log = TransactionLog(open_store(tmp_path / "t"), Config.of())
    slice_log = dataclasses.replace(split.to_add(), kind="log", block="data", file_group="g")
    log.commit(lambda _: CommitPlan(Append(), "UPSERT", (slice_log,)))
    for read in (lambda: table.scan().to_arrow(), lambda: table.scan().count()):
        with pytest.raises(it.errors.ProtocolError, match="no record key by which"):
            read()
