"""Commands of ours: which statements they are, which they are not, and how they are corrected."""

from __future__ import annotations

import json
import re

import pytest

from indextables.errors import SqlSyntaxError
from indextables.sql.commands import COMMANDS, find, may_be_ours
from indextables.sql.statements.grammar import Command, find_command

_OPTIMIZE = Command(
    "OPTIMIZE <table> [WHERE <where:condition>] [ZORDER BY <columns>] [LIMIT <limit:count>]",
    lambda *_: None,
)
_MOVE = Command("MOVE LOG <source:text> [AT|INTO LOCATION <target:text>]", lambda *_: None)

READ = [
    ("OPTIMIZE indextables.`/a b`", {"table": "/a b"}),
    ("optimize INDEXTABLES.t", {"table": "t"}),
    ("OPTIMIZE `indextables`.t -- all of it", {"table": "t"}),
    ("OPTIMIZE /* all */ indextables.`a``b` ;", {"table": "a`b"}),
    ("OPTIMIZE indextables.t; -- done", {"table": "t"}),
    ("OPTIMIZE indextables.t ;; -- as Spark reads it\n;", {"table": "t"}),
    ("OPTIMIZE indextables.t WHERE day > 'x' AND (a IN (SELECT 1 LIMIT 2))",
     {"table": "t", "where": "day > 'x' AND (a IN (SELECT 1 LIMIT 2))"}),
    ("OPTIMIZE indextables.t WHERE a = 1 ZORDER BY (a, st.b, `c,d`) LIMIT 5",
     {"table": "t", "where": "a = 1", "columns": json.dumps(["a", "st.b", "`c,d`"]), "limit": "5"}),
    ("MOVE LOG '/a'", {"source": "/a"}),
    ("MOVE LOG 'it''s; -- here' INTO LOCATION \"/b\"", {"source": "it's; -- here", "target": "/b"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ, ids=[text for text, _ in READ])
def test_a_command_gives_the_values_of_its_parameters(text, expected):
    """Keywords in any case, comments, optional parts and odd names are all read."""
    found = find_command(text, (_OPTIMIZE, _MOVE))
    assert found is not None
    assert found[1] == expected


MISSPELLED = [
    "OPTIMIZE indextables.t ZORDER BY a",
    "OPTIMIZE indextables.t ZORDER BY (a,)",
    "OPTIMIZE indextables.t WHERE",
    "OPTIMIZE indextables.t LIMIT few",
    "OPTIMIZE indextables.t LIMIT 1.5",
    "OPTIMIZE indextables.t now",
    "MOVE LOG /a",
    "MOVE LOG '/a",
    "move log '/a' AT '/b'",
]


@pytest.mark.parametrize("text", MISSPELLED)
def test_a_command_that_goes_wrong_shows_how_it_is_written(text):
    """What begins like a command of ours is never handed to an engine that does not know it."""
    with pytest.raises(SqlSyntaxError) as error:
        find_command(text, (_OPTIMIZE, _MOVE))
    assert error.value.hint.startswith("write ")


NOT_OURS = [
    "SELECT 1",
    "OPTIMIZE delta.`/a`",
    "OPTIMIZE t",
    "OPTIMIZE indextables",
    "MOVE DATA '/a'",
    "SELECT 'OPTIMIZE indextables.t'",
    "SELECT * FROM indextables.`/a`",
    "SELECT '",
    "",
]


@pytest.mark.parametrize("text", NOT_OURS)
def test_every_other_statement_is_left_alone(text):
    """An engine gets its own statements, right or wrong, untouched."""
    assert find_command(text, (_OPTIMIZE, _MOVE)) is None


def test_statements_without_our_words_are_not_even_read():
    """The test that every statement of a session pays for looks for words only."""
    assert not may_be_ours("SELECT count(*) FROM t WHERE a > 1")
    assert may_be_ours("select * from IndexTables.`/a`")
    assert may_be_ours("repair indexfiles transaction log '/a' at location '/b'")


def test_every_usage_is_a_pattern_that_reads_itself():
    """A usage with its parameters filled in is read by the command it belongs to."""
    fill = {
        "table": "indextables.`/t`",
        "text": "'/t'",
        "count": "3",
        "columns": "(a)",
        "condition": "a > 1",
    }
    for command in COMMANDS:
        text = command.usage.replace("[", "").replace("]", "").replace("<table>", fill["table"])
        for kind, value in fill.items():
            text = re.sub(rf"<\w+:{kind}>", value, text)
        text = re.sub(r"(\w+)\|\w+", r"\1", text).replace("<columns>", "(a)").replace("<column>", "a")
        found = find(text)
        assert found is not None, text
        assert found[0].run is command.run, text
