"""Spark's own Parquet writer into a fresh directory; what it wrote, as splits with statistics."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.prune.partitions import (
    NULL_DIRECTORY,
    decode_partition,
    partition_text,
    unescape_segment,
)
from indextables.core.stats import SplitStats
from indextables.core.stats.truncate import TruncationMetrics, log_truncation, truncate_stats
from indextables.core.types import Field, PrimitiveType
from indextables.engines.spark.jvm.gateway import jvm_tools, quoted
from indextables.engines.spark.place.hadoop import HadoopStore, Place
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.file_rows import fewer_read
from indextables.engines.spark.write.fit import nameable, not_null, promises_in_words
from indextables.engines.spark.write.statistics import fill_gaps, footer_stats
from indextables.errors import StorageError
from indextables.log.wire.actions import Add
from indextables.parquet.write.write import WriteTarget, Written
from indextables.storage.local import LocalStore

# The directory that one job writes: fresh, refused before the job if nothing can be written there.

_ELSEWHERE: Final = "name a directory that can be made and written to; nothing was committed"
_FULL: Final = re.compile("No space left on device|quota.* exceeded", re.IGNORECASE)
_REFUSED: Final = re.compile(
    "AccessDenied|AccessControl|ParentNotDirectory|FileAlreadyExists|Mkdirs failed|Permission denied"
    "|Read-only file system"
)


@contextmanager
def fresh_directory(session: SparkSession, place: Place, directory: str) -> Iterator[str]:
    """Yields where a job may write the files of this key; removes it again if anything fails in here.

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
    """Returns what this exception of the JVM, or a cause of it, says about the place.

    None if something else failed.
    """
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
    """Removes what it can; vacuum finds what stays."""
    with suppress(Exception):
        path = jvm_tools().path(location)
        conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        path.getFileSystem(conf).delete(path, True)


_OPTIONS: Final[Mapping[str, str]] = {
    # INT96, the default, has no statistics
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # a shortened text in a footer would look like a value that occurs
    "parquet.statistics.truncate.length": "2147483647",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # without the checksum files beside each file
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file of the directory that was just written, with statistics that are complete."""

    key: str
    size: int
    modified_ms: int
    stats: SplitStats


@dataclass(frozen=True, slots=True)
class NativeWriter:
    """Writes files below one table, with the user's options for Spark's Parquet writer."""

    session: SparkSession
    place: Place
    options: Mapping[str, str] = field(default_factory=dict)

    def write(
        self, frame: DataFrame, target: WriteTarget, by: str | None = None, *, at_least: int = 0
    ) -> Written:
        """Returns the frame (it fits: `fit`) as new splits, durable on return.

        With `by`, no file has rows of two values of that column: `directory_value` tells a file's own. StorageError
        if there are fewer rows than `at_least`: files that are read to be replaced must not lose one.
        """
        more = () if by is None else (by,)
        with self.directory(target) as location:
            rows = _as_directories(frame, target, more)
            self.run(rows, (*more, *target.partition_columns), location)
            found = self.new_files(target)
            if (rows_found := sum(file.stats.num_records or 0 for file in found)) < at_least:
                raise fewer_read(rows_found, at_least)
            values = {file.key: dict(_partition_values(file.key, target, len(more))) for file in found}
            return as_written(found, target, lambda key: values[key])

    @contextmanager
    def directory(self, target: WriteTarget) -> Iterator[str]:
        """Yields a fresh directory; removes it again if anything fails in here.

        A broken promise is told in words.
        """
        fresh = fresh_directory(self.session, self.place, target.directory)
        with fresh as location, promises_in_words():
            yield location

    def run(self, frame: DataFrame, partition_by: Sequence[str], location: str) -> None:
        """Runs the job that writes Parquet files as every table has them, one directory per partition."""
        options = {**self.options, **_OPTIONS}
        writer = frame.write.format("parquet").options(**options).mode("errorifexists")
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        with _settings_of_writes(frame.sparkSession):
            writer.save(location)

    def new_files(self, target: WriteTarget) -> list[NewFile]:
        """Returns what a job wrote into the target's directory, durable.

        Files without rows are removed.
        """
        store = self.place.store
        listed = [m for m in store.list(f"{target.directory}/") if m.key.endswith(".parquet")]
        keys = [meta.key for meta in listed]
        found = footer_stats(store, keys, target.file_schema, target.stats_columns)
        stats = dict(zip(keys, found, strict=True))
        for key in [key for key in keys if not stats[key].num_records]:
            del stats[key]  # an empty DataFrame makes a file, but no split
            with suppress(Exception):
                store.delete(key)
        whole = fill_gaps(self.session, self.place, stats, target)
        store.sync_files(stats)
        return [NewFile(m.key, m.size, m.modified_ms, whole[m.key]) for m in listed if m.key in whole]


_jobs: Final[Counter[str]] = Counter()
_before: Final[dict[str, dict[str, str]]] = {}
_jobs_lock: Final = threading.Lock()


@contextmanager
def _settings_of_writes(session: SparkSession) -> Iterator[None]:
    """Yields while dates and times are written as they are, with bounds, whatever the session says of them.

    Spark's writer asks the session for this, not the options of a write. So settings change while such a job
    runs, and back after the last of them.
    """
    number = str(session._jsparkSession.sessionUUID())  # noqa: SLF001
    with _jobs_lock:
        wanted = seam.settings_of_writes
        found = {name: str(session.conf.get(name)) for name in wanted}
        changes = _jobs[number] > 0 or found != wanted
        if changes:
            _before.setdefault(number, found)
            _jobs[number] += 1
            _set(session, wanted)
    try:
        yield
    finally:
        if changes:
            with _jobs_lock:
                _jobs[number] -= 1
                if not _jobs[number]:
                    _set(session, _before.pop(number))
                    del _jobs[number]


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        session.conf.set(name, value)


def _as_directories(frame: DataFrame, target: WriteTarget, more: Sequence[str]) -> DataFrame:
    """Returns the columns of the files, then `more`, then the partition columns as their directories name them."""
    partitions = [_field(target, name) for name in target.partition_columns]
    files = [F.col(quoted(name)) for name in (*target.file_schema.names, *more)]
    return frame.select([*files, *map(_directory_text, partitions)])


def directory_value(key: str, target: WriteTarget) -> str:
    """Returns the value of the column `by` that a file was written for."""
    segment = key.removeprefix(f"{target.directory}/").partition("/")[0]
    return unescape_segment(segment.partition("=")[2])


def _field(target: WriteTarget, name: str) -> Field:
    return next(field for field in target.schema if field.name == name)


def _directory_text(column: Field) -> Column:
    """Returns a partition column as the text the log has for it, so that its directory's name is that text.

    Spark would write a timestamp in the session's zone, where two instants of an autumn night look
    alike, and bytes as text that they are not.
    """
    values = F.col(quoted(column.name))
    match column.type:
        case PrimitiveType("timestamp"):
            text = F.concat(_iso(_in_utc(values)), F.lit("Z"))
        case PrimitiveType("timestamp_ntz"):
            text = _iso(values)
        case PrimitiveType("binary"):
            text = F.nullif(F.base64(values), F.lit(""))  # no bytes are NULL too, in a path
        case PrimitiveType("string"):
            text = nameable(F.nullif(values, F.lit("")), column.name)
        case _:
            text = values.cast("string")
    if not column.nullable:
        text = not_null(text, column.name)
    return text.alias(column.name)


def _in_utc(values: Column) -> Column:
    epoch = F.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'")
    return seam.microseconds_after(epoch, F.unix_micros(values))


def _iso(values: Column) -> Column:
    return F.date_format(values, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")


def as_written(
    files: Sequence[NewFile],
    target: WriteTarget,
    partition_values: Callable[[str], Mapping[str, str | None]],
) -> Written:
    """Returns these files as splits whose statistics are short enough for the log."""
    adds, truncation = [], TruncationMetrics()
    for file in files:
        stats, shortened = truncate_stats(
            file.stats, target.file_schema, target.truncation, target.partition_columns
        )
        truncation += shortened
        adds.append(
            Add(
                path=file.key,
                size=file.size,
                partition_values=partition_values(file.key),
                modification_time=file.modified_ms,
                stats=stats,
                schema_id=target.schema_id,
            )
        )
    log_truncation(truncation)
    return Written.of(adds, truncation)


def _partition_values(
    key: str, target: WriteTarget, depth: int = 0
) -> Iterator[tuple[str, str | None]]:
    """Yields the values of a file's directory, typed by the schema and spelled as the log spells them.

    `depth` is the number of directories above that say something else.
    """
    segments = key.removeprefix(f"{target.directory}/").split("/")[depth:-1]
    for name, segment in zip(target.partition_columns, segments, strict=True):
        escaped = segment.partition("=")[2]
        if escaped == NULL_DIRECTORY:
            yield name, None
            continue
        kind = _field(target, name).type
        yield name, partition_text(decode_partition(unescape_segment(escaped), kind), kind)
