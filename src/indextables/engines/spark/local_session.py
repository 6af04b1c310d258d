"""A Spark session in this process, for the demo, examples and benchmarks."""

from __future__ import annotations

import os
import shutil
import tempfile

from pyspark.sql import SparkSession

from indextables.errors import MissingDependencyError


def local_session(name: str, *, cores: int = 2, memory: str = "2g") -> SparkSession:
    """Returns a quiet session on this machine's cores; MissingDependencyError if there is no Java for it."""
    if _java() is None:  # Spark's script would print its own lines beside the error
        raise _java_is_missing()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # without it Spark warns about the host's name
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(name)
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="indextables-warehouse-"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    try:
        session = builder.getOrCreate()
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error) and not isinstance(error, FileNotFoundError):
            raise
        raise _java_is_missing() from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _java() -> str | None:
    """Returns the program that Spark's script would run: JAVA_HOME's if that is set, else the first one found."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118


def _java_is_missing() -> MissingDependencyError:
    home = os.environ.get("JAVA_HOME")
    where = f", and JAVA_HOME={home} has none" if home else ""
    return MissingDependencyError(
        f"Spark did not start: it needs Java 17 or newer{where}",
        hint="install one (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME",
    )
