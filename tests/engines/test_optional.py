"""Engines are optional: the package loads without them, and says what to install."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import indextables as it
try:
    it.{name}
except it.errors.MissingDependencyError as error:
    print(error)
"""


@pytest.mark.parametrize(("package", "name"), [("polars", "scan_polars"), ("duckdb", "duckdb")])
def test_without_an_engine_the_error_names_the_extra(package, name):
    """The rest of the library is there; the name says what it needs."""
    script = BLOCKED.format(package=package, name=name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install 'indextables[{package}]'" in done.stdout


def test_importing_the_package_loads_no_engine():
    """Nor pandas, nor Arrow's datasets, which bring it along."""
    script = "import sys, indextables.table.table; print({'duckdb', 'polars', 'pandas', 'pyspark', 'datafusion'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
