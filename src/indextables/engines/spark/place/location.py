"""Where a table is, for the log (a store) and for Spark's own readers and writers (a Hadoop URI)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.place.hadoop import HadoopStore
from indextables.errors import StorageError
from indextables.storage.base import LogStore
from indextables.storage.local import LocalStore
from indextables.storage.location import Location, parse_location, root_of
from indextables.storage.open import open_store

# Hadoop's names for what obstore calls otherwise; a bucket may override each of them.
_S3_OPTIONS: Final = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}


@dataclass(frozen=True, slots=True)
class Place:
    """One directory under its two names."""

    store: LogStore
    root: str
    """As Hadoop's Path takes it: real names, nothing percent-encoded, no slash at the end."""


def place_of(session: SparkSession, path: str | Path) -> Place:
    """The table's directory, with the cluster's own configuration; nothing is read yet."""
    text = os.fspath(path)
    conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    location = parse_location(text)
    has_scheme = location is None or (location.family and not text.startswith("/"))
    if not has_scheme and not str(conf.get("fs.defaultFS")).startswith("file:"):
        # On a cluster a path without a scheme is a path of its default file system.
        bare = jvm_tools().path(text)
        text = str(bare.getFileSystem(conf).makeQualified(bare).toString())
        location = parse_location(text)
    return _place(text, location, conf)


def _place(uri: str, location: Location | None, conf: Any) -> Place:
    match location:
        case Location(family="file" | ""):
            return _local(uri)
        case Location(family="memory"):
            raise StorageError(
                f"{uri!r} exists in this Python process only, and Spark reads files in a JVM",
                hint="use a local path, hdfs://, s3a://, gs:// or abfss://",
                uri=uri,
            )
        case Location(family="s3", authority=bucket):
            options = s3_options(conf, bucket)
            return Place(open_store(uri, options=options), _known_to_hadoop(uri.rstrip("/"), conf))
        case Location(family="gs"):
            return Place(open_store(uri), uri.rstrip("/"))
        case _:
            if _has_file_system(uri.partition(":")[0], conf):
                return Place(HadoopStore(uri), uri.rstrip("/"))
            return Place(open_store(uri), uri.rstrip("/"))


def _local(text: str) -> Place:
    location = root_of(text)
    assert location is not None
    store = LocalStore(location.path)
    # With its scheme: the default file system may be another one.
    return Place(store, f"file://{store.uri}")


def _known_to_hadoop(uri: str, conf: Any) -> str:
    """Hadoop has s3a:// where everybody else writes s3://."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "s3a" and not conf.get(f"fs.{scheme.lower()}.impl"):
        return f"s3a:{rest}"
    return uri


def s3_options(conf: Any, bucket: str) -> Mapping[str, Any]:
    """The credentials and the endpoint that Hadoop would use for this bucket, by obstore's names."""

    def value(name: str) -> str | None:
        text = conf.get(f"fs.s3a.bucket.{bucket}.{name}") or conf.get(f"fs.s3a.{name}")
        return str(text) if text else None

    found: dict[str, Any] = {
        ours: text for theirs, ours in _S3_OPTIONS.items() if (text := value(theirs))
    }
    if endpoint := value("endpoint"):
        scheme = "http" if value("connection.ssl.enabled") == "false" else "https"
        found["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
        found.setdefault("region", "us-east-1")
    return found


def _has_file_system(scheme: str, conf: Any) -> bool:
    try:
        jvm_tools().lookup("org.apache.hadoop.fs.FileSystem").getFileSystemClass(scheme, conf)
    except Py4JJavaError:
        return False
    except Exception as error:
        if "ClassNotFoundException" in str(error):
            return False  # PySpark turns some of Java's exceptions into its own
        raise
    return True
