"""`compact`, `restore` and `rollback` as people and scripts call them."""

import pyarrow as pa
import pytest

import indextables as it
from support.commands import run, run_json

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


def rows(table):
    return sorted(map(tuple, (row.values() for row in it.Table(table).scan().to_arrow().to_pylist())))


@pytest.fixture
def people(tmp_path):
    """A keyed table: three rows, one of them changed, one deleted, one new."""
    table = it.Table.create(tmp_path / "people", SCHEMA, record_key=["id"])
    table.upsert(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, SCHEMA))
    table.upsert(pa.table({"id": [2, 4], "name": ["B", "d"]}, SCHEMA))
    table.delete("id = 3")
    return tmp_path / "people"


def test_compact_folds_log_files_and_keeps_the_rows(people):
    """Nothing is merged afterwards, and a second time there is nothing to do."""
    before = rows(people)
    assert before == [(1, "a"), (2, "B"), (4, "d")]
    done = run_json("compact", people)
    assert done["committed"]
    assert done["numCompactedSlices"] >= 1
    assert rows(people) == before
    code, _, advice = run("compact", people)
    assert code == 0
    assert "nothing was committed" in advice


def test_compact_leaves_slices_below_the_threshold(people):
    """Two log files are not four."""
    assert not run_json("compact", people, "--min-logs", 4)["committed"]


def test_restore_goes_back_in_a_new_version(people):
    """By version or by moment; the other versions stay."""
    newest = it.Table(people).version
    done = run_json("restore", people, "--version", 1)
    assert done["version"] == newest + 1
    assert rows(people) == [(1, "a"), (2, "b"), (3, "c")]
    assert not run_json("restore", people, "--version", 1)["committed"]
    run_json("restore", people, "--version", newest)
    assert rows(people) == [(1, "a"), (2, "B"), (4, "d")]


def test_restore_takes_a_moment_in_words(articles):
    """The moment of the second append."""
    import datetime as dt

    entry = it.Table(articles).history()[2]
    moment = dt.datetime.fromtimestamp(entry.timestamp_ms / 1000, dt.UTC).isoformat()
    run_json("restore", articles, "--timestamp", moment)
    assert it.Table(articles).scan().count() == 100 * entry.version


@pytest.mark.parametrize(
    "words", [(), ("--version", 1, "--timestamp", "2024-01-01"), ("--version", -1)]
)
def test_restore_needs_one_place_to_go_back_to(articles, words):
    """Anything else is wrong usage."""
    assert run("restore", articles, *words)[0] == 2


def test_rollback_undoes_one_version_and_keeps_the_others(articles):
    """The second append is gone, the later ones are not."""
    run_json("rollback", articles, "--version", 2)
    ids = it.Table(articles).scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == [*range(100), *range(200, 400)]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("restore", "TABLE", "--version", "99"), "99"),
        (("restore", "TABLE", "--timestamp", "soon"), "'soon' is not a date or time"),
        (("rollback", "TABLE", "--version", "99"), "there is no version"),
        (("compact", "TABLE", "--min-percent", "5", "--where", "id >"), "line 1, column 5"),
    ],
)
def test_what_cannot_be_done_is_one_message(articles, words, what):
    """And exit code 1."""
    code, out, err = run(*(articles if word == "TABLE" else word for word in words))
    assert (code, out) == (1, "")
    assert what in err


def test_convert_adopts_parquet_where_it_is(tmp_path):
    """Partitions by the names of directories; the files stay as they are."""
    import pyarrow.parquet as pq

    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"a": [day, day + 1]}), tmp_path / f"day={day}" / "x.parquet")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    done = run_json("convert", tmp_path)
    assert (done["files"], done["partitioned by"]) == (2, ["day"])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert len(run_json("files", tmp_path, "--where", "a = 3")) == 1
    code, _, err = run("convert", tmp_path)
    assert code == 1
    assert "already" in err
