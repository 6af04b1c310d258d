"""Every wrong call of a public name ends in an error of this library that says what to pass, never in one from inside."""

from __future__ import annotations

import inspect
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import IndexTablesError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]}, SCHEMA)
VALUES = [
    None, True, 5, -1, 1.5, "", "no such thing", b"bytes", object(), [], [5], [None], {}, {"a": 1}, {5: 5},
    print, SCHEMA, float("nan"), ("id", "v"), [["id"]],
]  # fmt: skip
RIGHT = {
    "data": ROWS, "where": "id = 1", "columns": ["v"], "version": 0, "schema": SCHEMA, "sql": "v = 'a'",
    "query_builder": it.QueryBuilder(), "name": "v", "src": "/nowhere/_transaction_log",
    "dst": "/nowhere/elsewhere/log",
}  # fmt: skip
METHODS = [
    name for name, _ in inspect.getmembers(it.Table, callable) if name[0] != "_" and name != "on"
]
# What needs a Spark session is tested beside it; classes and contexts have no arguments of their own.
OTHERS = {"Table", "QueryBuilder", "enable", "last_scan", "query_stats"}
FUNCTIONS = [
    name for name in it.__all__ if name not in OTHERS and inspect.isroutine(getattr(it, name, None))
]


def parameters(function) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [each for each in found if each.kind in named]


CASES = [
    (f"Table.{name}", each.name) for name in METHODS for each in parameters(getattr(it.Table, name))
    if each.name != "self"
] + [(name, each.name) for name in FUNCTIONS for each in parameters(getattr(it, name))]  # fmt: skip


def fresh() -> it.Table:
    table = it.Table.create(f"memory://{uuid4()}", SCHEMA, record_key=["id"])
    table.append(ROWS)
    return table


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_wrong_argument_is_an_error_that_says_what_to_pass(name, parameter, tmp_path, monkeypatch):
    """Whatever it is: nothing ends in AttributeError, KeyError, or a TypeError of something deep inside."""
    monkeypatch.chdir(tmp_path)
    for value in VALUES:
        table = fresh()
        owner, _, method = name.rpartition(".")
        function = getattr(table if owner else it, method)
        right = {**RIGHT, "path": f"memory://{uuid4()}", "table": table.uri}
        given = {
            each.name: right.get(each.name, "id")
            for each in parameters(function)
            if each.default is each.empty
        }
        try:
            done = function(**{**given, parameter: value})
            if method in ("scan", "read", "plan"):
                getattr(done, "to_arrow", lambda: None)()
        except IndexTablesError:
            continue
        except Exception as error:
            pytest.fail(f"{name}({parameter}={value!r:.40}) ends in {type(error).__name__}: {error}")


def test_an_argument_that_is_missing_or_unknown_is_pythons_own_error():
    """It names the method and the argument."""
    with pytest.raises(TypeError, match=r"restore\(\) got an unexpected keyword argument 'versoin'"):
        fresh().restore(versoin=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'data'"):
        fresh().append()


def test_methods_keep_their_names_and_signatures():
    """Editors and help() show what they take."""
    assert list(inspect.signature(it.Table.scan).parameters)[:3] == ["self", "where", "columns"]
    assert it.Table.scan.__name__ == "scan" and "Args:" in it.Table.scan.__doc__
