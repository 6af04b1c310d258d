"""What a notebook shows, and the short ways to rows."""

import html.parser

import pyarrow as pa
import pytest

import indextables as it


class Page(html.parser.HTMLParser):
    """The text of a fragment, whose tags must all be closed and do nothing."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(thing):
    return " | ".join(Page(thing._repr_html_()).text)


@pytest.fixture
def table(tmp_path):
    """Four splits of ten rows; a column with a name that would be markup."""
    found = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("<b>x</b>", pa.string())]))
    for start in range(0, 40, 10):
        found.append(pa.table({"id": range(start, start + 10), "<b>x</b>": ["\x1b[31m"] * 10}))
    return found


def test_a_notebook_shows_where_and_what(table, tmp_path):
    """Tables, versions, plans, history and repairs, each with its own facts, names as text."""
    assert "<b>x</b>" in shown(table)
    assert f"{table.uri} | version | 4" in shown(table.snapshot())
    assert "1 of 4 splits kept" in shown(table.plan("id = 15"))
    assert "Plan: id = 15" in shown(table.plan("id = 15"))
    assert "skipped by statistics | 3" in shown(table.plan("id = 15").report)
    assert "4 | 20" in shown(table.history())
    assert "1 added file, 10 written rows" in shown(table.history())
    assert "no problem found" in shown(table.check())
    assert "4 of 4 splits kept" in shown(it.plan_repair(tmp_path / "t" / "_transaction_log"))
    assert "what it did | 1 removed file" in shown(table.delete("id < 10"))
    assert "nothing to do" in shown(table.delete("id < 10"))
    repaired = it.repair(tmp_path / "t" / "_transaction_log", tmp_path / "new")
    assert "splits kept | 3 of 3" in shown(repaired)


def test_a_long_history_is_cut_with_a_word(table):
    """A page of a thousand commits helps nobody."""
    for _ in range(60):
        table.append(pa.table({"id": [1], "<b>x</b>": ["a"]}))
    assert "and 15 rows more" in shown(table.history())


def test_a_schema_and_a_snapshot_read_well_in_a_terminal(table):
    """A line for each column, in the words of SQL; what and where."""
    assert str(table.schema) == "id bigint\n<b>x</b> string"
    assert repr(table.snapshot()) == f"Snapshot({table.uri!r}, version=4, files=4)"


def test_the_first_rows_open_the_first_file_only(table):
    """Nothing is read ahead."""
    with it.query_stats() as stats:
        assert table.head(3)["id"].to_pylist() == [0, 1, 2]
    assert stats.data_files_opened == 1
    assert table.head(12)["id"].to_pylist() == list(range(12))
    assert table.head(0).num_rows == 0
    assert table.head(99).num_rows == 40


def test_a_count_opens_only_files_that_match_in_part(table):
    """What matches whole is counted by the log."""
    with it.query_stats() as stats:
        assert table.count("id >= 5") == 35
    assert stats.data_files_opened == 1
    with it.query_stats() as stats:
        assert table.count() == 40
        assert table.count("id >= 20") == 20
        assert table.count("id > 400") == 0
    assert stats.data_files_opened == 0


def test_all_rows_in_the_form_the_user_wants(table):
    """Arrow, pandas, Polars."""
    assert table.to_arrow().num_rows == len(table.to_pandas()) == table.to_polars().height == 40
