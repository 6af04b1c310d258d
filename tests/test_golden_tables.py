"""The golden tables: small tables of every feature of the format, checked in once and read for ever.

`scripts/golden_tables.py` writes a table when a feature is new, and never again. What fails here fails for
tables that people have.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import orjson
import pytest

import indextables as it
from indextables.log.wire.codec import decode_action, encode_action
from indextables.log.wire.lines import LinePosition
from support.pages import ROOT

GOLDEN = ROOT / "tests" / "golden"
TABLES = sorted(path for path in GOLDEN.glob("v*/*") if path.is_dir())
OWN = [table for table in TABLES if table.name != "other-writer"]
"""Those this library wrote: the spelling of others is not ours to keep."""


def _program() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "golden_tables", ROOT / "scripts" / "golden_tables.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAM = _program()


def expected_of(table: Path) -> Any:
    return json.loads((table.parent / f"{table.name}.json").read_text("utf-8"))


def body_of(file: Path) -> bytes:
    """Returns the text of a log file, unpacked where it is stored as gzip."""
    body = file.read_bytes().removeprefix(b"\x01\x01")
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


def without_empty(add: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of an add but an empty map of partition values, which may be left out."""
    return {key: value for key, value in add.items() if value != {}}


def names(tables: list[Path]) -> list[str]:
    return [f"{table.parent.name}/{table.name}" for table in tables]


def test_every_feature_the_program_knows_is_checked_in():
    """A feature without its table would be guarded by nothing."""
    assert {table.name for table in GOLDEN.glob("v1/*") if table.is_dir()} == set(PROGRAM.TABLES)


@pytest.mark.parametrize("table", TABLES, ids=names(TABLES))
def test_a_golden_table_has_the_rows_it_had(table):
    """In every version that could be read when the table was written."""
    handle = it.Table(str(table))
    for version, rows in expected_of(table)["versions"].items():
        assert PROGRAM.texts(handle.scan(version=int(version)).to_arrow()) == rows, version


@pytest.mark.parametrize("table", TABLES, ids=names(TABLES))
def test_a_golden_table_says_of_its_files_what_it_said(table):
    """Sizes, ages, statistics, tombstones, protocol, properties: nothing is read as unknown that was known."""
    assert PROGRAM.state_of(it.Table(str(table))) == expected_of(table)["state"]


@pytest.mark.parametrize("table", TABLES, ids=names(TABLES))
def test_a_golden_table_is_skipped_as_well_as_it_was(table):
    """The files a condition keeps are the ones it kept, or fewer; its rows are the same."""
    handle = it.Table(str(table))
    for condition, was in expected_of(table)["conditions"].items():
        assert handle.plan(condition).report.kept_files <= was["files"], condition
        assert PROGRAM.texts(handle.scan(condition).to_arrow()) == was["rows"], condition


@pytest.mark.parametrize("table", TABLES, ids=names(TABLES))
def test_nothing_is_wrong_with_a_golden_table(table):
    """As `check` sees it, its rows included."""
    report = it.Table(str(table)).check(deep=True)
    assert report.problems == ()


@pytest.mark.parametrize("table", OWN, ids=names(OWN))
def test_a_golden_log_is_written_back_byte_for_byte(table):
    """Each line this library wrote is read and encoded again: no wire key can be renamed unnoticed."""
    schema = None
    compared = 0
    for file in sorted((table / "_transaction_log").glob("*.json")):
        for number, line in enumerate(body_of(file).splitlines(), start=1):
            [(name, value)] = orjson.loads(line).items()
            position = LinePosition(file.name, number)
            if name in {"add", "remove", "checkpointPart"}:
                continue  # these are columns, not objects: the next test is theirs
            action = decode_action(name, value, line, position)
            if name == "metaData":
                schema = action.schema
            assert schema is not None or name in {"protocol", "commitInfo"}
            assert encode_action(action, seq=0, schema=schema) == line + b"\n"
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize("table", OWN, ids=names(OWN))
def test_the_adds_of_a_golden_table_are_written_back_as_they_are(table):
    """Each add that is a line of a commit and still live is encoded as that line, statistics included."""
    snapshot = it.Table(str(table)).snapshot()
    splits = {split.to_add().path: split.to_add() for split in snapshot.splits()}
    last = {}
    for file in sorted((table / "_transaction_log").glob("*.json")):
        lines = map(orjson.loads, body_of(file).splitlines())
        last |= {unquote(line["add"]["path"]): line["add"] for line in lines if "add" in line}
    compared = 0
    for path, add in last.items():
        live = splits.get(path)
        if live and add["schemaId"] == snapshot.metadata.schema_id:
            again = encode_action(live, seq=live.seq, schema=snapshot.schema)
            assert without_empty(orjson.loads(again)["add"]) == without_empty(add)
            compared += 1
    assert compared >= 1


@pytest.mark.parametrize("table", TABLES, ids=names(TABLES))
def test_a_golden_table_takes_a_commit_and_a_repair(table, tmp_path):
    """On a copy: what was written long ago can be changed, and rebuilt, by the software of today."""
    copy = tmp_path / "table"
    shutil.copytree(table, copy)
    handle = it.Table(str(copy))
    before = PROGRAM.texts(handle.scan().to_arrow())
    result = it.repair(f"{copy}/_transaction_log", f"{copy}/_transaction_log_repaired")
    assert result.status == "SUCCESS", result
    shutil.rmtree(copy / "_transaction_log")
    (copy / "_transaction_log_repaired").rename(copy / "_transaction_log")
    assert PROGRAM.texts(it.Table(str(copy)).scan().to_arrow()) == before
