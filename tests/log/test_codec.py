"""Actions and lines: what is written is read back, and what is not known is not lost."""

import json
from functools import reduce

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import LogCorruptedError
from indextables.log.wire.actions import CommitInfo, Metadata, Protocol, Remove, Txn, Unknown, Vacuum
from indextables.log.wire.codec import encode_action
from indextables.log.wire.codec import decode_action
from indextables.log.wire.lines import LinePosition, loads
from support.logs import METADATA, SCHEMA, add_of

HERE = LinePosition("000000000000000007.json", 3)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
extras = st.dictionaries(st.text(min_size=1, max_size=8).map("x-".__add__), json_values, max_size=3)


def line(action, version=7):
    return encode_action(action, seq=version, schema=SCHEMA)


def read(text):
    [(name, value)] = orjson.loads(text).items()
    return decode_action(name, value, text.rstrip(b"\n"), HERE)


@settings(max_examples=60)
@given(
    st.one_of(
        st.builds(
            Protocol,
            st.integers(1, 9),
            st.integers(1, 9),
            st.lists(st.text(max_size=5)).map(tuple),
            st.lists(st.text(max_size=5)).map(tuple),
            extras,
        ),
        st.builds(
            Metadata,
            id=st.text(min_size=1, max_size=9),
            schema=st.just(SCHEMA),
            partition_columns=st.sampled_from([(), ("day",), ("day", "id")]),
            name=st.none() | st.text(max_size=5),
            description=st.none() | st.text(max_size=5),
            properties=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
            created_time=st.none() | st.integers(0, 2**50),
            schema_id=st.integers(0, 9),
            past_schemas=st.dictionaries(st.integers(0, 9), st.just(SCHEMA), max_size=3),
            extra=extras,
        ),
        st.builds(
            Txn, st.text(max_size=9), st.integers(-5, 2**60), st.none() | st.integers(0, 9), extras
        ),
        st.builds(Vacuum, st.integers(0, 2**60), extras),
        st.builds(
            CommitInfo,
            operation=st.none() | st.text(max_size=5),
            timestamp=st.none() | st.integers(0, 2**50),
            commit_id=st.none() | st.text(max_size=5),
            parent=st.none() | st.text(max_size=5),
            parameters=extras,
            metrics=extras,
            actions=st.none() | st.integers(0, 9),
            crc32=st.none() | st.integers(0, 2**32 - 1),
            num_files=st.none() | st.integers(0, 9),
            extra=extras,
        ),
    )
)
def test_an_action_that_is_not_about_a_file_is_read_back_as_it_was(action):
    """Unknown fields come back too, in their order."""
    found = read(line(action))
    assert found == action
    assert list(found.extra) == list(action.extra)
    assert line(found) == line(action)


def test_a_commit_is_one_compact_json_object_per_line_with_a_fixed_order_of_keys():
    """The order is part of the format, so that equal commits are equal bytes."""
    text = line(add_of(1, tags={"k": "v"}, extra={"z": 1, "a": 2}))
    assert text.count(b"\n") == 1
    assert b", " not in text
    assert list(orjson.loads(text)["add"]) == [
        "path",
        "partitionValues",
        "size",
        "modificationTime",
        "dataChange",
        "schemaId",
        "seq",
        "stats",
        "tags",
        "z",
        "a",
    ]


def test_an_add_without_seq_gets_the_version_of_its_commit_and_one_with_seq_keeps_it():
    """A rebase changes the version, a compaction must not."""
    assert orjson.loads(line(add_of(1), version=7))["add"]["seq"] == 7
    assert orjson.loads(line(add_of(1, seq=3), version=7))["add"]["seq"] == 3


@pytest.mark.parametrize(
    "key", ["data/a b%.parquet", "d=ü/x.parquet", "a:b/c#d?e.parquet", "x'y\"z.parquet"]
)
def test_a_path_is_percent_encoded_on_the_wire(key):
    """A reader that decodes once gets the key back."""
    from indextables.storage.location import file_key

    wire = orjson.loads(line(Remove(key, 1)))["remove"]["path"]
    assert wire.isascii()
    assert file_key(wire, "/t") == key


@pytest.mark.parametrize(
    "raw", [b'{"vacuum":{}}', b'{"vacuum":true}', b'{"vacuum":{"minReadVersion":"1"}}']
)
def test_an_action_of_another_writer_with_our_name_is_unknown(raw):
    """`vacuum` is a common word."""
    assert read(raw) == Unknown("vacuum", raw)


def test_an_unknown_action_keeps_its_line_byte_for_byte():
    """Even its white space and the order of its keys."""
    raw = b'{"skip" : {"b":1, "a":[ ]}}'
    assert read(raw) == Unknown("skip", raw)
    assert line(Unknown("skip", raw)) == raw + b"\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"protocol":[]}', "'protocol' is not an object"),
        ('{"protocol":{"minReaderVersion":"2"}}', "protocol.minReaderVersion is not an integer"),
        ('{"protocol":{"minReaderVersion":true}}', "protocol.minReaderVersion is not an integer"),
        ('{"protocol":{"readerFeatures":[1]}}', "protocol.readerFeatures is not a list of texts"),
        ('{"metaData":{"schemaString":"{}"}}', "metaData.schemaString is not a schema"),
        ('{"metaData":{"id":"x"}}', "metaData.schemaString is missing"),
        ('{"txn":{"appId":"a"}}', "txn.version is missing"),
    ],
)
def test_a_field_of_the_wrong_type_names_the_file_the_line_and_the_field(text, says):
    """Nothing is guessed from a garbled action."""
    with pytest.raises(LogCorruptedError, match=says) as caught:
        read(text.encode())
    assert "000000000000000007.json, line 3" in str(caught.value)
    assert (caught.value.file, caught.value.line) == (HERE.file, HERE.line)


def one(name, kind):
    """A schema in JSON with this one column."""
    return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True}]}


TWICE = {"type": "struct", "fields": one("a", "long")["fields"] + one("a", "string")["fields"]}


@pytest.mark.parametrize(
    ("schema", "partitions", "says"),
    [
        (TWICE, [], "schemaString is not a schema: it has the column 'a' twice"),
        (one("s", TWICE), [], "schemaString is not a schema: it has the column 'a' twice"),
        (one("a", "long"), ["zz"], "partitionColumns names 'zz', which is not a column"),
        (one("a", "long"), ["a", "a"], "partitionColumns names a column twice"),
        (reduce(lambda kind, _: one("a", kind), range(90), "long"), [], "nested deeper than 64 levels"),
    ],
    ids=["twice", "twice below", "no column", "one partition twice", "deep"],
)
def test_metadata_that_no_table_can_have_names_the_line(schema, partitions, says):
    """Read as it is, it would be a KeyError or a RecursionError of the first query."""
    metadata = {"id": "x", "schemaString": json.dumps(schema), "partitionColumns": partitions}
    with pytest.raises(LogCorruptedError, match=says) as caught:
        read(json.dumps({"metaData": metadata}).encode())
    assert (caught.value.file, caught.value.line) == (HERE.file, HERE.line)


@pytest.mark.parametrize(
    "text", ['{"commitInfo":{"timestamp":"yesterday","actions":"3"}}', '{"commitInfo":{}}']
)
def test_a_commit_info_of_another_writer_is_never_an_error(text):
    """What is not of our type is kept as unknown."""
    info = read(text.encode())
    assert info.timestamp is None
    assert orjson.loads(line(info))["commitInfo"].items() >= orjson.loads(text)["commitInfo"].items()


def test_a_line_that_is_no_json_at_all_is_named():
    """Cut in the middle."""
    with pytest.raises(LogCorruptedError, match="line 3: not JSON"):
        loads(b'{"add":{"path":"a', HERE)


def test_deep_nesting_is_an_error_and_not_a_crash():
    """A hostile line must not take the interpreter down."""
    with pytest.raises(LogCorruptedError):
        loads(b"[" * 200_000, HERE)


def test_the_metadata_of_a_new_table_has_the_fields_other_readers_expect():
    """The names are the protocol's own."""
    body = orjson.loads(line(METADATA))["metaData"]
    assert {"id", "format", "schemaString", "partitionColumns", "configuration", "createdTime"} <= set(
        body
    )
    assert orjson.loads(body["schemaString"])["type"] == "struct"
