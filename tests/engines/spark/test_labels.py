"""What EXPLAIN and the Spark UI show as the location of a scan: the table, its version, the splits it reads."""

from __future__ import annotations

import re
import threading
from functools import reduce

import pytest
from support.spark_tables import days, write_table

from indextables.engines.spark.scan.file_index import TableFileIndex


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A thousand rows in ten splits, by id."""
    path = tmp_path_factory.mktemp("labels") / "t"
    write_table(path, days(), splits=10)
    return str(path)


def load(spark, path):
    return spark.read.format("indextables").load(path)


def labels(text: str) -> list[str]:
    return re.findall(r"IndexTables\[[^\]]*\] (v\d+, [^,\]]*splits)", text)


def explained(frame, capsys, mode="simple") -> list[str]:
    frame.explain(mode)
    return labels(capsys.readouterr().out)


def in_the_ui(spark, action) -> tuple[list[str], list[str]]:
    """The labels in the text of the query that the action runs, and those at the nodes of its graph."""
    action()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last()
    nodes = store.planGraph(last.executionId()).allNodes()
    graph = [label for i in range(nodes.length()) for label in labels(nodes.apply(i).desc())]
    return labels(last.physicalPlanDescription()), graph


@pytest.fixture
def listings(monkeypatch):
    """How often Spark asked for files."""
    calls = []
    original = TableFileIndex.listFiles

    def counted(self, *args):
        calls.append(self)
        return original(self, *args)

    monkeypatch.setattr(TableFileIndex, "listFiles", counted)
    return calls


@pytest.mark.parametrize("mode", ["simple", "extended", "formatted", "cost"])
def test_explain_shows_how_many_splits_are_read(spark, table, capsys, mode):
    """Before anything ran, in every mode."""
    assert explained(load(spark, table).where("id < 250"), capsys, mode) == ["v10, 3 of 10 splits"]


def test_sql_explain_shows_it_too(spark, table):
    """EXPLAIN of a statement that names the table by its path."""
    rows = spark.sql(f"EXPLAIN SELECT name FROM indextables.`{table}` WHERE id > 850").collect()
    assert labels(rows[0][0]) == ["v10, 2 of 10 splits"]
    rows = spark.sql(f"EXPLAIN SELECT missing FROM indextables.`{table}`").collect()
    assert "UNRESOLVED_COLUMN" in "".join(row[0] for row in rows)


def files_read(spark) -> str:
    """Spark's own metric of the scan of the last query."""
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last()
    names = {
        last.metrics().apply(i).accumulatorId(): last.metrics().apply(i).name()
        for i in range(last.metrics().length())
    }
    values = store.executionMetrics(last.executionId())
    found = [number for number, name in names.items() if name == "number of files read"]
    return values.apply(found[0])


def test_the_ui_shows_the_table_and_the_number_of_files_read(spark, table, listings):
    """The number is Spark's own metric: a query that runs is asked nothing for its label."""
    frame = load(spark, table).where("id < 250").groupBy("day").count()
    text, graph = in_the_ui(spark, frame.collect)
    assert set(text) == set(graph) == {"v10, 10 splits"}
    assert files_read(spark) == "3"
    assert len(listings) == 1


def test_a_label_costs_a_query_no_calls_into_the_jvm(spark, table, monkeypatch):
    """All that EXPLAIN looks through is left alone."""
    from indextables.engines.spark.scan import explain_labels as module

    monkeypatch.setattr(module, "_handles", lambda tools: 1 / 0)
    assert load(spark, table).where("id < 250").count() == 250


def test_two_scans_of_one_dataframe_are_told_apart(spark, table, capsys, listings):
    """Where Spark does not say which scan it describes, the label speaks for both; it never lies."""
    frame = load(spark, table)
    both = frame.where("id < 250").join(frame.where("id >= 800").select("day"), "day")
    exact = ["v10, 3 of 10 splits", "v10, 2 of 10 splits"]
    for _ in range(2):
        assert explained(both, capsys) == exact
        assert explained(both, capsys, "formatted") == ["v10, 2 to 3 of 10 splits"] * 2
    listings.clear()
    both.collect()
    assert not listings  # what `explain` listed is what was read


def test_queries_in_turn_and_at_once_have_their_own_numbers(spark, table, capsys):
    """A label belongs to its query, not to the one that was planned last."""
    frame = load(spark, table)
    few, many = frame.where("id < 10"), frame.where("id < 750")
    assert explained(few, capsys) == ["v10, 1 of 10 splits"]
    assert explained(many, capsys) == ["v10, 8 of 10 splits"]
    many.collect()
    assert explained(few, capsys) == ["v10, 1 of 10 splits"]
    assert explained(few, capsys, "formatted") == ["v10, 1 of 10 splits"]

    def of(count: int) -> str:
        plan = frame.where(f"id < {count * 100}")._jdf.queryExecution()
        from indextables.engines.spark.scan.explain_labels import describing

        with describing(plan):
            return plan.simpleString()

    found: dict[int, list[str]] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.__setitem__(n, labels(of(n)))) for n in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: [f"v10, {n} of 10 splits"] for n in range(1, 9)}


def test_subqueries_and_cached_tables(spark, table, capsys):
    """Scans below a scalar subquery are found; a cached plan keeps a label that is true."""
    load(spark, table).createOrReplaceTempView("labels_of_subqueries")
    query = """SELECT name, (SELECT max(score) FROM labels_of_subqueries WHERE id < 150) AS top
               FROM labels_of_subqueries WHERE id > 650"""
    found = explained(spark.sql(query), capsys)
    assert sorted(set(found)) == ["v10, 2 of 10 splits", "v10, 4 of 10 splits"]
    cached = load(spark, table).where("id < 42").cache()
    assert set(explained(cached, capsys)) <= {"v10, 1 of 10 splits", "v10, 10 splits"}
    cached.unpersist()
    spark.catalog.dropTempView("labels_of_subqueries")


def test_a_query_of_many_scans_is_looked_through_once(spark, table, capsys, monkeypatch):
    """Calls into the JVM grow with the number of scans, not with its square."""
    from indextables.engines.spark.scan import explain_labels as module

    calls = {"walks": 0, "numbers": 0}
    walk, number = module._scans, module._number

    def counted_walk(plan):
        calls["walks"] += 1
        return walk(plan)

    def counted_number(scan):
        calls["numbers"] += 1
        return number(scan)

    monkeypatch.setattr(module, "_scans", counted_walk)
    monkeypatch.setattr(module, "_number", counted_number)
    frame = load(spark, table)
    parts = [frame.where(f"id < {i * 100}") for i in range(1, 9)]
    found = explained(reduce(lambda a, b: a.union(b), parts), capsys)
    assert found == [f"v10, {i} of 10 splits" for i in range(1, 9)]
    assert calls == {"walks": 1, "numbers": 1}


def test_a_label_never_fails_a_query(spark, table, capsys, monkeypatch):
    """What cannot be counted is left out; the query says what is wrong when it runs."""
    from indextables.engines.spark.scan import explain_labels as module

    monkeypatch.setattr(module, "_scans", lambda plan: 1 / 0)
    frame = load(spark, table).where("id < 250")
    assert explained(frame, capsys) == ["v10, 10 splits"]
    assert frame.count() == 250
