"""`explain` and `report`: why a query reads what it reads, and what could be better about a table."""

import html.parser
import json
import re

import pyarrow as pa
import pytest

import indextables as it
from indextables.cli.report.explain import explain
from indextables.cli.report.table_report import table_report
from support.commands import run, run_json


def steps(articles, where):
    return [(s["depth"], s["joint"] or s["condition"], s["kept"]) for s in explained(articles, where)]


def explained(articles, where):
    return run_json("explain", articles, where)["condition"]


def test_each_part_says_what_it_would_read_alone(articles):
    """The whole first, then its parts, one deeper each."""
    assert steps(articles, "id > 250 AND (text = 'a' OR day = DATE'2024-01-02')") == [
        (0, "AND", 2),
        (1, "id > 250", 2),
        (1, "OR", 4),
        (2, "text = 'a'", 4),
        (2, "day = DATE '2024-01-02'", 2),
    ]


def test_a_negation_is_taken_apart_too(articles):
    """NOT (a AND b) is NOT a OR NOT b, in SQL's logic as well."""
    assert steps(articles, "NOT (id < 300 OR NOT (id >= 0))") == [
        (0, "AND", 1),
        (1, "NOT (id < 300)", 1),
        (1, "id >= 0", 4),
    ]


def test_what_stands_in_the_way_is_named(articles):
    """Missing statistics by column; conditions that statistics cannot answer, with the reason."""
    text, rand, cast = explained(articles, "text > 'a' AND rand() < 0.5 AND text = 3")[1:]
    assert text["why"] == "4 without statistics of text"
    assert "engine" in rand["why"]
    assert cast["why"]


def test_every_split_says_why_it_is_read_or_skipped(articles):
    """By the range of values that decided it."""
    found = run_json("explain", articles, "id >= 300 AND day = DATE'2024-01-02'", "--splits")["splits"]
    assert [one["kept"] for one in found] == [False, False, False, True]
    assert [one["why"] for one in found] == [
        "id is 0 to 99, day is 2024-01-01",
        "id is 100 to 199",
        "id is 200 to 299, day is 2024-01-01",
        "id is 300 to 399, day is 2024-01-02",
    ]


def test_the_kinds_of_knowledge_read_differently():
    """NULL only, NaN, nothing known, and no rows are four different things."""
    schema = pa.schema([("a", pa.float64()), ("b", pa.bool_())])
    table = it.Table.create("memory://kinds", schema)
    for rows in ([None], [1.5, float("nan")], [float("nan")], [2.5, None]):
        table.append(pa.table({"a": rows, "b": [True] * len(rows)}, schema))
    table.append(
        pa.table({"a": [9.0], "b": [None]}, schema),
        options={"spark.indextables.dataSkippingStatsColumns": "b"},
    )
    found = explain(table, "a > 1 OR b")
    assert [one.why for one in found.verdicts()] == [
        "a is NULL, b is true",
        "a is 1.5 or NaN, b is true",
        "a is NaN, b is true",
        "a is 2.5 or NULL, b is true",
        "a: no statistics, b is NULL",
    ]


@pytest.mark.parametrize("where", ["true", "id IS NULL", "id IN (1, 2, 3)", "NOT text LIKE 'a%'"])
def test_the_whole_keeps_what_the_plan_keeps(articles, where):
    """The first line is the plan itself."""
    assert explained(articles, where)[0]["kept"] == run_json("plan", articles, where)["kept_files"]


def test_the_text_form_shows_some_splits_and_says_so(articles):
    """Twenty at most unless --splits asks for all."""
    code, out, advice = run("explain", articles, "id > 250")
    assert code == 0
    assert "id is 300 to 399" in out
    assert advice.startswith("2 of 4 splits kept")


def test_a_deep_condition_is_explained_without_a_deep_stack(articles):
    """As deep as the parser takes them."""
    where = "id = 1"
    for number in range(150):
        where = f"({where} OR id = {number}) AND id > 0"
    assert run("explain", articles, where)[0] == 0


def test_the_report_counts_what_is_there(articles):
    """Files, rows, log and the bytes that truncation saved, as the log has them."""
    found = run_json("report", articles)
    assert (found["rows"], found["files"], found["partitions"]) == (400, 4, 2)
    assert found["sizes"]["under 1 MB"] == 4
    logs = list((articles / "_transaction_log").iterdir())
    assert found["log"]["total_bytes"] == sum(file.stat().st_size for file in logs)
    assert found["log"]["truncation_saved"] == sum(
        entry.metrics.get("truncationBytesSaved", 0) for entry in it.Table(articles).history()
    )
    assert found["log"]["commits_to_replay"] == 5


def test_the_report_tells_how_well_rows_are_laid_out(articles):
    """An equality on id reads one split, on the day two, on the text nobody knows."""
    reads = {c["column"]: c["point_reads"] for c in run_json("report", articles)["columns"]}
    assert reads == {"id": 1, "text": None, "day": 2}


def test_the_report_gives_advice_that_works(articles):
    """The command it names for long texts makes them skip, and then it has nothing more to say of them."""
    advice = run_json("report", articles)["advice"]
    (command,) = [one["command"] for one in advice if "too long" in one["what"]]
    assert run(*command.split()[1:])[0] == 0
    assert not run_json("report", articles)["advice"]
    assert run_json("files", articles, "--where", "text < 'x'") == []


def test_missing_statistics_many_small_splits_and_removed_files_are_noticed(tmp_path):
    """Each with a command."""
    schema = pa.schema([("a", pa.int64())])
    table = it.Table.create(tmp_path / "t", schema)
    for i in range(9):
        options = {"spark.indextables.dataSkippingNumIndexedCols": i % 2}
        table.append(pa.table({"a": [i]}, schema), options=options)
    table.delete("a = 3")
    commands = [one["command"].split()[1] for one in run_json("report", tmp_path / "t")["advice"]]
    assert commands == ["analyze", "optimize", "vacuum"]


def test_log_files_of_a_keyed_table_are_not_taken_for_rows(tmp_path):
    """What has to be merged is not counted, a log of deleted keys lacks no statistics, and the advice is compact."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, record_key=["id"])
    table.upsert(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, schema))
    table.upsert(pa.table({"id": [2], "name": ["B"]}, schema))
    table.delete("id = 3")
    found = run_json("report", tmp_path / "t")
    assert (found["rows"], found["files"], found["log_files"]) == (None, 3, 2)
    assert {c["column"]: c["missing"] for c in found["columns"]} == {"id": 0, "name": 0}
    assert [one["command"].split()[1] for one in found["advice"]] == ["compact"]
    assert run("report", tmp_path / "t", "--html", "-")[0] == 0
    run_json("compact", tmp_path / "t")
    found = run_json("report", tmp_path / "t")
    assert (found["rows"], found["files"], found["log_files"]) == (2, 1, 0)


class Page(html.parser.HTMLParser):
    """Checks that every tag is closed, and keeps the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_whole_and_needs_nothing_else(articles, tmp_path):
    """No address of anything to load; every tag closed."""
    assert run("report", articles, "--html", tmp_path / "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "saved by truncation" in page.text
    assert not re.search(r"<script src|https?://|@import|url\(|fetch\(|import\(", text)
    assert run("report", articles, "--html", "-")[1] == text


def test_names_and_values_of_a_table_cannot_become_markup(tmp_path):
    """A column called <script> is shown, not run."""
    schema = pa.schema([("<script>alert(1)</script>", pa.string())])
    it.Table.create(tmp_path / "t", schema).append(pa.table({schema.names[0]: ["<b>&amp;"]}, schema))
    code, out, _ = run("report", tmp_path / "t", "--html", "-")
    assert code == 0
    assert "<script>alert" not in out
    assert "<b>&amp;</b>" not in out
    assert "<script>alert(1)</script>" in Page(out).text


def test_a_page_that_cannot_be_written_is_one_clear_line(articles, tmp_path):
    """The directory does not exist."""
    code, out, err = run("report", articles, "--html", tmp_path / "no" / "page.html")
    assert (code, out) == (1, "")
    assert "cannot be written" in err


def test_an_empty_table_has_a_report(tmp_path):
    """No splits, no rows, no division by zero."""
    it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    found = table_report(tmp_path / "t")
    assert (found.rows, found.snapshot.num_files) == (0, 0)
    assert (
        json.loads(run("report", tmp_path / "t", "--format", "json")[1])["columns"][0]["missing"] == 0
    )
    assert run("report", tmp_path / "t", "--html", "-")[0] == 0
    assert run("explain", tmp_path / "t", "a > 1", "--splits")[0] == 0
