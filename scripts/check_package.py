"""Builds wheel and source distribution, installs each into an empty environment, and makes a table with it.

    python scripts/check_package.py

Needs only Python: what it builds and installs with comes from the package index.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
TRIAL = """
import sys
import tempfile

import pyarrow as pa

import indextables as it

table = it.Table.create(tempfile.mkdtemp() + "/t", pa.schema([("id", pa.int64())]))
table.append(pa.table({"id": [1, 2, 3]}))
assert table.scan("id > 1").count() == 2
assert "site-packages" in it.__file__, it.__file__
try:
    it.scan_polars
except it.errors.MissingDependencyError as error:
    assert "indextables[polars]" in str(error), error
"""


def run(*command: str | Path, cwd: Path) -> None:
    """Runs a command; CalledProcessError if it fails."""
    subprocess.run([str(word) for word in command], check=True, cwd=cwd)


def environment(folder: Path) -> Path:
    """Returns the Python of a new, empty environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        builder = environment(folder / "builder")
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(builder, *pip, "build", cwd=ROOT)
        run(builder, "-m", "build", "--outdir", folder / "dist", cwd=ROOT)
        for package in sorted((folder / "dist").iterdir()):
            python = environment(folder / package.suffix.strip("."))
            run(python, *pip, "--constraint", ROOT / "constraints.txt", package, cwd=folder)
            run(python, "-c", TRIAL, cwd=folder)
            run(python, "-m", "indextables", "--version", cwd=folder)
            print(f"{package.name} installs and works")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
