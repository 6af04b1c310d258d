"""A file system that only Hadoop knows (HDFS, ADLS, a viewfs over them) as a store for the log.

A put writes a hidden temporary file and renames it. Whether a rename that must not replace is exclusive
depends on the file system: HDFS's name node and ADLS decide it in one step. Hadoop's own local file
system looks first and renames then (measured: 2-3 % of races had two winners), and so do the default
implementations that other schemes inherit. `create(overwrite=false)` does not help, because it shows an
empty file before the bytes. So a scheme that is not known to be exclusive can be read but not written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import orjson
import pyarrow.fs as pa_fs
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.errors import ObjectExistsError, ObjectNotFoundError, ReadOnlyStoreError, StorageError
from indextables.storage.base import (
    LogStore,
    ObjectMeta,
    check_key,
    check_new_key,
    check_range,
    is_temporary,
    temporary_name,
    why_not_a_key,
)
from indextables.storage.filesystem import filesystem_over
from indextables.storage.local import LocalStore
from indextables.storage.location import Location, parse_location, root_of
from indextables.storage.open import open_store

EXCLUSIVE_RENAME: Final = frozenset({"hdfs", "webhdfs", "swebhdfs", "abfs", "abfss"})
_MISSING: Final = ("FileNotFoundException", "NoSuchFileException", "ParentNotDirectoryException")
_TAKEN: Final = ("FileAlreadyExistsException",)


class HadoopStore:
    """A store at `hdfs://name-node/path` and the like, with the configuration of the running Spark session."""

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")
        self._tools = jvm_tools()
        self._conf = _hadoop_configuration()

    def __repr__(self) -> str:
        return f"HadoopStore({self._uri!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return HadoopStore, (self._uri,)

    @property
    def has_own_clock(self) -> bool:
        """Returns True if the times of files are a server's and not this machine's."""
        return not self._uri.startswith("file:")

    @property
    def uri(self) -> str:
        """Returns the root as the user wrote it."""
        return self._uri

    def get(self, key: str) -> bytes:
        """Returns the whole file."""
        with self._open(key) as stream:
            return bytes(stream.readAllBytes())

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns a range of the file's bytes."""
        check_range(start, length)
        size = self.head(key).size
        if start >= size or not length:
            return b""  # Hadoop refuses to seek behind the end
        with self._open(key) as stream:
            stream.seek(start)
            return bytes(stream.readNBytes(min(length, size - start)))

    def head(self, key: str) -> ObjectMeta:
        """Returns the size and time of the file."""
        path = self._path(check_key(key))
        with _calling(key):
            status = self._filesystem.getFileStatus(path)
            if status.isFile():
                return ObjectMeta(key, status.getLen(), status.getModificationTime())
        raise _not_found(key)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Yields the files whose keys start with `prefix`, in byte order of their keys."""
        for meta in self._walk(prefix, start_after or ""):
            if not is_temporary(meta.key):
                yield meta

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        """Yields temporary files of writers that died; younger ones may belong to a living writer."""
        for meta in self._walk("", ""):
            if is_temporary(meta.key) and meta.modified_ms < modified_before_ms:
                yield meta

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces the file; on file systems other than HDFS there may be none for a moment."""
        self._publish(key, data, "OVERWRITE")

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Writes the file unless it exists; exclusive, because the file system decides the rename in one step."""
        self._publish(key, data, "NONE")

    def delete(self, key: str) -> None:
        """Deletes the file if it is there; a directory is left alone."""
        path = self._path(check_key(key))
        with suppress(ObjectNotFoundError), _calling(key):
            if self._filesystem.getFileStatus(path).isFile():
                self._filesystem.delete(path, False)

    def sync_files(self, keys: Iterable[str]) -> None:
        """Does nothing: a closed file is as durable as this file system makes it."""

    def try_directory(self, key: str) -> None:
        """Raises StorageError if no directory of this free name can be made; it is removed again."""
        path = self._path(_check_hadoop_name(check_new_key(key)))
        self._refuse_unless_exclusive()
        with _calling(key, writing=True):
            if not self._filesystem.mkdirs(path):
                raise StorageError(f"{key!r}: the directory cannot be made", key=key)
            self._filesystem.delete(path, True)

    def filesystem(self) -> pa_fs.PyFileSystem:
        """Returns the store as an Arrow file system."""
        return filesystem_over(self)

    @cached_property
    def _filesystem(self) -> JavaObject:
        with _calling(self._uri):
            return self._path("").getFileSystem(self._conf)

    @cached_property
    def _context(self) -> JavaObject:
        """Returns a FileContext, the only interface of Hadoop's whose rename can refuse to replace."""
        with _calling(self._uri):
            root = self._path("").toUri()
            return self._tools.lookup("org.apache.hadoop.fs.FileContext").getFileContext(
                root, self._conf
            )

    def _path(self, key: str) -> JavaObject:
        return self._tools.path(f"{self._uri}/{key}" if key else f"{self._uri}/")

    @contextmanager
    def _open(self, key: str) -> Iterator[JavaObject]:
        path = self._path(check_key(key))
        with _calling(key):
            if not self._filesystem.getFileStatus(path).isFile():
                raise _not_found(key)  # file systems differ in what opening a directory raises
            stream = self._filesystem.open(path)
            try:
                yield stream
            finally:
                stream.close()

    def _publish(self, key: str, data: bytes, option: str) -> None:
        target = self._path(_check_hadoop_name(check_new_key(key)))
        self._refuse_unless_exclusive()
        temporary = self._path(f"{key.rpartition('/')[0]}/{temporary_name()}".lstrip("/"))
        with _calling(key, writing=True):
            try:
                self._write(temporary, data)
                self._rename(temporary, target, option)
            except BaseException:
                with suppress(Exception):
                    self._filesystem.delete(temporary, False)
                raise

    def _write(self, path: JavaObject, data: bytes) -> None:
        stream = self._filesystem.create(path, True)
        try:
            stream.write(bytes(data))
            stream.hsync()
        finally:
            stream.close()

    def _rename(self, source: JavaObject, target: JavaObject, option: str) -> None:
        kind = self._tools.lookup("org.apache.hadoop.fs.Options$Rename")
        options = self._tools.gateway.new_array(kind, 1)
        options[0] = getattr(kind, option)
        self._context.rename(source, target, options)

    def _refuse_unless_exclusive(self) -> None:
        if self._scheme not in EXCLUSIVE_RENAME:
            raise ReadOnlyStoreError(
                f"Hadoop's file system for {self._scheme}:// is not known to decide between two writers "
                "of one file, so a commit there could be lost",
                hint="keep the table on hdfs://, abfss://, s3://, gs:// or a local disk; reading works here",
                uri=self._uri,
            )

    @cached_property
    def _scheme(self) -> str:
        """Returns the scheme of the file system that does the work; a viewfs only points to it."""
        path = self._path("")
        scheme = str(path.toUri().getScheme()).lower()
        while scheme == "viewfs" and path is not None:
            try:
                with _calling(self._uri):
                    return str(self._filesystem.resolvePath(path).toUri().getScheme()).lower()
            except ObjectNotFoundError:
                path = path.getParent()
        return scheme

    def _walk(self, prefix: str, after: str) -> Iterator[ObjectMeta]:
        directory = prefix.rpartition("/")[0]
        if directory:
            check_key(directory)
        yield from self._descend(directory, prefix, after)

    def _descend(self, directory: str, prefix: str, after: str) -> Iterator[ObjectMeta]:
        """Yields files below a directory in the order of keys: 'a-b' and 'a.c' come before 'a/x', 'a0' after it."""
        base = f"{directory}/" if directory else ""
        entries = {entry.name: entry for entry in self._children(directory)}
        for name in sorted(entries):
            key, entry = base + name, entries[name]
            if not key.startswith(prefix) and not prefix.startswith(key):
                continue
            if entry.is_directory:
                if after <= key or after.startswith(key):
                    yield from self._descend(key.removesuffix("/"), prefix, after)
            elif key > after and key.startswith(prefix):
                yield ObjectMeta(key, entry.size, entry.modified_ms)

    def _children(self, directory: str) -> Sequence[_Entry]:
        path = self._path(directory)
        try:
            with _calling(directory):
                text = self._tools.field_json.writeValueAsString(self._filesystem.listStatus(path))
        except ObjectNotFoundError:
            return []
        # one call for all files; a call for each would take a millisecond
        found = [_Entry(status) for status in orjson.loads(text)]
        # listing a file returns the file itself
        own_name = directory.rpartition("/")[2]
        alone = len(found) == 1 and not found[0].is_directory and found[0].name == own_name
        if alone and directory and self._filesystem.getFileStatus(path).isFile():
            return []
        return [entry for entry in found if why_not_a_key(entry.name.removesuffix("/")) is None]


class _Entry:
    """One entry of a listing; the name of a directory ends in a slash."""

    __slots__ = ("is_directory", "modified_ms", "name", "size")

    def __init__(self, status: Mapping[str, Any]) -> None:
        # the URI of a Hadoop path is always percent-encoded
        name = unquote(status["path"]["uri"].rstrip("/").rpartition("/")[2])
        self.is_directory = bool(status["isdir"])
        self.name = f"{name}/" if self.is_directory else name
        self.size, self.modified_ms = int(status["length"]), int(status["modification_time"])


def _hadoop_configuration() -> JavaObject:
    from pyspark import SparkContext  # noqa: PLC0415

    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is None:
        raise StorageError("this location needs Hadoop, and Spark is not running")
    return context._jsc.hadoopConfiguration()  # noqa: SLF001


def _check_hadoop_name(key: str) -> str:
    if ":" in key:
        # to Hadoop, Path("a:b") is a scheme and a path, and HDFS refuses such names anyway
        raise StorageError(f"{key!r} has a colon, which no file name in Hadoop can have", key=key)
    return key


def _not_found(key: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(f"there is no object {key!r}", key=key)


@contextmanager
def _calling(key: str, *, writing: bool = False) -> Iterator[None]:
    """Turns errors of Hadoop into errors of this library; only a missing file is 'not found'.

    While writing, a file that is not found is the store's own temporary one, after a retried rename whose
    first answer was lost. That says nothing about the object.
    """
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        name = str(cause.getClass().getSimpleName())
        if name in _MISSING and not writing:
            raise _not_found(key) from error
        if name in _TAKEN:
            raise ObjectExistsError(f"there is already an object {key!r}", key=key) from error
        raise StorageError(f"{key!r}: {_first_line(cause.toString())}", key=key) from error
    except (CapturedException, Py4JError) as error:
        raise StorageError(f"{key!r}: {_first_line(str(error))}", key=key) from error


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


# The location of a table, for the log (a store) and for Spark's own readers and writers (a Hadoop URI).

# Hadoop's names of options and obstore's; a bucket may override each of them.
_S3_OPTIONS: Final = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of a table, under each of its names."""

    store: LogStore
    root: str
    """The spelling that Hadoop's Path takes: real names, nothing percent-encoded, no slash at the end."""
    location: str
    """The spelling of its user."""


def place_of(session: SparkSession, path: str | Path) -> Place:
    """Returns the table's directory under the cluster's own configuration; nothing is read yet."""
    written = text = os.fspath(path)
    conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    location = parse_location(text)
    has_scheme = location is None or (location.family and not text.startswith("/"))
    if not has_scheme and not str(conf.get("fs.defaultFS")).startswith("file:"):
        # On a cluster, a path without a scheme belongs to the default file system.
        bare = jvm_tools().path(text)
        text = str(bare.getFileSystem(conf).makeQualified(bare).toString())
        location = parse_location(text)
    return Place(*_place(text, location, conf), written)


def _place(uri: str, location: Location | None, conf: JavaObject) -> tuple[LogStore, str]:
    match location:
        case Location(family="file" | ""):
            return _local(uri)
        case Location(family="memory"):
            raise StorageError(
                f"{uri!r} exists only in this Python process, but Spark reads files in a JVM",
                hint="use a local path, hdfs://, s3a://, gs:// or abfss://",
                uri=uri,
            )
        case Location(family="s3", authority=bucket):
            options = s3_options(conf, bucket)
            return open_store(uri, options=options), _known_to_hadoop(uri.rstrip("/"), conf)
        case Location(family="gs"):
            return open_store(uri), uri.rstrip("/")
        case _:
            is_known = _has_file_system(uri.partition(":")[0], conf)
            return HadoopStore(uri) if is_known else open_store(uri), uri.rstrip("/")


def _local(text: str) -> tuple[LogStore, str]:
    location = root_of(text)
    assert location is not None
    store = LocalStore(location.path)
    # with its scheme, because the default file system may be another one
    return store, f"file://{store.uri}"


def _known_to_hadoop(uri: str, conf: JavaObject) -> str:
    """Returns the URI with s3a:// in place of s3://, which Hadoop does not know."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "s3a" and not conf.get(f"fs.{scheme.lower()}.impl"):
        return f"s3a:{rest}"
    return uri


def s3_options(conf: JavaObject, bucket: str) -> Mapping[str, object]:
    """Returns the credentials and the endpoint that Hadoop would use for this bucket, by obstore's names."""

    def value(name: str) -> str | None:
        text = conf.get(f"fs.s3a.bucket.{bucket}.{name}") or conf.get(f"fs.s3a.{name}")
        return str(text) if text else None

    found: dict[str, object] = {
        ours: text for theirs, ours in _S3_OPTIONS.items() if (text := value(theirs))
    }
    if endpoint := value("endpoint"):
        scheme = "http" if value("connection.ssl.enabled") == "false" else "https"
        found["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
        found.setdefault("region", "us-east-1")
    return found


def _has_file_system(scheme: str, conf: JavaObject) -> bool:
    try:
        jvm_tools().lookup("org.apache.hadoop.fs.FileSystem").getFileSystemClass(scheme, conf)
    except Py4JJavaError:
        return False
    except Exception as error:
        if "ClassNotFoundException" in str(error):
            return False  # PySpark turns some of Java's exceptions into its own
        raise
    return True
