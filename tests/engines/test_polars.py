"""The table as a LazyFrame."""

import datetime as dt
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.core.predicate.nodes import Compare, IsIn, Literal, Opaque, Ref
from indextables.engines.polars import predicate_of
from indextables.errors import SchemaMismatchError


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("f", pa.float32())]))
    for start in (0, 10, 20):
        made.append(pa.table({"id": range(start, start + 10), "f": pa.array([0.1] * 10, pa.float32())}))
    return made


def test_a_limit_comes_before_the_filter(table):
    """The first five rows, of which none has an id above 20: no file may be skipped for the filter."""
    frame = it.scan_polars(table.uri)
    assert frame.head(5).filter(pl.col("id") > 20).collect().height == 0
    assert frame.filter(pl.col("id") > 20).head(5).collect().height == 5


def test_a_later_collect_sees_the_same_version_unless_it_follows(table):
    """Twice collected, the same rows; with follow, those of now."""
    pinned, following = it.scan_polars(table.uri), it.scan_polars(table.uri, follow=True)
    assert (pinned.collect().height, following.collect().height) == (30, 30)
    table.append(pa.table({"id": [99], "f": pa.array([None], pa.float32())}))
    assert (pinned.collect().height, following.collect().height) == (30, 31)
    assert it.scan_polars(table.uri, version=1).collect().height == 10


def test_following_into_another_schema_is_an_error(table):
    """A query was made for the old types, so it cannot quietly get others."""
    following = it.scan_polars(table.uri, follow=True)
    table.evolve(pa.schema([("id", pa.int64()), ("f", pa.float64())]))
    with pytest.raises(SchemaMismatchError, match="'f'"):
        following.collect()


def test_only_kept_splits_are_in_polars_own_plan(table):
    """The scan is Polars' own, over one file."""
    plan = it.scan_polars(table.uri).filter(pl.col("id") == 15)
    plan.collect()
    assert plan.explain().count(".parquet") == 1


def test_joins_and_aggregates_work_on_top(table):
    """A filter above a join reaches the table."""
    frame = it.scan_polars(table.uri)
    joined = frame.join(frame, on="id").filter(pl.col("id") < 3).select(pl.col("id").sum())
    assert joined.collect().item() == 3


EXPRESSIONS = {
    "a single float is what Polars rounds it to": (
        pl.col("f") > pl.lit(0.1, pl.Float32),
        Compare(">", Ref(("f",)), Literal(0.10000000149011612)),
    ),
    "infinity is not NULL": (
        pl.col("d") < float("inf"),
        Compare("<", Ref(("d",)), Literal(float("inf"))),
    ),
    "a NULL in a list matches nothing": (
        pl.col("a").is_in([1, None]),
        IsIn(Ref(("a",)), (Literal(1),)),
    ),
    "a nested field": (
        pl.col("st").struct.field("x") == "y",
        Compare("=", Ref(("st", "x")), Literal("y")),
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_read_as_polars_means_them(name):
    """JSON shows NaN and infinities as null and rounds singles, so literals are evaluated instead."""
    expression, condition = EXPRESSIONS[name]
    assert predicate_of(expression) == condition


@pytest.mark.parametrize(
    "expression",
    [
        pl.col("a") + 1 > 5,
        pl.col("a").cast(pl.Float64) > 1.5,
        pl.col("a").sum() > 3,
        pl.col("s").str.to_lowercase() == "x",
        pl.col("t").dt.date() == dt.date(2024, 1, 1),
    ],
    ids=str,
)
def test_what_only_polars_can_evaluate_is_opaque(expression):
    """It keeps every file, and names its columns."""
    found = predicate_of(expression)
    assert isinstance(found, Opaque)
    assert found.columns == ((expression.meta.root_names()[0],),)


def test_files_polars_reads_itself_are_counted_as_handed_over(table):
    """Two are left out, one is Polars' to open; our reader opens none."""
    frame = it.scan_polars(table.uri).filter(pl.col("id") == 15)
    with it.query_stats() as stats:
        frame.collect()
    assert (stats.files_handed_over, stats.files_pruned, stats.data_files_opened) == (1, 2, 0)


def test_files_our_reader_reads_for_polars_are_counted_where_they_are_opened(table):
    """A store that Polars cannot read: rows come through ours, in a thread of Polars."""
    made = it.Table.create("memory://polars-counts", pa.schema([("id", pa.int64())]))
    for start in (0, 10):
        made.append(pa.table({"id": range(start, start + 10)}))
    with it.query_stats() as stats:
        it.scan_polars(made.uri).filter(pl.col("id") > 15).collect()
    assert (stats.files_handed_over, stats.files_pruned, stats.data_files_opened) == (0, 1, 1)


def test_arithmetic_that_overflows_at_a_bound_loses_no_row(tmp_path):
    """Polars would skip the row group: minus its minimum wraps, and lies below what is asked for."""
    made = it.Table.create(tmp_path / "edges", pa.schema([("i", pa.int32())]))
    made.append(pa.table({"i": pa.array([-(2**31), -1, 2**31 - 1], pa.int32())}))
    frame = it.scan_polars(made.uri)
    assert frame.filter(-pl.col("i") > 0).collect()["i"].to_list() == [-1]
    assert frame.filter(pl.col("i") + 1 > -1, pl.col("i") < 5).collect()["i"].to_list() == [-1]


BY_BOUNDS = {
    "between": pl.col("id").is_between(80, 84),
    "comparisons": (pl.col("id") >= 80) & (pl.col("id") < 85),
    "or": (pl.col("id") == 83) | (pl.col("id") > 97),
    "in": pl.col("id").is_in([81, 99]),
    "text": pl.col("s") == "s85",
    "null": pl.col("id").is_not_null() & (pl.col("id") > 90),
    "cast literal": pl.col("id") > pl.lit(90, pl.Int32),
}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """One file of ten row groups, of which the first four cannot be read."""
    made = it.Table.create(
        tmp_path_factory.mktemp("groups") / "t", pa.schema([("id", pa.int64()), ("s", pa.string())])
    )
    rows = pa.table({"id": range(100), "s": [f"s{i:02}" for i in range(100)]})
    made.append(rows)
    path = Path(made.uri, made.plan().files[0].path)
    pq.write_table(rows, path, row_group_size=10)
    end = pq.read_metadata(path).row_group(3).column(1).data_page_offset
    written = path.read_bytes()
    path.write_bytes(written[:4] + b"\xff" * (end - 4) + written[end:])
    return made


@pytest.mark.parametrize("name", BY_BOUNDS)
def test_polars_skips_row_groups_by_a_filter_that_is_read_whole(damaged, name):
    """It cannot have opened the row groups that the filter excludes: they are damaged."""
    wanted = pl.DataFrame({"id": range(100), "s": [f"s{i:02}" for i in range(100)]})
    frame = it.scan_polars(damaged.uri)
    found = frame.filter(BY_BOUNDS[name]).collect()
    assert found.equals(wanted.filter(BY_BOUNDS[name]))
    with pytest.raises(pl.exceptions.ComputeError):
        frame.collect()


def test_the_order_of_an_enum_is_its_own(tmp_path):
    """A text compared with a literal of an Enum is compared by the Enum's categories, not by its letters."""
    table = it.Table.create(tmp_path / "t", pa.schema([("s", pa.string())]))
    for value in ("a", "b", "c"):
        table.append(pa.table({"s": [value]}))
    middle = pl.lit("b", dtype=pl.Enum(["c", "b", "a"]))
    visits = it.scan_polars(tmp_path / "t")
    assert visits.filter(pl.col("s") < middle).collect()["s"].to_list() == ["c"]
    assert visits.filter(pl.col("s") == middle).collect()["s"].to_list() == ["b"]
    assert visits.filter(pl.col("s").is_between(middle, middle)).collect()["s"].to_list() == ["b"]
