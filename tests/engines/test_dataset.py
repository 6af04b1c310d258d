"""The table as an Arrow dataset: what PyArrow's users may do with one."""

import math
import pickle
import subprocess
import sys
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import indextables as it
from indextables.engines.arrow.conditions import Rules
from indextables.errors import PredicateError

NAN = float("nan")


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("d", pa.float64())]))
    for start in (0, 10, 20):
        values = [NAN if start == 10 else float(start + i) for i in range(10)]
        made.append(pa.table({"id": range(start, start + 10), "d": values}))
    return made


def test_a_scan_opens_only_the_files_its_filter_needs(table):
    """Planned when scanned, and counted like every read of ours."""
    with it.query_stats() as stats:
        found = table.to_dataset().to_table(filter=pc.field("id") < 5)
    assert (found.num_rows, stats.data_files_opened, stats.files_pruned) == (5, 1, 2)


def test_counting_without_a_filter_opens_no_file(table):
    """The log knows how many rows there are."""
    with it.query_stats() as stats:
        assert table.to_dataset().count_rows() == 30
    assert stats.data_files_opened == 0


@pytest.mark.parametrize(("rules", "rows"), [(Rules.SQL, 20), (Rules.ARROW, 10)])
def test_nan_follows_the_rules_that_were_asked_for(table, rules, rows):
    """Above every number for SQL; for PyArrow no comparison with NaN holds."""
    dataset = table.to_dataset(rules=rules)
    assert dataset.count_rows(filter=pc.field("d") > 15) == rows
    assert dataset.count_rows(filter=(pc.field("d") > 15) & (pc.field("id") + 0 >= 0)) == rows


def test_a_filter_arrow_alone_can_evaluate_is_applied(table):
    """What statistics cannot answer still filters rows, and the rest still skips files."""
    condition = (pc.field("id") * 2 == 8) & (pc.field("id") < 10)
    with it.query_stats() as stats:
        assert table.to_dataset().to_table(filter=condition)["id"].to_pylist() == [4]
    assert stats.data_files_opened == 1


def test_a_column_may_be_named_by_its_place(table):
    """PyArrow cannot write such an expression down, so no file is skipped, but rows are right."""
    assert table.to_dataset().to_table(filter=pc.field(0) > 27)["id"].to_pylist() == [28, 29]


def test_computed_columns_need_no_other_columns(table):
    """A projection may hold expressions; the filter's columns need not be in it."""
    found = table.to_dataset().to_table(columns={"twice": pc.field("id") * 2}, filter=pc.field("d") < 2)
    assert found.to_pydict() == {"twice": [0, 2]}


def test_filters_of_a_dataset_add_up(table):
    """dataset.filter(a).filter(b) sees the rows of both, and skips files by both."""
    dataset = table.to_dataset().filter(pc.field("id") > 5).filter(pc.field("id") < 8)
    assert dataset.to_table()["id"].to_pylist() == [6, 7]
    assert len(dataset.plan().files) == 1


def test_it_is_one_version_whoever_commits(table):
    """Rows appended later are in a later dataset."""
    before = table.to_dataset()
    table.append(pa.table({"id": [99], "d": [0.0]}))
    assert (before.count_rows(), table.to_dataset().count_rows()) == (30, 31)
    assert table.to_dataset(version=1).count_rows() == 10


def test_it_can_be_sent_to_another_process(table):
    """Pickled, it is the same version with the same filter."""
    dataset = pickle.loads(pickle.dumps(table.to_dataset().filter(pc.field("id") > 27)))
    assert dataset.to_table()["id"].to_pylist() == [28, 29]


def test_heads_takes_sorts_and_joins_work(table):
    """Whatever PyArrow's datasets can do goes through the reader, never past it."""
    dataset = table.to_dataset()
    other = pa.table({"id": [3], "name": ["x"]})
    assert dataset.head(3).num_rows == 3
    assert dataset.take([1, 4])["id"].to_pylist() == [1, 4]
    assert dataset.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [29]
    joined = dataset.join(__import__("pyarrow.dataset").dataset.dataset(other), "id", join_type="inner")
    assert joined.to_table()["name"].to_pylist() == ["x"]
    with pytest.raises(PredicateError, match="log"):
        dataset.replace_schema(pa.schema([]))


def test_fragments_are_splits_that_scan_themselves(table):
    """One for each split the filter needs, each with the table's schema."""
    fragments = list(table.to_dataset().get_fragments(filter=pc.field("id") >= 10))
    assert [f.count_rows() for f in fragments] == [10, 10]
    assert fragments[1].to_table(columns=["id"], filter=pc.field("id") == 25)["id"].to_pylist() == [25]


def test_a_table_in_a_store_without_files_is_read_too():
    """Nothing of it is on a disk: rows come through the store."""
    made = it.Table.create("memory://dataset-of-a-memory-table", pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": [1, 2]}))
    assert made.to_dataset().to_table(filter=pc.field("id") > 1)["id"].to_pylist() == [2]
    assert it.scan_polars("memory://dataset-of-a-memory-table").collect()["id"].to_list() == [1, 2]


def test_a_prefix_of_bytes_that_are_no_text_is_left_to_arrow(tmp_path):
    """PyArrow keeps it as text that cannot be decoded."""
    made = it.Table.create(tmp_path / "bytes", pa.schema([("x", pa.binary())]))
    made.append(pa.table({"x": pa.array([b"a", b"\xff\x01", None], pa.binary())}))
    for wanted in (pc.starts_with(pc.field("x"), b"\xff"), pc.match_substring(pc.field("x"), b"\xff")):
        assert made.to_dataset().to_table(filter=wanted)["x"].to_pylist() == [b"\xff\x01"]


def test_a_list_by_arrows_rules_tells_two_zeros_apart(tmp_path):
    """As PyArrow does in memory, where lists are hashed by their bits; by SQL's rules there is one zero."""
    data = pa.table({"d": [0.0, -0.0, NAN, 1.0, None]})
    made = it.Table.create(tmp_path / "zeros", data.schema)
    made.append(data)
    for listed in ([0.0], [-0.0, 1.0], [NAN], [NAN, None]):
        for wanted in (pc.field("d").isin(listed), ~pc.field("d").isin(listed)):
            found = made.to_dataset(rules=Rules.ARROW).to_table(filter=wanted)
            assert repr(found.to_pylist()) == repr(data.filter(wanted).to_pylist())
    assert made.to_dataset().count_rows(filter=pc.field("d").isin([0.0])) == 2


def test_a_list_beside_what_only_arrow_computes_finds_both_zeros_and_every_nan(tmp_path):
    """Arrow filters then, by SQL's rules all the same."""
    data = pa.table({"d": [0.0, -0.0, NAN, -NAN, 1.0, None]})
    made = it.Table.create(tmp_path / "zeros", data.schema)
    made.append(data)
    beside = pc.sign(pc.field("d")).cast(pa.string()) != "2"
    for listed, count in (([0.0], 2), ([-0.0, 1.0], 3), ([NAN], 2), ([5.0, None], 0)):
        wanted = pc.field("d").isin(listed)
        assert made.to_dataset().count_rows(filter=wanted) == count
        assert made.to_dataset().count_rows(filter=wanted & beside) == count


@pytest.mark.parametrize("rules", Rules)
def test_files_that_match_whole_and_files_that_do_not_give_the_same_rows(rules):
    """NULL and NaN beside bounds that lie in the range: a file with one of them is filtered row by row."""
    schema = pa.schema([("f", pa.float64()), ("i", pa.int32())])
    made = it.Table.create(f"memory://{uuid4()}", schema)
    parts = ([1.0, 2.0], [1.0, None], [1.0, math.nan], [0.0, -0.0], [None, None], [math.nan, math.nan])
    for number, values in enumerate(parts):
        made.append(pa.table({"f": values, "i": [number, number]}, schema))
    f = pc.field("f")
    dataset, plain = made.to_dataset(rules=rules), ds.dataset(made.scan().to_arrow())
    same = [f < 5, ~(f < 0.5), f != 7, f == 0, f.is_valid(), f.is_null()]
    others = {
        f"{wanted}": wanted | f.is_nan() for wanted in (f > 0.5, f >= 0)
    }  # NaN is above every number
    others[f"{~(f > 5)}"] = ~(f > 5) & ~f.is_nan()
    for wanted in (*same, f > 0.5, f >= 0, ~(f > 5)):
        by_sql = others.get(str(wanted), wanted)
        expected = plain.filter(by_sql if rules is Rules.SQL else wanted)
        found = dataset.to_table(filter=wanted)
        assert repr(found.to_pylist()) == repr(expected.to_table().to_pylist()), wanted
        alone = [
            row
            for part in dataset.get_fragments(wanted)
            for row in part.to_table(filter=wanted).to_pylist()
        ]
        assert repr(alone) == repr(found.to_pylist())
        assert dataset.count_rows(filter=wanted) == len(alone)
    assert made.plan("f >= 1 AND f <= 2").plan.whole == {made.plan("i = 0").files[0].path}
    assert made.scan("i = 3").count() == 2


def test_more_scans_at_once_than_arrow_has_threads_do_not_wait_for_each_other(tmp_path):
    """DataFusion reads all files of a join at once, each in a thread of Arrow's, and none may need one more."""
    program = """
import sys
from concurrent.futures import ThreadPoolExecutor
import pyarrow as pa
import indextables as it
table = it.Table.create(sys.argv[1], pa.schema([("id", pa.int64())]))
for start in range(6):
    table.append(pa.table({"id": [start, start + 1]}))
pa.set_io_thread_count(2)
dataset = table.to_dataset()
with ThreadPoolExecutor(6) as pool:
    print(sum(pool.map(lambda fragment: fragment.to_table().num_rows, dataset.get_fragments())))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert done.stdout.strip() == b"12"
