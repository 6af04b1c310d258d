"""A schema can grow; whatever would lose or hide data is refused with the whole list of reasons."""

import datetime as dt
import decimal
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import SchemaEvolutionError, SchemaMismatchError
from indextables.ops.shared.schema import merged_schema
from indextables.core.types import schema_from_arrow


def table_of(schema, data=None, **options):
    table = it.Table.create(f"memory://{uuid4()}", schema, **options)
    if data is not None:
        table.append(pa.table(data, schema))
    return table


WIDER = [
    (pa.int32(), pa.int64(), 7, 7),
    (pa.int8(), pa.float64(), 7, 7.0),
    (pa.float32(), pa.float64(), 0.5, 0.5),
    (pa.int64(), pa.decimal128(22, 2), 2**60, decimal.Decimal(2**60)),
    (pa.decimal128(5, 2), pa.decimal128(9, 4), decimal.Decimal("1.25"), decimal.Decimal("1.2500")),
    (pa.date32(), pa.timestamp("us"), dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)),
]


@pytest.mark.parametrize(("old", "new", "value", "read"), WIDER, ids=str)
def test_a_widened_column_reads_old_and_new_files_alike(old, new, value, read):
    """Old files are cast while they are read, and their statistics still skip."""
    table = table_of(pa.schema([("c", old), ("k", pa.int8())]), {"c": [value, None], "k": [1, 2]})
    table.evolve(pa.schema([("c", new), ("k", pa.int8())]))
    table.append(pa.table({"c": pa.array([read], new), "k": pa.array([3], pa.int8())}))
    assert table.scan().to_arrow().column("c").to_pylist() == [read, None, read]
    assert table.scan(it.col("c") == read).count() == 2
    assert table.scan(it.col("c") < read).count() == 0
    assert table.plan(it.col("c") < read).files == []
    assert table.check(deep=True).ok


def test_a_new_column_is_null_in_older_files_and_that_is_known(tmp_path):
    """Different from 'statistics missing': IS NOT NULL opens none of them."""
    table = table_of(pa.schema([("a", pa.int64())]), {"a": [1]})
    table.evolve(pa.schema([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]))
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "b": None}]
    assert table.plan("b.c is not null").files == []
    assert table.plan("b.c = 'x' or a = 2").files == []
    assert table.scan("b.c is null").count() == 1
    assert table.scan("not (b.c = 'x')").count() == 0


def test_a_new_field_of_a_struct_is_null_where_the_struct_is_not():
    """The struct's other fields keep their values."""
    table = table_of(pa.schema([("s", pa.struct([("a", pa.int64())]))]), {"s": [{"a": 1}, None]})
    table.evolve(pa.schema([("s", pa.struct([("a", pa.int64()), ("b", pa.int8())]))]))
    assert table.scan().to_arrow().to_pylist() == [{"s": {"a": 1, "b": None}}, {"s": None}]


def test_the_same_schema_is_no_commit():
    """In whatever case and order the columns are given."""
    table = table_of(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    assert not table.evolve(pa.schema([("B", pa.string()), ("A", pa.int64())])).committed
    assert table.version == 0


OLD = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("a", pa.int64()),
        ("s", pa.struct([("x", pa.int32())])),
        ("l", pa.list_(pa.int32())),
        ("p", pa.int32()),
    ]
)
REFUSED = [
    ([f for f in OLD if f.name != "a"], "column 'a' would be dropped"),
    (
        [f if f.name != "a" else pa.field("a", pa.int32()) for f in OLD],
        "'a' cannot change from bigint to int",
    ),
    (
        [f if f.name != "a" else pa.field("a", pa.float64()) for f in OLD],
        "'a' cannot change from bigint to double",
    ),
    (
        [f if f.name != "a" else pa.field("a", pa.int64(), nullable=False) for f in OLD],
        "cannot become NOT NULL",
    ),
    ([*OLD, pa.field("n", pa.int8(), nullable=False)], "'n' must be nullable"),
    ([*OLD, pa.field("A", pa.int8())], "two columns of the same name"),
    (
        [f if f.name != "s" else pa.field("s", pa.struct([("y", pa.int32())])) for f in OLD],
        "'s.x' would be dropped",
    ),
    (
        [f if f.name != "l" else pa.field("l", pa.list_(pa.int64())) for f in OLD],
        "'l.element' cannot change",
    ),
    ([f if f.name != "p" else pa.field("p", pa.int64()) for f in OLD], "partition column 'p'"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_what_would_lose_data_is_refused(fields, message):
    """No drop, rename or narrowing: a clear error, and no commit."""
    table = table_of(OLD, partition_by=["p"])
    with pytest.raises(SchemaEvolutionError, match=message):
        table.evolve(pa.schema(fields))
    assert table.version == 0


def test_a_required_column_may_become_optional():
    """Every file that is there still fits."""
    table = table_of(pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    table.evolve(pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": pa.array([None], pa.int64())}))
    assert table.scan("a is null").count() == 1


def test_an_append_brings_its_new_columns_only_when_asked_to():
    """Without merge_schema they are an error that says how."""
    table = table_of(pa.schema([("a", pa.int32()), ("b", pa.string())]), {"a": [1], "b": ["x"]})
    data = pa.table({"A": [2**40], "c": [1.5]})
    with pytest.raises(SchemaMismatchError, match="merge_schema=True"):
        table.append(data)
    result = table.append(data, merge_schema=True)
    assert (result.version, table.version) == (2, 2)
    assert table.scan().to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2**40, "b": None, "c": 1.5},
    ]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("", [1], "has no name"),
        ("s", [{"": 1}], "a column of s has no name"),
        ("s", [{"x": 1, "X": 2}], "'x' and 'X' have the same name"),
        ("l", [[{"x": 1, "X": 2}]], "'x' and 'X' have the same name"),
    ],
)
def test_merging_never_brings_a_name_that_no_table_can_have(tmp_path, name, values, message):
    """The commit would succeed, and no row of the table could be read again."""
    table = it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(SchemaEvolutionError, match=message):
        table.append(pa.table({"a": [1], name: values}), merge_schema=True)
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    with pytest.raises(SchemaEvolutionError, match=message):
        table.evolve(pa.schema([("a", pa.int64()), (name, pa.array(values).type)]))


@pytest.mark.parametrize("names", [["x", "X"], ["x", "x"]])
@pytest.mark.parametrize("merge", [False, True])
def test_two_fields_for_one_of_the_table_are_refused(names, merge):
    """The values of one of them would be lost in silence."""
    table = it.Table.create(f"memory://{uuid4()}", pa.schema([("s", pa.struct([("x", pa.int64())]))]))
    data = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=names)
    with pytest.raises(SchemaMismatchError, match="struct 's' has two fields of the same name"):
        table.append(pa.table({"s": data}), merge_schema=merge)


def test_merging_never_narrows_and_never_requires():
    """The table stays as wide as it is; a NOT NULL column of the data is nullable in the table."""
    current = schema_from_arrow(pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int64())]))]))
    incoming = schema_from_arrow(
        pa.schema(
            [
                pa.field("new", pa.int8(), nullable=False),
                ("S", pa.struct([("y", pa.int8())])),
                ("A", pa.int8()),
            ]
        )
    )
    merged = merged_schema(current, incoming)
    assert merged == schema_from_arrow(
        pa.schema(
            [
                ("a", pa.int64()),
                ("s", pa.struct([("x", pa.int64()), ("y", pa.int8())])),
                ("new", pa.int8()),
            ]
        )
    )


def test_each_version_is_read_with_its_own_schema():
    """Time travel shows the table as it was."""
    table = table_of(pa.schema([("a", pa.int32())]), {"a": [1]})
    table.append(pa.table({"a": [2**40], "b": [1]}), merge_schema=True)
    assert table.scan(version=1).to_arrow().schema == pa.schema([("a", pa.int32())])
    assert table.scan().to_arrow().schema.names == ["a", "b"]


def test_older_schemas_stay_known_through_a_checkpoint():
    """Else a column added later could no longer be told from one without statistics."""
    table = table_of(pa.schema([("a", pa.int64())]), {"a": [1]})
    table.evolve(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    table.checkpoint()
    assert it.Table(table.uri).plan("b = 1").files == []
