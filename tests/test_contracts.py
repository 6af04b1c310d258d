"""The contracts of imports hold, and fail where they should: a check that cannot fail guards nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import ROOT

LINT = Path(sys.executable).with_name("lint-imports")
STRAY = {
    "an engine's package in another engine's folder": ("engines/duckdb/views.py", "import pyspark"),
    "a room that imports upward": ("core/states.py", "import indextables.table.table"),
    "a room that is not listed": ("attic/__init__.py", ""),
    "two folders that import each other": (
        "core/expr/zones.py",
        "import indextables.core.expr.zone_rules",
    ),
}


@pytest.fixture
def copy(tmp_path):
    """The package and the contracts, to be spoiled."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def checked(folder):
    """The exit code of the linter over a copy."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [LINT, "--no-cache", "--config", folder / "pyproject.toml"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True).returncode


def test_the_contracts_hold(copy):
    """As they are written in pyproject.toml."""
    assert checked(copy) == 0


@pytest.mark.parametrize("case", STRAY)
def test_a_stray_import_breaks_a_contract(copy, case):
    """In a copy of the package; `make lint` ends with the linter's own exit code."""
    name, line = STRAY[case]
    file = copy / "src" / "indextables" / name
    file.parent.mkdir(exist_ok=True)
    text = file.read_text() if file.exists() else '"""A room."""\n'
    file.write_text(f"{text}\n{line}\n")
    assert checked(copy) != 0
    assert "lint-imports) ||" in (ROOT / "Makefile").read_text()
