"""The command as people and scripts use it: stdout, stderr and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import indextables as it
from indextables.cli import app
from indextables.cli.app import COMMANDS, main
from support.commands import run, run_json


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
    deleted = run_json(
        "vacuum", articles, "--retention", "0 seconds", "--allow-short-retention", "--apply"
    )
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


def test_log_shows_every_line_also_of_a_damaged_log(articles):
    """From the newest checkpoint on, or with --all from the beginning."""
    it.Table(articles).checkpoint()
    assert {row["version"] for row in run_json("log", articles)} == {4}
    (articles / "_transaction_log" / "000000000000000002.json").write_bytes(b"\xff\n")
    rows = run_json("log", articles, "--all")
    assert {row["version"] for row in rows} == {0, 1, 2, 3, 4}
    assert [row["line"] for row in rows if row["action"] == "unreadable"] == [1]


def test_analyze_builds_what_is_missing_once(articles):
    """The second time there is nothing to do, and it says so."""
    setting = "spark.indextables.stats.truncation.strategy=bound"
    done = run_json("analyze", articles, "--column", "text", "--set", setting)
    assert (done["version"], done["numAnalyzedFiles"]) == (5, 4)
    assert run_json("files", articles, "--where", "text < 'x'") == []
    code, _, advice = run("analyze", articles)
    assert code == 0
    assert "nothing was committed" in advice


def test_optimize_packs_small_splits(articles):
    """One split for each of the two days; the rows stay."""
    done = run_json("optimize", articles, "--where", "id >= 0")
    assert (done["numRemovedFiles"], done["numAddedFiles"]) == (4, 2)
    assert it.Table(articles).scan().count() == 400


@pytest.mark.parametrize("curve", ["--zorder-by", "--hilbert-by"])
def test_optimize_lays_rows_along_a_curve(articles, curve):
    """Names are separated by commas, and may be quoted."""
    done = run_json("optimize", articles, curve, "id, `text`", "--target-size", "1kB")
    assert done["numAddedFiles"] > 4
    needed = len(run_json("files", articles, "--where", "id = 7"))
    assert needed < done["numAddedFiles"] / 2
    assert it.Table(articles).scan("id = 7").count() == 1


def test_optimize_takes_one_curve(articles):
    """Two are wrong usage."""
    assert run("optimize", articles, "--zorder-by", "id", "--hilbert-by", "id")[0] == 2


def test_truncating_time_travel_deletes_nothing_without_apply(articles):
    """Afterwards the newest version is all there is."""
    assert len(run_json("truncate-time-travel", articles)) == 4
    assert it.Table(articles).snapshot(1).num_files == 1
    assert len(run_json("truncate-time-travel", articles, "--apply")) == 4
    assert it.Table(articles).scan().count() == 400
    assert run("describe", articles, "--version", 1)[0] == 1


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_help_has_an_example(name):
    """Help without an example makes people search."""
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "Example:" in out
    assert f"indextables {name}" in out


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_no_engine_and_no_arrow(arguments):
    """Help is there at once: it takes a few milliseconds of a processor, not the half second that Arrow takes."""
    code = (
        "import sys, time\n"
        "from indextables.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "heavy = {'pyarrow', 'numpy', 'rich', 'duckdb', 'polars', 'pyspark'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert time.process_time() < 0.2, time.process_time()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_command_is_listed_in_help_and_can_be_loaded():
    """A command that a module defines and the list leaves out could not be run."""
    folder = Path(app.__file__).parent
    defined = sum(file.read_text().count("@click.command(") for file in folder.glob("*.py"))
    assert defined == len(COMMANDS)
    context = click.Context(main)
    assert all(main.get_command(context, name).name == name for name in COMMANDS)
