"""Lines to columns: in bulk where they are regular, one by one where they are not, the same either way."""

import math

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import LogCorruptedError, UnsafePathError
from indextables.log.state import parse as bulk
from indextables.log.state.parse import Body
from indextables.log.wire.lines import ADD, BLANK, OTHER, REMOVE, find_lines
from indextables.log.state.parse import parse_adds, parse_removes
from indextables.log.state.segments import Shape
from support.logs import METADATA, SCHEMA, foreign_add, text_of

SHAPE = Shape.of(METADATA)
NAME = "000000000000000004.json"


def body_of(text, *, trusted=False, version=4, position=1):
    lines = find_lines(NAME, text)
    strays = [(i, name, value) for i, name, value, _ in lines.others() if name in ("add", "remove")]
    return Body(lines, version, position, trusted, tuple(strays))


def adds(*lines, **options):
    return parse_adds([body_of(text_of(lines), **options)], SHAPE, "/t").table


def only_add(**changes):
    [row] = adds(foreign_add(1, **changes)).to_pylist()
    return row


def test_lines_are_found_and_sorted_by_what_they_are_about():
    """Blank lines and a missing newline at the end change nothing."""
    text = b'{"protocol":{}}\n\n{"add":{"path":"a"}}\n{"remove":{"path":"a"}}\n{"add": {"path":"b"}}'
    found = find_lines(NAME, text)
    assert found.kinds.tolist() == [OTHER, BLANK, ADD, REMOVE, OTHER]
    assert [found.text(i) for i in range(5)] == text.split(b"\n")


@pytest.mark.parametrize("text", [b"", b"\n", b"\n\n"])
def test_a_file_without_actions_has_no_rows(text):
    """Not even an exception."""
    assert adds(text).num_rows == 0


def test_the_fields_of_an_add_are_typed_by_the_schema():
    """Bounds in their wire types, counts as integers, everything else as it is."""
    stats = {
        "numRecords": 3,
        "minValues": {"id": 1, "name": "a", "score": 0.5, "price": "1.20", "st": {"a": 1}},
        "maxValues": {"id": 9, "at": "2024-01-01T00:00:00.000000Z"},
        "nullCount": {"id": 0, "tags": 2},
        "nanCount": {"score": 1},
        "inexact": {"min": [["name"], ["st", "b"]]},
    }
    row = only_add(stats=stats, seq=2, schemaId=0, fileGroup="g", kind="base", block="data")
    assert row["key"] == "part-00001.parquet"
    assert (row["seq"], row["schema_id"], row["file_group"]) == (2, 0, "g")
    assert row["stats"]["minValues"]["price"] == "1.20"
    assert row["stats"]["minValues"]["st"] == {"a": 1, "b": None}
    assert row["stats"]["inexact"] == {"min": [["name"], ["st", "b"]], "max": None}
    assert row["extra"] is None


def test_an_add_of_another_writer_gets_the_version_as_seq_and_an_empty_partition_is_null():
    """As Spark reads and writes them."""
    row = only_add(partitionValues={"day": ""}, dataChange=None)
    assert row["seq"] == 4
    assert row["partition_values"] == {"day": None}
    assert row["data_change"] is True


ODD = [
    ("an unknown field", {"extra1": {"b": 1, "a": [None]}}, "extra", '{"extra1":{"b":1,"a":[null]}}'),
    ("tags", {"tags": {"k": "v"}}, "extra", '{"tags":{"k":"v"}}'),
    ("an unknown statistic", {"stats": {"numRecords": 1, "tightBounds": True}}, "extra", '{"stats":{"tightBounds":true}}'),
    ("statistics of an unknown column", {"stats": {"minValues": {"gone": 1}}}, "extra", '{"stats":{"minValues":{"gone":1}}}'),
    ("an unknown partition column", {"partitionValues": {"day": None, "p": "1"}}, "extra", '{"partitionValues":{"p":"1"}}'),
    ("a partition value that is a number", {"partitionValues": {"day": 5}}, "partition_values", {"day": "5"}),
    ("a size with a fraction of nothing", {"size": 12.0}, "size", 12),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "column", "value"), [case[1:] for case in ODD], ids=[case[0] for case in ODD]
)
def test_what_is_not_known_is_kept_as_text_in_its_order(changes, column, value):
    """So that a checkpoint can write it again."""
    assert only_add(**changes)[column] == value


STATS = [
    ("statistics inside a text", '{"numRecords":7}', "numRecords", 7),
    ("a text that is no JSON", '{"numRecords":', None, None),
    ("statistics that are a number", 5, None, None),
    ("a text for an integer", {"numRecords": 3, "minValues": {"id": "1"}}, "minValues", {"id": None}),
    ("a fraction for an integer", {"minValues": {"id": 1.5}}, "minValues", {"id": None}),
    ("more than 64 bits", {"minValues": {"id": 2**63}}, "minValues", {"id": None}),
    ("a number for a text", {"minValues": {"name": 5, "id": 1}}, "minValues", {"name": None, "id": 1}),
    ("an integer for a decimal", {"minValues": {"price": 5}}, "minValues", {"price": "5"}),
    ("an infinity", {"maxValues": {"score": "Infinity"}}, "maxValues", {"score": math.inf}),
    ("a count that is a text", {"nullCount": {"id": "0"}}, "nullCount", {"id": None}),
    ("bounds that are a list", {"numRecords": 1, "minValues": [1]}, "minValues", None),
    ("a nested bound that is not nested", {"minValues": {"st": 1}}, "minValues", {"st": None}),
    ("inexact that is garbled hides every bound", {"minValues": {"id": 1}, "inexact": 5}, "minValues", None),
    ("a plain name in a list of paths", {"dropped": ["name"]}, "dropped", [["name"]]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("stats", "part", "value"), [case[1:] for case in STATS], ids=[case[0] for case in STATS]
)
def test_a_statistic_that_is_not_of_its_type_is_unknown_and_the_split_stays(stats, part, value):
    """Decoded by the schema's type, never guessed."""
    found = only_add(stats=stats)["stats"]
    found = found if part is None else found[part]
    if isinstance(value, dict):
        found = {name: found[name] for name in value}
    assert found == value


LENIENT = [
    ("the token NaN", '{"numRecords":1,"minValues":{"score":NaN,"id":3}}', {"score": None, "id": 3}),
    ("the token Infinity", '{"minValues":{"score":Infinity}}', {"score": math.inf}),
    ("a lone surrogate", '{"minValues":{"name":"\\ud800","id":3}}', {"name": None, "id": 3}),
    ("a raw tab", '{"minValues":{"name":"a\tb"}}', {"name": "a\tb"}),
]


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("stats", "low"), [case[1:] for case in LENIENT], ids=[case[0] for case in LENIENT]
)
def test_a_line_that_is_not_strict_json_loses_at_most_the_bad_statistic(stats, low, trusted):
    """The split itself is never lost."""
    text = '{"add":{"path":"x.parquet","size":1,"stats":' + stats + "}}"
    row = adds(text, trusted=trusted and "NaN" not in stats).to_pylist()[0]
    assert row["key"] == "x.parquet"
    assert {name: row["stats"]["minValues"][name] for name in low} == low


def test_half_a_character_in_a_statistic_costs_that_statistic_only():
    """Arrow's parser does not look if a text is UTF-8; the reader does."""
    bad = b'{"add":{"path":"x.parquet","stats":{"minValues":{"name":"\xe4\xb8","id":1}}}}'
    low = adds(bad).to_pylist()[0]["stats"]["minValues"]
    assert (low["name"], low["id"]) == (None, 1)


GARBLED = [
    ("a path that is no text", '{"add":{"path":5}}', "not an object with a path"),
    ("no path", '{"add":{"size":5}}', "not an object with a path"),
    ("half a character in the path", b'{"add":{"path":"a\xe4"}}', "path is not a text"),
    ("a size that is a text", '{"add":{"path":"a","size":"5"}}', "size is not an integer"),
    ("a seq that is a fraction", '{"add":{"path":"a","seq":1.5}}', "seq is not an integer"),
    ("two objects on one line", '{"add":{"path":"a"}}{"add":{"path":"b"}}', "not JSON"),
    (
        "two actions on one line",
        '{"add":{"path":"a"},"remove":{"path":"b"}}',
        "two actions on one line",
    ),
    ("a line that is cut", '{"add":{"path":"a","size', "not JSON"),
    ("something after the object", '{"add":{"path":"a"}} x', "not JSON"),
    (
        "partition values that are a list",
        '{"add":{"path":"a","partitionValues":[]}}',
        "partitionValues",
    ),
    ("dataChange that is a number", '{"add":{"path":"a","dataChange":1}}', "dataChange"),
]


@pytest.mark.parametrize(
    ("bad", "says"), [case[1:] for case in GARBLED], ids=[case[0] for case in GARBLED]
)
def test_a_garbled_add_is_an_error_that_names_file_and_line(bad, says):
    """Among 200 good ones; nothing is lost in silence."""
    lines = [foreign_add(i) for i in range(200)]
    lines[136] = bad
    with pytest.raises(LogCorruptedError, match=says) as caught:
        adds(*lines)
    assert (caught.value.file, caught.value.line) == (NAME, 137)


@pytest.mark.parametrize(
    "path",
    ["../x.parquet", "/etc/passwd", "s3://other/x", "_transaction_log/0.json", "a%2F..%2F..%2Fb"],
)
def test_a_path_outside_the_table_is_refused_by_file_and_line(path):
    """Paths in actions are untrusted."""
    lines = [foreign_add(i) for i in range(100)]
    lines[41] = foreign_add(0, path=path)
    with pytest.raises(UnsafePathError) as caught:
        adds(*lines)
    assert (caught.value.file, caught.value.line) == (NAME, 42)


def test_two_spellings_of_one_path_are_one_key():
    """Identity is the percent-decoded key; an absolute path below the root is the same file."""
    table = adds(
        *(
            foreign_add(0, path=p)
            for p in ("a b.parquet", "a%20b.parquet", "file:///t/a%20b.parquet", "/t/a b.parquet")
        )
    )
    assert set(table.column("key").to_pylist()) == {"a b.parquet"}


def test_an_add_in_another_spelling_is_found_in_its_place():
    """White space after the colon, as many JSON writers put it."""
    lines = [foreign_add(0), b'{"add": {"path": "odd.parquet", "size": 1}}', foreign_add(2)]
    rows = parse_adds([body_of(text_of(lines))], SHAPE, "/t")
    by_order = [rows.table.column("key")[int(i)].as_py() for i in rows.order.argsort()]
    assert by_order == ["part-00000.parquet", "odd.parquet", "part-00002.parquet"]


def test_removes_keep_their_unknown_fields():
    """Such as the partition values and size that Delta repeats."""
    lines = [
        {"remove": {"path": "a", "deletionTimestamp": 5, "dataChange": False, "size": 3}},
        {"remove": {"path": "b"}},
    ]
    table = parse_removes([body_of(text_of(lines))], "/t").table
    assert table.to_pylist() == [
        {"key": "a", "deletion_timestamp": 5, "data_change": False, "extra": '{"size":3}'},
        {"key": "b", "deletion_timestamp": None, "data_change": None, "extra": None},
    ]


# -- the two readers agree ----------------------------------------------------------------------------

words = st.text(max_size=4) | st.sampled_from(["Infinity", "NaN", "2024-01-01", "5", ""])
loose = (
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats()
    | words
    | st.lists(words, max_size=2)
)
columns = st.sampled_from(["id", "name", "score", "price", "at", "tags", "day", "gone"])
values = st.dictionaries(columns, loose, max_size=4) | st.fixed_dictionaries(
    {"st": st.dictionaries(st.sampled_from("abc"), loose, max_size=2) | loose}
)
all_stats = st.dictionaries(
    st.sampled_from(
        ["numRecords", "minValues", "maxValues", "nullCount", "nanCount", "inexact", "dropped", "more"]
    ),
    values | loose | st.lists(st.lists(words, max_size=2), max_size=2),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(all_stats | loose, min_size=1, max_size=5), st.data())
def test_a_line_reads_the_same_alone_and_among_others(stats, data):
    """Which lines share a call of the parser depends on chance; what is read must not."""
    lines = [
        b'{"add":' + orjson_dumps({"path": f"{i}.parquet", "stats": s}) + b"}"
        for i, s in enumerate(stats)
    ]
    together = adds(*lines).to_pylist()
    apart = [adds(line).to_pylist()[0] for line in lines]
    assert repr(together) == repr(apart)
    cut = data.draw(st.integers(0, len(lines)))
    assert repr(adds(*lines[:cut]).to_pylist() + adds(*lines[cut:]).to_pylist()) == repr(together)


@settings(max_examples=50, deadline=None)
@given(st.lists(all_stats | loose, min_size=1, max_size=3))
def test_python_and_arrow_read_the_same(stats):
    """A few lines are read by the one, many by the other."""
    lines = [
        b'{"add":' + orjson_dumps({"path": f"{i}.parquet", "stats": s}) + b"}"
        for i, s in enumerate(stats)
    ]
    few = adds(*lines).to_pylist()
    # the same lines again and again, with nothing but good ones between them
    for count in (9, 70):
        many = adds(*(lines[i % len(lines)] for i in range(count))).to_pylist()
        assert repr(many) == repr([few[i % len(lines)] for i in range(count)])


def orjson_dumps(value):
    """JSON with what orjson refuses: numbers beyond 64 bits, and NaN as a token."""
    import json

    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def test_few_bad_lines_among_many_do_not_slow_down_the_others(monkeypatch):
    """Only the neighbourhood of a bad line is read one by one."""
    read = []
    original = bulk._one_by_one
    monkeypatch.setattr(
        bulk,
        "_one_by_one",
        lambda run, low, high, reader: (read.append(high - low), original(run, low, high, reader))[1],
    )
    lines = [foreign_add(i) for i in range(5000)]
    lines[77] = foreign_add(77, unknown=1)
    lines[4321] = foreign_add(4321, stats="garbage")
    table = adds(*lines)
    assert table.num_rows == 5000
    assert table.column("key").to_pylist() == [f"part-{i:05}.parquet" for i in range(5000)]
    assert sum(read) <= 2 * 64


def test_lines_that_are_all_odd_are_not_halved_to_find_that_out(monkeypatch):
    """Another writer's statistics as a text, with a member we do not know: one call of the parser for each chunk."""
    calls = []
    original = bulk._arrow
    monkeypatch.setattr(
        bulk, "_arrow", lambda *args, **more: (calls.append(args[1]), original(*args, **more))[1]
    )
    stats = orjson.dumps({"numRecords": 7, "minValues": {"id": 1}, "tightBounds": True}).decode()
    table = adds(*(foreign_add(i, stats=stats) for i in range(5000)))
    assert calls == [5000, 1, 1, 1, 1024, 1024, 1024, 1024, 904]
    assert table.column("stats").to_pylist()[4999]["minValues"]["id"] == 1
    assert set(table.column("extra").to_pylist()) == {'{"stats":{"tightBounds":true}}'}


def test_unknown_members_keep_their_order_at_every_depth():
    """They are written back as they were found."""
    stats = {"z": 1, "minValues": {"y": 2, "id": 3, "x": {"b": 4, "a": 5}}, "numRecords": 7, "c": 6}
    row = adds(foreign_add(1, stats=stats)).to_pylist()[0]
    assert row["extra"] == '{"stats":{"z":1,"minValues":{"y":2,"x":{"b":4,"a":5}},"c":6}}'
    assert row["stats"]["minValues"]["id"] == 3


def test_a_million_bytes_on_one_line_are_one_line():
    """A long statistic is no reason to fail."""
    row = adds(foreign_add(1, stats={"minValues": {"name": "x" * 1_000_000}})).to_pylist()[0]
    assert len(row["stats"]["minValues"]["name"]) == 1_000_000


def test_a_line_longer_than_a_block_of_the_parser_is_read_among_many():
    """Six million characters in one statistic, two hundred lines around it."""
    lines = [foreign_add(i) for i in range(200)]
    lines[100] = foreign_add(100, stats={"minValues": {"name": "x" * 6_000_000}})
    table = adds(*lines, trusted=True)
    assert table.num_rows == 200
    assert len(table.column("stats")[100].as_py()["minValues"]["name"]) == 6_000_000


def test_an_unpartitioned_table_without_columns_to_order_has_rows_too():
    """Arrow has no fields then to put anything into."""
    from indextables.core.types import schema_from_arrow

    shape = Shape(schema_from_arrow(pa.schema([("l", pa.list_(pa.int64()))])), ())
    text = orjson.dumps(
        {"add": {"path": "a", "partitionValues": {}, "stats": {"numRecords": 1, "minValues": {}}}}
    )
    rows = parse_adds([body_of(text)], shape, "/t").table.to_pylist()
    assert rows[0]["stats"]["numRecords"] == 1


assert SCHEMA.names  # the columns above are those of the shared schema
