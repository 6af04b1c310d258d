"""A real standalone cluster, whose workers have no Python package of this library."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.cloudpickle import dumps

from indextables.engines.spark.write.cluster import place_function
from indextables.parquet.write.curves import Ranker

HOME = Path(pyspark.__file__).parent
DRIVER = Path(__file__).parents[2] / "support" / "cluster.py"
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "indextables":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """The address of a master with two workers on this machine."""
    port = free_port()
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["SPARK_DAEMON_JAVA_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as until:

        def start(name, *arguments):
            log = until.enter_context((tmp_path / f"{name}.log").open("w"))
            kind = f"org.apache.spark.deploy.{name.rstrip('12')}.{name.rstrip('12').title()}"
            process = subprocess.Popen(
                [
                    HOME / "bin" / "spark-class",
                    kind,
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    *arguments,
                ],
                stdout=log,
                stderr=log,
                env=environment,
            )
            until.callback(process.wait, 30)
            until.callback(process.terminate)

        start("master", "--port", str(port))
        for worker in ("worker1", "worker2"):
            work = tmp_path / worker
            start(worker, "--cores", "1", "--memory", "700m", "--work-dir", str(work), master)
        deadline = time.monotonic() + 120
        while (tmp_path / "master.log").read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, (tmp_path / "master.log").read_text()
            time.sleep(0.2)
        yield master


def lacking(root):
    """A directory whose Python finds no module of this package."""
    (root / "site").mkdir(parents=True)
    (root / "site" / "sitecustomize.py").write_text(BLOCKED)
    return root / "site"


def test_the_code_of_a_curve_travels_with_the_job(tmp_path):
    """A worker that lacks this package can place rows on a curve."""
    ranker = Ranker.of([pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", None])])
    (tmp_path / "job").write_bytes(dumps(place_function(ranker, "hilbert")))
    there = f"""
import pickle, pyarrow as pa
place = pickle.load(open({str(tmp_path / "job")!r}, "rb"))
print(place(pa.array([1, 4]), pa.array(["a", None])).to_pylist())
"""
    environment = {**os.environ, "PYTHONPATH": str(lacking(tmp_path / "worker"))}
    run = [sys.executable, "-c", there]
    found = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    here = place_function(ranker, "hilbert")(pa.array([1, 4]), pa.array(["a", None])).to_pylist()
    assert found.stdout.strip() == str(here), found.stderr


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_everything_runs_on_executors_that_lack_this_package(cluster, tmp_path):
    """What runs there is Spark SQL, or travels with the job; nothing is left to the driver with a warning."""
    root = tmp_path / "tables"
    site = lacking(root)
    python = root / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, str(DRIVER), cluster, str(root)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    line = next((one for one in run.stdout.splitlines() if one.startswith("found: ")), None)
    assert line is not None, run.stderr[-3000:]
    result = json.loads(line.removeprefix("found: "))
    left = [i for i in range(400) if i % 7 != 3]
    after_merge = [len(left) + 1, sum(left) + 900]
    assert result["found"] == {
        "lacks": ["No module named 'indextables'"],
        "write": None,
        "read": [50],
        "delete": [len(left), sum(left)],
        "update": [99],
        "merge": [len(left) + 1, 1],
        "upsert": [410, sum(i % 7 for i in range(390)) - 20],
        "zorder": after_merge,
        "hilbert": after_merge,
        "compact": [410, sum(i % 7 for i in range(390)) - 20],
        "analyze": 1,
        "repair": 1,
        "sink": 400,
        "executors": 2,
    }
    assert result["warnings"] == []
    shutil.rmtree(root)
