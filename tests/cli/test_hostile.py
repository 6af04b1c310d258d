"""The command under hostile conditions: bad paths and input, odd terminals, streams that fail."""

import errno
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.cli.output import show_rows
from indextables.storage.local import LocalStore
from support.commands import run, run_json

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
TEXT = "ä…😀\x1b[31mred\x00\nend"


@pytest.fixture
def texts(tmp_path):
    """A table whose values would move a terminal's cursor."""
    table = it.Table.create(tmp_path / "t", SCHEMA)
    table.append(pa.table({"id": [1], "text": [TEXT]}, SCHEMA))
    return tmp_path / "t"


def process(*words, **options):
    """The command as a process of its own."""
    environment = {**os.environ, **options.pop("env", {})}
    command = [sys.executable, "-m", "indextables", *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, **options)


# -- places ------------------------------------------------------------------------------------


def a_file(path):
    path.write_bytes(os.urandom(64))


def garbage(path):
    log = path / "_transaction_log"
    log.mkdir(parents=True)
    (log / "000000000000000000.json").write_bytes(bytes(range(256)) * 3)


def empty_log(path):
    (path / "_transaction_log").mkdir(parents=True)


def parquet(path):
    path.mkdir()
    pq.write_table(pa.table({"a": [1]}), path / "x.parquet")


def delta(path):
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / "00000000000000000000.json").write_text("{}")


def a_log(path):
    path.mkdir()
    (path / "000000000000000000.json").write_text("{}")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda path: None, "there is no table"),
        (Path.mkdir, "there is no table"),
        (empty_log, "there is no table"),
        (a_file, "is a file"),
        (garbage, "000000000000000000.json, line 1"),
        (parquet, "plain Parquet files"),
        (delta, "Delta Lake"),
        (a_log, "name the directory above it"),
    ],
    ids=["nothing", "empty", "empty log", "file", "garbage", "parquet", "delta", "log"],
)
def test_a_place_that_is_no_table_is_said_in_two_lines(tmp_path, make, what):
    """Whatever lies there, and whatever looks at it."""
    path = tmp_path / "place"
    make(path)
    for command in (("describe",), ("history",), ("report",), ("explain", "a = 1")):
        code, out, err = run(command[0], path, *command[1:])
        if command != ("history",) or what in err:  # the history of a garbled log can be listed
            assert (code, out) == (1, ""), command
            assert what in err
        assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    "path", ["", "  ", "s3://", "s4://x/y", "http://x/y", "file://host/x", "a" * 5000]
)
def test_a_path_that_names_nothing_is_an_error(path):
    """Above all the empty one: an unset variable is not the current directory."""
    for command in (("describe",), ("vacuum", "--apply"), ("checkpoint",), ("optimize",)):
        code, out, err = run(command[0], path, *command[1:])
        assert (code, out) == (1, ""), command
        assert err.startswith("error: ")
        assert len(err.splitlines()) <= 2


def test_a_wrong_path_to_a_whole_disk_is_not_walked_to_its_end():
    """The first files tell enough."""
    from indextables.ops.shared.detect import foreign_format
    from indextables.storage.base import ObjectMeta

    class Disk:
        uri, listed = "/", 0

        def list(self, prefix, *, start_after=None):
            while not prefix:
                self.listed += 1
                yield ObjectMeta(f"{self.listed:09}", 1, 1)

    disk = Disk()
    assert foreign_format(disk).what == "a directory with other files"
    assert disk.listed <= 10_000


def test_names_that_are_not_utf8_are_shown_escaped(tmp_path):
    """In messages and in JSON."""
    code, _, err = run("describe", tmp_path / "a\udcffb")
    assert code == 1
    assert "a\\udcffb" in err


def test_a_missing_bucket_is_one_clear_line(s3_server, monkeypatch):
    """Not the XML of the server."""
    settings = {
        "AWS_ENDPOINT": s3_server.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for command in ("describe", "check", "checkpoint"):
        code, out, err = run(command, "s3://no-such-bucket/t")
        assert (code, out) == (1, "")
        first, second = err.splitlines()
        assert first.endswith("The specified bucket does not exist (NoSuchBucket)")
        assert "create the bucket" in second


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.EACCES, "permission"), (errno.ENOSPC, "free some space"), (errno.EIO, "")],
)
def test_errors_of_the_system_name_the_file_and_what_to_do(texts, monkeypatch, number, hint):
    """Also where the directory cannot be read at all."""

    def refuse(self, key, **_):
        raise OSError(number, os.strerror(number), str(texts / key))

    monkeypatch.setattr(LocalStore, "_descriptor", refuse)
    code, out, err = run("describe", texts)
    assert (code, out) == (1, "")
    assert f"{texts}/_transaction_log" in err
    assert os.strerror(number) in err
    assert hint in err


def damaged(data, random_):
    """A file of the log after one accident."""
    match random_.randrange(5):
        case 0:
            return data[: random_.randrange(len(data))]
        case 1:
            at = random_.randrange(len(data))
            return data[:at] + bytes([data[at] ^ 1 << random_.randrange(8)]) + data[at + 1 :]
        case 2:
            at = random_.randrange(len(data))
            return (
                data[:at]
                + random_.randbytes(random_.randrange(1, 40))
                + data[at + random_.randrange(40) :]
            )
        case 3:
            lines = data.split(b"\n")
            random_.shuffle(lines)
            return b"\n".join(lines)
        case _:
            odd = [b"null", b"-1", b'"x"', b"[]", b"{}", b"1e400", b"9" * 30, b"true"]
            value = re.compile(rb'("\w+":)("[^"]*"|\d+|null|true|false)')
            return value.sub(
                lambda m: m[1] + (random_.choice(odd) if random_.random() < 0.1 else m[2]), data
            )


@pytest.mark.parametrize(
    "rounds", [10, pytest.param(300, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_fuzz_every_command_answers_a_damaged_log_in_words(tmp_path, rounds):
    """An answer or an error of ours with exit code 1; never a traceback, and nothing is changed."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("text", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, record_key=["id"])
    for i in range(3):
        table.upsert(pa.table({"id": [i, i + 1], "text": ["a", "b"]}, schema))
    table.checkpoint()
    table.delete("id = 2")
    log = tmp_path / "t" / "_transaction_log"
    whole = {path: path.read_bytes() for path in sorted(log.iterdir())}
    for seed in range(rounds):
        random_ = random.Random(seed)
        for path, data in whole.items():
            path.write_bytes(data)
        victim = random_.choice(list(whole))
        victim.write_bytes(damaged(whole[victim], random_))
        before = {path: path.read_bytes() for path in log.iterdir()}
        for words in (
            *(("describe",), ("history",), ("log", "--all"), ("check",), ("report",), ("vacuum",)),
            *(("explain", "id = 3", "--splits"), ("truncate-time-travel",)),
        ):
            code, _, err = run(words[0], tmp_path / "t", *words[1:])  # raises what is no error of ours
            assert code in {0, 1}, (seed, words)
            assert code == 0 or err, (seed, words)
        assert {path: path.read_bytes() for path in log.iterdir()} == before, seed


# -- input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("history", "TABLE", "--limit", "9" * 30),
        ("history", "TABLE", "--limit", "0"),
        ("sql", "SELECT 1", "--limit", "9" * 30),
        ("analyze", "TABLE", "--set", "maxLength=3"),
        ("analyze", "TABLE", "--set", "spark.indextables.stats.truncation.maxLength"),
    ],
)
def test_values_no_option_can_have_are_wrong_usage(texts, words):
    """Exit code 2, and nothing is done."""
    code, out, _ = run(*(texts if word == "TABLE" else word for word in words))
    assert (code, out) == (2, "")


@pytest.mark.parametrize("version", ["-1", "99", "9" * 40])
def test_versions_there_are_none_of(texts, version):
    """However large."""
    code, out, err = run("describe", texts, "--version", version)
    assert (code, out) == (1, "")
    assert f"there is no version {version}" in err


@pytest.mark.parametrize(
    "where",
    [
        "id > " + "9" * 400,
        "id = -" + "9" * 40,
        "text = '" + "x" * 100_000 + "'",
        "text = '\x01\udcff'",
        "(" * 2000 + "id = 1" + ")" * 2000,
        " OR ".join(f"id = {n}" for n in range(5000)),
        "NOT " * 2000 + "id = 1",
    ],
    ids=["huge", "below", "long", "half a character", "deep", "wide", "not"],
)
def test_conditions_of_any_size_are_answered(texts, where):
    """Or refused in words."""
    code, _, err = run("files", texts, "--where", where)
    assert code in {0, 1}
    assert "Traceback" not in err


def test_an_unknown_setting_is_a_warning_with_a_suggestion(texts):
    """It goes to stderr, once."""
    _, _, err = run("analyze", texts, "--set", "spark.indextables.stats.truncation.maxLenght=3")
    assert err.count("maxLenght") == 1
    assert "did you mean 'spark.indextables.stats.truncation.maxLength'?" in err


def test_a_damaged_data_file_is_named(texts):
    """By DuckDB's road too."""
    (split,) = it.Table(texts).plan().files
    (texts / split.path).write_bytes(b"PAR1 no")
    for words in (("analyze", texts, "--rebuild"), ("sql", f"SELECT text FROM indextables.`{texts}`")):
        code, out, err = run(*words)
        assert (code, out) == (1, "")
        assert split.path in err
        assert "check" in err.splitlines()[1]


# -- terminals and streams ---------------------------------------------------------------------


def test_what_a_terminal_would_obey_is_written_out(texts):
    """A value cannot paint the screen, move the cursor or fake a line of output."""
    code, out, _ = run("sql", f"SELECT text FROM indextables.`{texts}`")
    assert code == 0
    assert out == "text\nä…😀\\x1b[31mred\\x00\\nend\n"
    assert run_json("sql", f"SELECT text FROM indextables.`{texts}`") == [{"text": TEXT}]
    for words in (("explain", texts, "text = 'x'"), ("report", texts), ("log", texts)):
        code, out, err = run(*words)
        assert code == 0
        assert "\x1b" not in out + err


def test_names_cannot_do_it_either(tmp_path):
    """A column's name in a table, in JSON and in an error."""
    schema = pa.schema([("\x1b]0;owned\x07", pa.int64())])
    it.Table.create(tmp_path / "t", schema)
    for words in (("describe", tmp_path / "t"), ("files", tmp_path / "t", "--where", "nope = 1")):
        _, out, err = run(*words)
        assert "\x1b" not in out + err
        assert "\\x1b]0;owned\\x07" in out + err


def test_a_pipe_gets_whole_lines_whatever_their_length(texts):
    """One row, one line, nothing folded or padded: for grep and awk."""
    long = "x" * 5000
    _, out, _ = run("sql", f"SELECT '{long}' AS a, 1 AS b UNION ALL SELECT 'y', 2 ORDER BY b")
    assert out.splitlines() == ["a" + " " * 5001 + "b", f"{long}  1", "y" + " " * 5001 + "2"]


def test_a_narrow_terminal_shows_rows_below_each_other(monkeypatch, capsys):
    """Columns of one letter help nobody."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    names = ("version", "committed", "operation", "files")
    row = dict(zip(names, (1, "2024-01-01T00:00:00", "APPEND", 12), strict=True))
    monkeypatch.setenv("NO_COLOR", "1")
    show_rows([row, row], names, "table")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["version", "1"]
    assert len(lines) > 8
    assert max(map(len, lines)) <= 30


def test_no_color_means_no_escape_codes_at_all(monkeypatch, capsys):
    """Not even bold."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for value, found in (("1", False), (None, True)):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        if value:
            monkeypatch.setenv("NO_COLOR", value)
        show_rows([{"a": 1}], ("a",), "table")
        assert ("\x1b" in capsys.readouterr().out) is found


def test_a_reader_that_goes_away_is_no_error(texts):
    """`| head -1`: exit code 0, nothing on stderr."""
    query = "SELECT repeat('x', 1000) AS x FROM range(2000)"
    with process("sql", query, "--format", "json", stdout=subprocess.PIPE) as command:
        assert command.stdout.readline() == b"[\n"
        command.stdout.close()
        said = command.stderr.read().decode()
    assert command.returncode == 0
    assert "Traceback" not in said
    assert "Broken" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_stdout_is_one_line(texts):
    """Exit code 1: the output is not whole."""
    with Path("/dev/full").open("w") as full, process("describe", texts, stdout=full) as command:
        said = command.stderr.read().decode()
    assert (command.returncode, said) == (1, "error: No space left on device\n")


def test_a_terminal_of_few_characters_gets_the_others_escaped(texts):
    """No UnicodeEncodeError, whatever the encoding."""
    query = f"SELECT text FROM indextables.`{texts}`"
    with process("sql", query, stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "latin-1"}) as command:
        out, _ = command.communicate()
    assert command.returncode == 0
    assert out.decode("latin-1").splitlines()[1].startswith("ä\\u2026\\U0001f600")


def test_messages_of_the_library_are_shown_on_demand(texts):
    """-v what was planned, -vv every reason; afterwards loggers are as before."""
    import logging

    quiet, planned, reasons = (
        run(*words, "plan", texts, "rand() < id")[2] for words in ((), ("-v",), ("-vv",))
    )
    assert quiet == ""
    assert planned.startswith("info: Planned query: 1 of 1 splits kept")
    assert "debug: Statistics cannot answer" in reasons
    assert not logging.getLogger("indextables").handlers


def test_integers_of_any_size_are_printed(texts):
    """JSON has no limit of 64 bits."""
    code, out, _ = run(
        "sql", "SELECT 170141183460469231731687303715884105727::HUGEINT AS h", "--format", "json"
    )
    assert code == 0
    assert str(json.loads(out)[0]["h"]) == "170141183460469231731687303715884105727"
