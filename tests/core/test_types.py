"""Types, columns and the two forms of a schema."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql import types as spark
from support.strategies import column_names, schemas
from hypothesis import strategies as st

from indextables.core.types import (
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    can_widen,
    is_orderable,
    leaves,
    parse_path,
    path_text,
    resolve,
    schema_from_arrow,
    schema_from_json,
    schema_to_arrow,
    schema_to_json,
    type_name,
)
from indextables.errors import SchemaError, UnknownColumnError, UnsupportedTypeError

P = PrimitiveType
NESTED = StructType(
    (
        Field("id", P("long"), nullable=False),
        Field("a.b", P("string")),
        Field(
            "st", StructType((Field("b", P("double"), nullable=False), Field("l", ListType(P("date")))))
        ),
        Field("m", MapType(P("string"), P("integer"))),
    )
)


@given(schemas)
def test_a_schema_survives_arrow(schema):
    """Whatever we can hold, Arrow gives back unchanged."""
    assert schema_from_arrow(schema_to_arrow(schema)) == schema


@given(schemas)
def test_a_schema_survives_json_and_pyspark(schema):
    """PySpark reads our text as a schema, and we read PySpark's text of it as ours."""
    text = schema_to_json(schema)
    assert schema_from_json(text) == schema
    assert schema_from_json(spark.StructType.fromJson(json.loads(text)).json()) == schema


CONVERTED = [
    (pa.uint8(), P("short")),
    (pa.uint16(), P("integer")),
    (pa.uint32(), P("long")),
    (pa.float16(), P("float")),
    (pa.large_string(), P("string")),
    (pa.string_view(), P("string")),
    (pa.large_binary(), P("binary")),
    (pa.binary(16), P("binary")),
    (pa.timestamp("s"), P("timestamp_ntz")),
    (pa.timestamp("ms", "Europe/Berlin"), P("timestamp")),
    (pa.dictionary(pa.int8(), pa.large_string()), P("string")),
    (pa.run_end_encoded(pa.int32(), pa.int64()), P("long")),
    (pa.decimal256(38, 2), DecimalType(38, 2)),
    (pa.decimal32(5, 2), DecimalType(5, 2)),
    (pa.decimal128(5, -2), DecimalType(7, 0)),
    (pa.decimal128(3, 5), DecimalType(5, 5)),
    (pa.large_list(pa.int8()), ListType(P("byte"))),
    (pa.list_(pa.int8(), 3), ListType(P("byte"))),
    (pa.list_view(pa.int8()), ListType(P("byte"))),
]


@pytest.mark.parametrize(("arrow", "ours"), CONVERTED, ids=str)
def test_an_arrow_type_becomes_one_that_holds_all_its_values(arrow, ours):
    """Where nothing can be lost the type is converted."""
    assert schema_from_arrow(pa.schema({"x": arrow})).fields[0].type == ours


REFUSED = [
    pa.uint64(),
    pa.time64("us"),
    pa.duration("s"),
    pa.month_day_nano_interval(),
    pa.timestamp("ns"),
    pa.date64(),
    pa.null(),
    pa.decimal256(39, 0),
    pa.decimal128(38, -1),
    pa.struct([]),
    pa.dense_union([pa.field("u", pa.int64())]),
    pa.list_(pa.uint64()),
]


@pytest.mark.parametrize("arrow", REFUSED, ids=str)
def test_an_arrow_type_we_cannot_hold_is_refused_with_a_way_out(arrow):
    """The error names the column, the type and what to do."""
    with pytest.raises(UnsupportedTypeError, match=r"'st\.x'") as caught:
        schema_from_arrow(pa.schema({"st": pa.struct({"x": arrow})}))
    assert caught.value.hint
    assert caught.value.column == "st.x"


def test_spark_types_without_an_order_are_known_by_their_metadata():
    """Collated and CHAR columns count NULLs only; VARCHAR is ordinary text."""
    schema = schema_from_json(
        spark.StructType(
            [
                spark.StructField("ci", spark.StringType("UNICODE_CI")),
                spark.StructField("padded", spark.CharType(5)),
                spark.StructField("sized", spark.VarcharType(5)),
                spark.StructField("plain", spark.StringType()),
                spark.StructField("v", spark.VariantType()),
            ]
        ).json()
    )
    ordered = {leaf.path[0] for leaf in leaves(schema) if is_orderable(leaf.type, leaf.field.metadata)}
    assert ordered == {"sized", "plain"}
    assert schema_from_json(schema_to_json(schema)) == schema


@pytest.mark.parametrize("name", ["string collate UNICODE_CI", "char(3)"])
def test_the_order_of_a_type_spelled_out_in_its_name_is_not_lost(name):
    """Writing the schema again keeps what the type's name said."""
    text = (
        f'{{"type":"struct","fields":[{{"name":"c","type":"{name}","nullable":true,"metadata":{{}}}}]}}'
    )
    again = schema_from_json(schema_to_json(schema_from_json(text)))
    assert not is_orderable(again.fields[0].type, again.fields[0].metadata)


@pytest.mark.parametrize(
    "name", ["time(6)", "void", "interval day to second", "decimal(39,0)", "decimal(2,3)", "geometry"]
)
def test_a_spark_type_we_cannot_hold_is_refused_by_name(name):
    """The error names the column and the type."""
    text = (
        f'{{"type":"struct","fields":[{{"name":"c","type":"{name}","nullable":true,"metadata":{{}}}}]}}'
    )
    with pytest.raises(UnsupportedTypeError, match="column 'c'"):
        schema_from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"long"',
        '{"type":"struct"}',
        '{"type":"struct","fields":[{"type":"long"}]}',
        '{"type":"struct","fields":[{"name":1,"type":"long"}]}',
        "[" * 100_000,
    ],
)
def test_text_that_is_no_schema_is_a_schema_error(text):
    """Never a KeyError, never a RecursionError."""
    with pytest.raises(SchemaError):
        schema_from_json(text)


def test_leaves_know_their_path_and_whether_a_struct_around_them_may_be_null():
    """A NOT NULL field of a nullable struct is nullable."""
    assert [(leaf.path, leaf.nullable) for leaf in leaves(NESTED)] == [
        (("id",), False),
        (("a.b",), True),
        (("st", "b"), True),
        (("st", "l"), True),
        (("m",), True),
    ]


@given(st.lists(column_names, min_size=1, max_size=3).map(tuple))
def test_a_path_survives_its_dotted_name(path):
    """Dots and backticks inside a name are quoted."""
    assert parse_path(path_text(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "``"])
def test_a_dotted_name_that_is_none_is_refused(text):
    """Nothing is guessed."""
    with pytest.raises(UnknownColumnError):
        parse_path(text)


def test_a_column_is_found_whatever_its_case_and_answers_in_its_own_spelling():
    """An exact match wins over one that differs in case."""
    assert resolve(NESTED, ("ST", "B")) == (("st", "b"), P("double"))
    twins = StructType((Field("a", P("long")), Field("A", P("string"))))
    assert resolve(twins, ("A",)) == (("A",), P("string"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("sst", "b"), "did you mean 'st.b'"),
        (("id", "x"), "no column 'id.x'"),
        (("zzzzzz",), "the columns are: id"),
        (("a", "b"), "did you mean '`a.b`'"),
    ],
)
def test_a_column_that_is_not_there_comes_with_a_suggestion(path, message):
    """Also a path that goes on below a column without fields."""
    with pytest.raises(UnknownColumnError) as caught:
        resolve(NESTED, path)
    assert message in str(caught.value)


def test_case_decides_where_the_session_says_so_and_twins_are_ambiguous():
    """Spark would not choose between two names either."""
    with pytest.raises(UnknownColumnError):
        resolve(NESTED, ("ID",), case_sensitive=True)
    with pytest.raises(UnknownColumnError, match="ambiguous"):
        resolve(StructType((Field("aB", P("long")), Field("Ab", P("long")))), ("ab",))


WIDENINGS = [
    ("byte", "short", True),
    ("integer", "long", True),
    ("long", "integer", False),
    ("integer", "double", True),
    ("long", "double", False),
    ("integer", "float", False),
    ("float", "double", True),
    ("double", "float", False),
    ("date", "timestamp_ntz", True),
    ("date", "timestamp", False),
    ("string", "binary", False),
    ("long", DecimalType(20, 0), True),
    ("integer", DecimalType(38, 18), True),
    ("long", DecimalType(20, 1), False),
    (DecimalType(10, 2), DecimalType(12, 4), True),
    (DecimalType(10, 2), DecimalType(12, 1), False),
    (DecimalType(10, 2), DecimalType(11, 4), False),
    (StructType((Field("a", P("integer")),)), StructType((Field("a", P("long")),)), True),
    (StructType((Field("a", P("integer")),)), StructType((Field("b", P("integer")),)), False),
    (ListType(P("integer")), ListType(P("long")), False),
]


@pytest.mark.parametrize(("old", "new", "possible"), WIDENINGS, ids=str)
def test_a_type_widens_only_where_every_reader_follows(old, new, possible):
    """long to double would lose digits, and Spark cannot read it."""
    old, new = (P(t) if isinstance(t, str) else t for t in (old, new))
    assert can_widen(old, new) is possible


@given(schemas)
def test_spark_writes_type_names_as_we_do(schema):
    """Messages use the words users know."""
    for field in schema:
        as_spark = spark.StructType.fromJson(json.loads(schema_to_json(StructType((field,)))))
        if "`" not in (name := as_spark.fields[0].dataType.simpleString()) and len(name) < 60:
            assert type_name(field.type) == name


@pytest.mark.parametrize(
    ("kind", "storage"), [("uuid", "fixed_size_binary[16]"), ("json_", "string")], ids=["uuid", "json"]
)
def test_an_extension_type_is_refused_with_the_type_to_cast_it_to(kind, storage):
    """Leaving the column out is not needed: its values can be kept as they are stored."""
    extension = getattr(pa, kind)()
    with pytest.raises(UnsupportedTypeError, match="column 'c'") as caught:
        schema_from_arrow(pa.schema([("c", extension)]))
    assert caught.value.hint == f"cast it to the type it is stored as, {storage}"
    schema_from_arrow(pa.schema([("c", extension.storage_type)]))
