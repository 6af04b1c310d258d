"""The directory that one job writes: fresh, refused before the job if nothing can be written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.place.hadoop import HadoopStore
from indextables.engines.spark.place.location import Place
from indextables.errors import StorageError
from indextables.storage.local import LocalStore

_ELSEWHERE: Final = "name a directory that can be made and written to; nothing was committed"
_FULL: Final = re.compile("No space left on device|quota.* exceeded", re.IGNORECASE)
_REFUSED: Final = re.compile(
    "AccessDenied|AccessControl|ParentNotDirectory|FileAlreadyExists|Mkdirs failed|Permission denied"
    "|Read-only file system"
)


@contextmanager
def fresh_directory(session: SparkSession, place: Place, directory: str) -> Iterator[str]:
    """Where a job may write the files of this key; gone again if anything fails in here.

    StorageError if the files cannot be written there: before the job where directories are real, and
    where there are none (an object store) from what stopped the job.
    """
    location = f"{place.root}/{directory}"
    _refuse_unwritable(place, directory)
    try:
        yield location
    except BaseException as error:
        _remove(session, location)
        if isinstance(error, Py4JJavaError) and (said := why_unwritable(error.java_exception, place)):
            raise said from error
        raise


def _refuse_unwritable(place: Place, directory: str) -> None:
    if not isinstance(place.store, LocalStore | HadoopStore):
        return
    try:
        place.store.try_directory(directory)
    except StorageError as error:
        raise type(error)(
            f"nothing can be written to {place.store.uri}: {error.message}",
            hint=error.hint or _ELSEWHERE,
            **{**error.facts, "uri": place.store.uri},
        ) from error


def why_unwritable(error: Any, place: Place) -> StorageError | None:
    """What this exception of the JVM, or a cause of it, says about the place; None if something else failed."""
    root = place.root.partition("://")[2] or place.root
    while error is not None:
        text = str(error.toString()).partition("\n")[0]
        reason = str(error.getMessage() or text).partition("\n")[0][:300]
        if _FULL.search(text):
            hint = "free some space and try again: what was committed is safe"
            return StorageError(f"writing to {place.root} failed: {reason}", hint=hint, uri=place.root)
        # the rows come from somewhere else, and what is refused there is no fault of this place
        if _REFUSED.search(text) and root in text:
            return StorageError(
                f"nothing can be written to {place.root}: {reason}", hint=_ELSEWHERE, uri=place.root
            )
        error = error.getCause()
    return None


def _remove(session: SparkSession, location: str) -> None:
    """Best effort: vacuum finds what stays."""
    with suppress(Exception):
        path = jvm_tools().path(location)
        conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        path.getFileSystem(conf).delete(path, True)
