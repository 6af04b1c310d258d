"""Deletes and overwrites on a table without a key: only a file that holds such a row is written anew."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import StorageError

FILES = 8
SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("body", pa.string()), ("p", pa.string())]
)


@pytest.fixture
def path(tmp_path):
    """A table of 8 files, each with a name between the least and the greatest of all the others'."""
    path = str(tmp_path / "t é")
    table = it.Table.create(path, SCHEMA, partition_by=["p"])
    for file in range(FILES):
        ids = range(file, 10 * FILES, FILES)
        names = ["a", *(f"name {i}" for i in ids), "z"]
        ids = [-1, *ids, -2]
        part = ["x", None][file % 2]
        table.append(pa.table([ids, names, ["text"] * len(ids), [part] * len(ids)], schema=SCHEMA))
    return path


def files_in(path):
    """Every data file in the store, whether a commit names it or not."""
    return {str(file) for file in Path(path, "data").rglob("*.parquet")}


def rows_in(path):
    found = it.Table(path).scan().to_arrow().to_pylist()
    return sorted(((row["id"], row["name"], row["p"]) for row in found), key=str)


def sql_delete(spark, path, where):
    spark.sql(f"DELETE FROM indextables.`{path}` WHERE {where}")


def handle_delete(spark, path, where):
    it.Table(path).on(spark).delete(where)


def replace_where(spark, path, where):
    none = spark.createDataFrame([], "id long, name string, body string, p string")
    none.write.format("indextables").mode("overwrite").option("replaceWhere", where).save(path)


def handle_overwrite(spark, path, where):
    none = spark.createDataFrame([], "id long, name string, body string, p string")
    it.Table(path).on(spark).overwrite(none, where)


EVERY_WAY = pytest.mark.parametrize(
    "remove", [sql_delete, handle_delete, replace_where, handle_overwrite], ids=lambda f: f.__name__
)


@EVERY_WAY
def test_removing_one_row_writes_one_file_however_many_may_hold_it(spark, path, remove):
    """Statistics cannot tell which file has the name, so all are looked into, and one is written."""
    before, rows = files_in(path), rows_in(path)
    assert it.Table(path).plan("name = 'name 13'").report.kept_files == FILES
    remove(spark, path, "name = 'name 13'")
    assert len(files_in(path) - before) == 1
    assert rows_in(path) == [row for row in rows if row[1] != "name 13"]
    assert it.Table(path).check(deep=True).ok
    metrics = it.Table(path).history(1)[0].metrics
    assert (metrics["numDeletedRows"], metrics["numRewrittenFiles"], metrics["numCopiedRows"]) == (
        1,
        1,
        11,
    )


@EVERY_WAY
def test_removing_no_row_writes_no_file_and_commits_nothing(spark, path, remove):
    """The condition may be TRUE in every file, by their statistics, and is TRUE in none."""
    before, version = files_in(path), it.Table(path).version
    remove(spark, path, "name = 'name 13b'")
    assert files_in(path) == before
    assert it.Table(path).version == version


def test_a_delete_that_finds_nothing_runs_one_query_over_the_columns_of_its_condition(spark, path):
    """The other columns of the files are not read, and no second job follows."""
    store = spark._jsparkSession.sharedState().statusStore()
    # by their numbers: the store forgets old ones
    before = store.executionsList().last().executionId()
    it.Table(path).on(spark).delete("name = 'name 13b'")
    assert store.executionsList().last().executionId() == before + 1
    last = store.executionsList().last().physicalPlanDescription()
    assert "ReadSchema: struct<name:string>" in last
    assert "InsertIntoHadoopFsRelationCommand" not in last


def test_a_file_all_of_whose_rows_match_goes_without_being_written(spark, path):
    """Also where the log has no statistics that would tell so beforehand."""
    table = it.Table(path)
    table.append(pa.table([[500, 501], ["n", "n"], ["t", "t"], ["x", "x"]], schema=SCHEMA))
    table.drop_statistics(["name"])
    before, rows = files_in(path), rows_in(path)
    result = table.on(spark).delete("name = 'n'")
    assert files_in(path) == before
    assert result.metrics["numRemovedFiles"] == 1 and result.metrics["numDeletedRows"] == 2
    assert rows_in(path) == [row for row in rows if row[1] != "n"]


def test_rows_for_which_the_condition_is_null_stay_where_others_go(spark, tmp_path):
    """NULL is neither TRUE nor a reason to forget a row."""
    path = str(tmp_path / "t")
    table = it.Table.create(path, SCHEMA)
    table.append(pa.table([[1, 2, 3], ["a", None, "c"], ["t"] * 3, ["x"] * 3], schema=SCHEMA))
    table.on(spark).delete("name < 'b'")
    assert table.scan(columns=["id"]).to_arrow().column("id").to_pylist() == [2, 3]


@pytest.mark.parametrize("setting", [None, "ignoreMissingFiles", "ignoreCorruptFiles"])
@pytest.mark.parametrize("name", ["name 13", "name 12"], ids=["that has the row", "beside it"])
def test_a_damaged_file_stops_the_delete_and_nothing_is_left_behind(
    spark, configured, path, setting, name
):
    """Whether it holds a row that goes or may only hold one: what cannot be read cannot be judged."""
    if setting:
        configured(f"spark.sql.files.{setting}", "true")
    table = it.Table(path)
    damaged = next(
        s for s in table.snapshot().splits() if s.stats.num_records and s.seq == 6
    )  # ids 5, 13, …
    os.truncate(f"{path}/{damaged.path}", 200)
    before, version = files_in(path), table.version
    for remove in (sql_delete, handle_delete):
        with pytest.raises(StorageError):
            remove(spark, path, f"name = '{name}'")
    assert files_in(path) == before and table.version == version


def test_a_read_that_loses_rows_stops_the_delete(spark, path, monkeypatch):
    """What replaces a file must hold every row of it that stays, whatever was read."""
    from indextables.engines.spark.write import rewrite

    native, calls = rewrite.native_frame, []

    def lossy(*arguments, **options):
        calls.append(1)
        frame = native(*arguments, **options)
        return frame if len(calls) == 1 else frame.where("id <> 21")

    monkeypatch.setattr(rewrite, "native_frame", lossy)
    before, version = files_in(path), it.Table(path).version
    with pytest.raises(StorageError, match="10 of 11 rows"):
        it.Table(path).on(spark).delete("name = 'name 13'")
    assert files_in(path) == before and it.Table(path).version == version


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE $t SET body = 'new' WHERE name = 'name 13'",
        "MERGE INTO $t USING (SELECT 13 AS k) ON id = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
    ],
)
def test_a_read_that_loses_rows_stops_an_update_and_a_merge(spark, path, monkeypatch, statement):
    """The same promise where rows are changed: nothing is replaced, and no file stays behind."""
    from indextables.engines.spark.change import copies

    native, calls = copies.native_frame, []

    def lossy(*arguments, **options):
        calls.append(1)
        frame = native(*arguments, **options)
        return frame if len(calls) == 1 else frame.where("id <> 21")

    monkeypatch.setattr(copies, "native_frame", lossy)
    before, version = files_in(path), it.Table(path).version
    with pytest.raises(StorageError, match="rows of the files to be replaced were read"):
        spark.sql(statement.replace("$t", f"indextables.`{path}`"))
    assert len(calls) > 1
    assert files_in(path) == before and it.Table(path).version == version
