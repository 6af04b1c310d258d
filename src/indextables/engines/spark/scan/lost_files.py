"""Says in words which data file Spark could not read: its table, its version, and what to do.

Spark wraps whatever happens while it reads a file in one exception that names the file. If the file
belongs to a table that a DataFrame reads, this library's own error takes its place, as in other readers.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import pyarrow.compute as pc
from py4j.java_gateway import JavaObject

from indextables.engines.spark.scan.file_index import NativeScan, known_scans
from indextables.engines.spark.versions import seam
from indextables.errors import ObjectNotFoundError, StorageError

_FAILED: Final = "org.apache.spark.SparkException: [FAILED_READ_FILE."
_MISSING: Final = "FAILED_READ_FILE.FILE_NOT_EXIST"


def unreadable_file(error: JavaObject) -> StorageError | None:
    """Returns the error for an exception of the JVM about a file of a table; None if it is about something else."""
    if not str(error.toString()).startswith(_FAILED):
        return None
    path = error.getMessageParameters().get("path")
    found = None if path is None else _owner(str(path))
    if found is None:
        return None
    scan, key = found
    facts = {"key": key, "uri": scan.location, "version": scan.snapshot.version}
    where = f"the data file {key!r} of {scan.location}, version {scan.snapshot.version},"
    if seam.condition_of(error) == _MISSING:
        return ObjectNotFoundError(
            f"{where} is in the log, but not in the store",
            hint="if a vacuum removed the files of this version, load the DataFrame again; otherwise Table.check() "
            "lists every missing file, and REPAIR INDEXFILES TRANSACTION LOG makes a log without them",
            **facts,
        )
    return StorageError(
        f"{where} cannot be read: {_root_cause(error)}",
        hint="Table.check(deep=True) names every file that is damaged",
        **facts,
    )


def _owner(path: str) -> tuple[NativeScan, str] | None:
    """Returns the newest version that a DataFrame reads and that has this file, and the file's key in it."""
    spellings = {_plain(path), _plain(unquote(path))}
    newest_first = sorted(known_scans(), key=lambda scan: -scan.snapshot.version)
    for scan in newest_first:
        root = _plain(scan.root).rstrip("/") + "/"
        for key in (spelling[len(root) :] for spelling in spellings if spelling.startswith(root)):
            if pc.index(scan.snapshot.column("key"), key).as_py() >= 0:
                return scan, key
    return None


def _plain(uri: str) -> str:
    """Returns the URI without the empty host that only some of Hadoop's texts have: file:///a is file:/a."""
    return re.sub("^([a-z0-9]+):///", r"\1:/", uri)


def _root_cause(error: JavaObject) -> str:
    while error.getCause() is not None:
        error = error.getCause()
    lines = str(error.getMessage() or error.toString()).strip().splitlines()
    return lines[0][:300] if lines else str(error.getClass().getSimpleName())
