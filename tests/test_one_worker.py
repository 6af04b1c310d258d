"""Under xdist every test of `tests/engines/spark` runs on one worker, and the other tests use all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
RECORD = """
import os
import pytest

@pytest.mark.parametrize("i", range({count}))
def test_where_it_runs(i):
    with open({log!r}, "a") as out:
        out.write("{kind} " + os.environ.get("PYTEST_XDIST_WORKER", "alone") + "\\n")
"""


def run(project: Path, *args: str) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment["PYTHONPATH"] = str(TESTS)
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = (
        "1"  # they take longer to load than the tests to run
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "support.one_worker", *args],
        cwd=project,
        env=environment,
        check=True,
        timeout=240,
        stdout=subprocess.DEVNULL,
    )
    return (project / "log").read_text().splitlines()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Five files of Spark tests among twenty others, each test of which writes down where it runs."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    log = str(tmp_path / "log")
    for i in range(5):
        for folder, count in (("core", 20), ("engines/spark", 3)):
            kind = folder.rpartition("/")[2]
            file = tmp_path / f"tests/{folder}/test_{kind}_{i}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(RECORD.format(kind=kind, count=count, log=log))
    return tmp_path


def test_spark_tests_share_one_worker_and_every_test_runs_once(project):
    """However the files are named and ordered: two workers with a Spark test would be two JVMs."""
    lines = run(project, "-p", "xdist", "-n2")
    assert Counter(line.split()[0] for line in lines) == {"core": 100, "spark": 15}
    assert len({line for line in lines if line.startswith("spark")}) == 1
    spark_worker = next(line.split()[1] for line in lines if line.startswith("spark"))
    assert {"gw0", "gw1"} - {spark_worker} <= {line.split()[1] for line in lines if "core" in line}


@pytest.mark.parametrize("args", [("-p", "xdist", "-n0"), ()], ids=["one process", "no xdist"])
def test_it_does_no_harm_where_there_is_nothing_to_share(project, args):
    """One process runs every test, with xdist and without."""
    assert Counter(run(project, *args)) == {"core alone": 100, "spark alone": 15}


def test_a_worker_without_tests_is_not_waited_for(project):
    """Of Spark tests only, all run on one worker, and the other one ends."""
    assert len(set(run(project, "-p", "xdist", "-n2", "tests/engines/spark"))) == 1
