"""The command as people and scripts use it: stdout, stderr and exit codes."""

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.app import main

DAYS = (dt.date(2024, 1, 1), dt.date(2024, 1, 2))


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """A partitioned table of four commits after its creation, 100 rows each, with long texts."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
    table = it.Table.create(tmp_path / "articles", schema, partition_by=["day"])
    for i in range(4):
        ids = range(i * 100, i * 100 + 100)
        rows = {"id": ids, "text": [f"{'x' * 2000}{j}" for j in ids], "day": [DAYS[i % 2]] * 100}
        table.append(pa.table(rows, schema=schema))
    return tmp_path / "articles"


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*words: object) -> object:
    code, out, _ = run(*words, "--format", "json")
    assert code == 0
    return json.loads(out)


def test_describe_tells_size_schema_and_reach_of_statistics(articles):
    """The facts of describe are the table's own."""
    facts = run_json("describe", articles)
    assert (facts["version"], facts["files"]) == (4, 4)
    assert [c["column"] for c in facts["schema"]] == ["id", "text", "day"]
    reach = {c["column"]: c["without"] for c in facts["statistics"]}
    assert reach["id"] == 0
    assert reach["text"] == 4, "long texts lose their bounds by default"


def test_describe_of_an_old_version_shows_that_version(articles):
    """--version travels in time."""
    assert run_json("describe", articles, "--version", "2")["files"] == 2


def test_history_is_newest_first_and_shows_what_truncation_saved(articles):
    """Metrics of a commit are part of history."""
    entries = run_json("history", articles)
    assert [e["version"] for e in entries] == [4, 3, 2, 1, 0]
    assert entries[0]["metrics"]["numTruncatedColumns"] == 1
    assert entries[0]["metrics"]["truncationBytesSaved"] > 4000
    assert len(run_json("history", articles, "--limit", "2")) == 2


def test_files_with_a_condition_lists_only_what_a_query_reads(articles):
    """--where prunes; the counts go to stderr."""
    assert len(run_json("files", articles)) == 4
    assert len(run_json("files", articles, "--where", "id > 250")) == 2
    _, _, advice = run("files", articles, "--where", "id > 250")
    assert advice.startswith("2 of 4 files")


def test_plan_names_the_column_that_kept_it_from_skipping(articles):
    """A column without statistics shows up in the plan."""
    facts = run_json("plan", articles, "text = 'a' AND day = DATE '2024-01-01'")
    assert facts["missing_stats"] == {"text": 2}
    assert (facts["partition_pruned"], facts["kept_files"]) == (2, 2)


def test_check_of_a_whole_table_exits_with_0(articles):
    """No problem, no failure."""
    code, _, advice = run("check", articles, "--deep")
    assert code == 0
    assert "no problem found" in advice


def test_check_names_file_and_line_of_every_damage_and_exits_with_1(articles):
    """Also when the log is too damaged to open."""
    log = articles / "_transaction_log"
    (log / "000000000000000003.json").write_text("garbage\n")
    next(articles.glob("data/1-*/**/*.parquet")).unlink()
    code, out, advice = run("check", articles, "--format", "json")
    assert code == 1
    found = {(p["kind"], p["line"]) for p in json.loads(out) if p["level"] == "problem"}
    assert ("garbled-line", 1) in found
    assert "problem" in advice


def test_checkpoint_writes_one(articles):
    """The checkpoint's file is there afterwards."""
    assert run_json("checkpoint", articles)["checkpoint"] == 4
    assert list((articles / "_transaction_log").glob("*4.checkpoint.json"))


def test_vacuum_deletes_nothing_without_apply(articles):
    """The dry run lists; --apply deletes; live files stay."""
    table = it.Table(articles)
    table.delete("id < 100")
    before = set(articles.rglob("*.parquet"))
    listed = run_json("vacuum", articles, "--retention", "0 seconds")
    assert set(articles.rglob("*.parquet")) == before
    deleted = run_json("vacuum", articles, "--retention", "0 seconds", "--apply")
    assert [f["path"] for f in deleted] == [f["path"] for f in listed]
    assert len(listed) == 1
    assert len(set(articles.rglob("*.parquet"))) == len(before) - 1
    assert table.scan().to_arrow().num_rows == 300


@pytest.mark.parametrize(
    ("words", "what", "help_"),
    [
        (("describe", "nowhere"), "there is no table", "Table.create"),
        (("files", "TABLE", "--where", "idd > 3"), "no column 'idd'", "did you mean 'id'?"),
        (("files", "TABLE", "--where", "id >"), "line 1, column 5", "Spark SQL"),
        (("vacuum", "TABLE", "--retention", "soon"), "cannot be 'soon'", "7 days"),
        (("describe", "TABLE", "--version", "99"), "99", "Help"),
    ],
)
def test_wrong_input_is_one_message_with_help_and_exit_code_1(articles, words, what, help_):
    """No traceback, nothing on stdout."""
    code, out, err = run(*(articles if word == "TABLE" else word for word in words))
    assert (code, out) == (1, "")
    assert what in err
    assert help_ in err


def test_wrong_usage_exits_with_2(articles):
    """As every command line tool does."""
    assert run("describe")[0] == 2
    assert run("describe", articles, "--format", "xml")[0] == 2
    assert run("no-such-command")[0] == 2


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_help_has_an_example(name):
    """Help without an example makes people search."""
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "Example:" in out
    assert f"indextables {name}" in out


def test_the_documented_help_is_the_real_one():
    """docs/cli.md is what the command prints; run `python -m indextables.cli.docs` after a change."""
    from indextables.cli.docs import help_page

    page = Path(__file__).parents[2] / "docs" / "cli.md"
    assert page.read_text() == help_page()
