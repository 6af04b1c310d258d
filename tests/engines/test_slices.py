"""Slices in engines: what they do without a filter, and who opens which file."""

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import indextables as it

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.int32()),
        pa.field("day", pa.string()),
    ]
)


def rows(ids, v, day):
    return pa.table({"id": ids, "v": [v] * len(ids), "day": [day] * len(ids)}, SCHEMA)


@pytest.fixture(params=["record", "columns"])
def table(request, tmp_path):
    """Two slices of ten rows; of the first, two rows are replaced and one is deleted: nineteen are left."""
    made = it.Table.create(
        tmp_path / "t", SCHEMA, partition_by=["day"], record_key=["id"], merge_mode=request.param
    )
    made.append(rows(range(10), 0, "a"))
    made.append(rows(range(10, 20), 0, "b"))
    made.upsert(rows([3, 4], 7, "a"))
    made.delete("id = 5")
    return made


def test_polars_counts_cuts_and_joins_merged_rows(table):
    """Without a filter, with a limit, of a column beside the key, and twice in one query."""
    frame = it.scan_polars(table.uri)
    assert frame.select(pl.len()).collect().item() == 19
    assert frame.head(12).collect().height == 12
    assert sorted(frame.select("v").collect()["v"].to_list()) == [0] * 17 + [7, 7]
    assert frame.join(frame, on="id").filter(pl.col("v") == 7).collect().height == 2


def test_duckdb_counts_cuts_and_joins_merged_rows(table):
    """On both roads; the number of rows that the log knows is not the number there is."""
    con = duckdb.connect()
    it.duckdb.register(con, "t", table.uri)
    for run in (con.sql, lambda query: it.duckdb.sql(con, query)):
        assert run("SELECT count(*) FROM t").fetchall() == [(19,)]
        assert run("SELECT count(*) FROM (FROM t LIMIT 12)").fetchall() == [(12,)]
        assert run("SELECT sum(v), min(v), max(v) FROM t").fetchall() == [(14, 0, 7)]
        joined = "SELECT count(*) FROM t x JOIN t y USING (id) WHERE x.v = 7 AND y.day = 'a'"
        assert run(joined).fetchall() == [(2,)]
        assert run("SELECT count(*) FROM t WHERE id BETWEEN 4 AND 6").fetchall() == [(2,)]


def test_datafusion_counts_merged_rows(table):
    """Fragments of a dataset are slices there."""
    import datafusion

    context = datafusion.SessionContext()
    context.register_dataset("t", table.to_dataset())
    found = context.sql("SELECT count(*) AS n, sum(v) AS s, max(id) AS m FROM t").to_pydict()
    assert found == {"n": [19], "s": [14], "m": [19]}


def test_datasets_count_scan_and_give_a_fragment_for_each_slice(table):
    """A merged slice is one fragment, and its own scanner shows its rows."""
    dataset = table.to_dataset()
    assert dataset.count_rows() == 19
    assert dataset.count_rows(filter=pc.field("v") == 7) == 2
    assert dataset.head(5).num_rows == 5
    assert sorted(fragment.count_rows() for fragment in dataset.get_fragments()) == [9, 10]
    assert dataset.filter(pc.field("id") == 3).to_table()["v"].to_pylist() == [7]


def test_a_fragment_shows_no_replaced_row_whatever_it_is_asked_for(table):
    """Planned for a key no log has, it holds rows of that filter only: the others may be hidden by logs."""
    for fragment in table.to_dataset().get_fragments(filter=pc.field("id") == 8):
        assert fragment.to_table()["id"].to_pylist() == [8]
        assert fragment.to_table(filter=pc.field("v") == 0)["id"].to_pylist() == [8]
        assert fragment.count_rows(filter=pc.field("id") == 8) == 1


def test_slices_without_logs_stay_native_and_the_others_are_merged_by_us(table):
    """Polars gets the file of the second slice; of the first we open every file, once."""
    with it.query_stats() as stats:
        assert it.scan_polars(table.uri).collect().height == 19
    assert (stats.files_handed_over, stats.data_files_opened) == (1, 3)
    with it.query_stats() as stats:
        assert it.scan_polars(table.uri, read_optimized=True).collect().height == 20
    assert (stats.files_handed_over, stats.data_files_opened) == (2, 0)


def test_a_query_builder_sees_merged_rows(table):
    """It filters by itself, so rows come to it unfiltered."""
    q = it.QueryBuilder()
    q = q[q["v"] == 7]
    assert sorted(table.read(q).to_arrow()["id"].to_pylist()) == [3, 4]
    assert table.read(q, read_optimized=True).to_arrow().num_rows == 0


def test_older_versions_show_their_own_slices(table):
    """Before the upsert, after it, after the delete; then compacted, which changes no row."""
    frames = [it.scan_polars(table.uri, version=v).collect() for v in (2, 3, 4)]
    assert [(f.height, f["v"].sum()) for f in frames] == [(20, 0), (20, 14), (19, 14)]
    table.compact()
    assert it.scan_polars(table.uri, read_optimized=True).collect().height == 19
    assert it.scan_polars(table.uri, version=3).collect().height == 20
