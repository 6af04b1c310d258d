"""A Spark session in this process, for the demo, examples and benchmarks."""

from __future__ import annotations

import os
import tempfile

from pyspark.sql import SparkSession

from indextables.errors import MissingDependencyError


def local_session(name: str, *, cores: int = 2, memory: str = "2g") -> SparkSession:
    """A quiet session on this machine's cores; one clear error where there is no Java for it."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns about the host's name
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
        raise MissingDependencyError(
            "Spark did not start: it needs Java 17 or newer",
            hint="install one (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME",
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session
