"""A few adds that a checksum vouches for stay objects until a column is asked for: the same values either way."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import LogCorruptedError, UnsafePathError
from indextables.log.row_table import RowTable
from indextables.log.segments import Segment
from support.add_lines import SHAPE, adds, all_stats, loose, orjson_dumps
from support.logs import foreign_add

anything = loose | st.dictionaries(st.sampled_from(["day", "a"]), loose, max_size=2)
good = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["a.parquet", "b/c.parquet", "d%20e.parquet"]),
        "partitionValues": st.dictionaries(st.just("day"), st.none() | st.text(max_size=1)),
    },
    optional={
        "size": st.integers(0, 2**63 - 1),
        "dataChange": st.none() | st.booleans(),
        "seq": st.none() | st.integers(0, 9),
        "kind": st.none() | st.just("log"),
        "stats": all_stats,
    },
)
odd = st.fixed_dictionaries(
    {"path": st.sampled_from(["a.parquet", "b/c.parquet", "d%20e.parquet"])},
    optional={
        "partitionValues": st.dictionaries(st.just("day"), st.none() | st.text(max_size=3)) | anything,
        "size": st.integers(0, 2**64) | anything,
        "modificationTime": st.integers(0, 9) | anything,
        "dataChange": st.booleans() | anything,
        "seq": st.integers(0, 9) | anything,
        "schemaId": st.just(0) | anything,
        "fileGroup": st.text(max_size=3) | anything,
        "stats": all_stats | anything,
        "tags": st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
        "unknown": st.integers(),
    },
)


def line_of(body):
    return b'{"add":' + orjson_dumps(body) + b"}"


def outcome(lines, *, trusted):
    """Every row, or what is wrong with the first that is."""
    try:
        table = adds(*lines, trusted=trusted)
    except (LogCorruptedError, UnsafePathError) as error:
        return type(error), error.message
    whole = table.whole() if isinstance(table, RowTable) else table
    return repr(whole.to_pylist())


def leaf_paths(kind, above=()):
    for field in kind:
        path = (*above, field.name)
        yield path
        if pa.types.is_struct(field.type):
            yield from leaf_paths(field.type, path)


@settings(max_examples=300, deadline=None)
@given(st.lists(good, min_size=1, max_size=4) | st.lists(good | odd, min_size=1, max_size=4))
def test_a_checksum_changes_how_lines_are_read_and_not_what_is_read(bodies):
    """Whatever another writer puts into the fields of an add: the same rows, or the same error at once."""
    lines = [line_of(body) for body in bodies]
    assert outcome(lines, trusted=True) == outcome(lines, trusted=False)


@settings(max_examples=200, deadline=None)
@given(st.lists(all_stats, min_size=1, max_size=4))
def test_one_statistic_is_what_it_is_among_all(stats):
    """A plan asks for single statistics, a checkpoint for all: neither may see another value."""
    lines = [line_of({"path": f"{i}.parquet", "stats": s}) for i, s in enumerate(stats)]
    table = adds(*lines, trusted=True)
    if not isinstance(table, RowTable):
        return  # a number that JSON does not have
    alone, among = Segment.alive(table, SHAPE), Segment.alive(table.whole(), SHAPE)
    for path in leaf_paths(SHAPE.stats_type):
        assert repr(alone.statistic(path).to_pylist()) == repr(among.statistic(path).to_pylist()), path


def rows_of(count, **changes):
    found = adds(*(foreign_add(i, **changes) for i in range(count)), trusted=True)
    assert isinstance(found, RowTable)
    return found


def test_rows_are_taken_filtered_and_replaced_as_an_arrow_table_does_it():
    """A segment asks for nothing else."""
    rows = rows_of(10, stats={"numRecords": 3, "minValues": {"id": 1}})
    whole = rows.whole()
    assert rows.num_rows == whole.num_rows
    assert rows.schema == whole.schema
    assert rows.take(np.array([2, 5])).equals(whole.take([2, 5]))
    mask = pa.array([True, False] * 5)
    assert rows.filter(mask).equals(whole.filter(mask))
    at = whole.schema.get_field_index("size")
    sizes = pa.array(range(10), pa.int64())
    assert rows.set_column(at, whole.schema.field(at), sizes).column("size").combine_chunks() == sizes


def test_a_column_is_made_once():
    """Keys and sizes are asked for by every plan."""
    rows = rows_of(3, stats={"numRecords": 3})
    assert rows.column("partition_values") is rows.column("partition_values")
    assert rows.leaf(("numRecords",)) is rows.leaf(("numRecords",))


@pytest.mark.parametrize("count", [0, 257])
def test_no_rows_and_many_are_columns_from_the_start(count):
    """No object for each split of a large commit."""
    assert isinstance(adds(*(foreign_add(i) for i in range(count)), trusted=True), pa.Table)


def test_much_text_is_columns_from_the_start():
    """Long bounds are not kept as objects either."""
    stats = {"minValues": {"name": "x" * 40_000}}
    assert isinstance(
        adds(foreign_add(0, stats=stats), foreign_add(1, stats=stats), trusted=True), pa.Table
    )


def test_without_a_checksum_every_line_is_looked_at():
    """What is wrong with a damaged line has to be found when it is read."""
    assert isinstance(adds(foreign_add(0), trusted=False), pa.Table)


@pytest.mark.parametrize(
    "odd", [b'{"add":{"path":"a"}]', b'{"add":{"path":"a"}},', b'{"add":{"path":"a"}}}']
)
def test_a_line_that_only_begins_like_an_add_is_garbled(odd):
    """The body is read without what is around it, so what is around it is looked at."""
    with pytest.raises(LogCorruptedError, match="line 2"):
        adds(foreign_add(0), odd, trusted=True)


@pytest.mark.parametrize(
    "odd", [b'{"add":{"path":null}}', b'{"add":{}}', b'{"add": 5}', b'{"add": null}']
)
def test_an_add_without_a_path_is_none(odd):
    """It is named by its line, as it is among many."""
    with pytest.raises(LogCorruptedError, match="line 2: 'add' is not an object with a path"):
        adds(foreign_add(0), odd, foreign_add(2), trusted=True)


def test_statistics_of_some_rows_are_statistics_of_all():
    """A row without any has none."""
    table = adds(foreign_add(0), foreign_add(1, stats={"numRecords": 2}), trusted=True)
    assert table.leaf(("numRecords",)).to_pylist() == [None, 2]
    assert pc.struct_field(table.column("stats"), ["numRecords"]).to_pylist() == [None, 2]
