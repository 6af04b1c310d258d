"""Stores on S3, Google Cloud Storage and Azure, through obstore.

An object appears as a whole and is durable when `put` returns, and `put_if_absent` uses the store's own
condition. But no client can be certain after a lost answer: obstore repeats a request that ended in a 5xx or
a broken connection, and a repeated `put_if_absent` then finds its own object and raises ObjectExistsError.
S3 may also answer 409 while another writer's request is under way, which looks the same although that
request may still fail. So callers read the object back before they believe the error.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

import obstore
from pyarrow.fs import FileSystem

from indextables.errors import ObjectExistsError, ObjectNotFoundError, ReadOnlyStoreError, StorageError
from indextables.storage.base import (
    ObjectMeta,
    check_key,
    check_new_key,
    check_range,
    is_temporary,
    temporary_name,
    why_not_a_key,
)
from indextables.storage.filesystem import filesystem_over
from indextables.storage.location import root_of
from indextables.storage.object_client import (
    custom_endpoint,
    make_client,
    translated_read,
    translated_write,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Upload(io.RawIOBase):
    """A file that is uploaded in pieces while it grows, and becomes an object when it is closed."""

    def __init__(
        self, writer: obstore.WritableFile, translated: Callable[[], AbstractContextManager[None]]
    ) -> None:
        super().__init__()
        self._writer = writer
        self._translated = translated

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Writes all bytes and returns their number."""
        # A copy, because Arrow's buffer has signed bytes, which obstore refuses, and may be used again.
        copied = bytes(data)
        with self._translated():
            self._writer.write(copied)
        return len(copied)

    def close(self) -> None:
        """Completes the upload; the object appears when this returns, and not before."""
        if not self.closed:
            super().close()
            with self._translated():
                self._writer.close()

    def __del__(self) -> None:
        """Drops an abandoned upload; the base class would close it, so that an incomplete object would appear."""


_PROBED: dict[tuple[str, str, str], bool] = {}


class ObjectStore:
    """The store `s3://bucket/prefix`, `gs://…`, `az://container/…` or `abfss://container@account…/…`."""

    has_own_clock = True
    """The service sets the times of objects, so that the clocks of its clients do not matter."""

    def __init__(self, uri: str, options: Mapping[str, object]) -> None:
        self._uri = uri.rstrip("/")
        self._options = dict(options)
        location = root_of(uri)
        if location is None or location.family not in {"s3", "gs", "az"} or not location.authority:
            hint = f"{uri.partition(':')[0]}://bucket/path"
            raise StorageError(f"{uri!r} does not name a bucket", hint=hint, uri=uri)
        if location.path:
            check_key(location.path)
        self._location = location
        self._endpoint = custom_endpoint(location, self._options)
        self._client = make_client(location, self._options)

    def __repr__(self) -> str:
        return f"ObjectStore({self._uri!r})"  # not the options: they hold credentials

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectStore, (self._uri, self._options)

    @property
    def uri(self) -> str:
        """Returns the root as the user wrote it."""
        return self._uri

    def get(self, key: str) -> bytes:
        """Returns the whole object."""
        check_key(key)
        with translated_read(key):
            return bytes(obstore.get(self._client, key).bytes())

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns a range of the object, in one request."""
        check_key(key)
        check_range(start, length)
        try:
            with translated_read(key):
                # HTTP has no range of zero bytes, so one byte is requested
                return bytes(obstore.get_range(self._client, key, start=start, length=length or 1))[
                    :length
                ]
        except ObjectNotFoundError:
            raise
        except StorageError:
            # A range after the end is an error (416) of the server, but empty here.
            if start < self.head(key).size:
                raise
            return b""

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time of the object."""
        check_key(key)
        try:
            with translated_read(key):
                return _meta(obstore.head(self._client, key))
        except ObjectNotFoundError:
            # The answer to a HEAD has no body, so only a GET says whether the object or the bucket is missing.
            with translated_read(key):
                return _meta(obstore.get(self._client, key).meta)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Yields the objects whose keys start with `prefix`, in byte order of their keys."""
        for meta in self._in_order(prefix, start_after or ""):
            if not meta.key.startswith(prefix):
                if meta.key > prefix:
                    return
            elif why_not_a_key(meta.key) is None and not is_temporary(meta.key):
                # Other tools create an empty object 'data/' as a directory, which obstore lists as 'data'.
                if meta.size == 0 and not self._is_there(meta.key):
                    continue
                yield meta

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces the object, which appears as a whole."""
        check_new_key(key)
        self._before_write()
        with translated_write(key):
            obstore.put(self._client, key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Creates the object under the store's own condition, such as `If-None-Match: *`."""
        check_new_key(key)
        self._before_write()
        self._create(key, data)

    def delete(self, key: str) -> None:
        """Deletes the object."""
        check_key(key)
        with suppress(ObjectNotFoundError), translated_read(key):
            obstore.delete(self._client, key)

    def sync_files(self, keys: Iterable[str]) -> None:
        """Does nothing, because every object is durable."""

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        """Yields objects of `_honours_conditions` that dead processes left behind.

        Incomplete uploads are not listed; the bucket's lifecycle rules remove them.
        """
        with translated_read(""):
            found = [_meta(meta) for meta in obstore.list_with_delimiter(self._client)["objects"]]
        for meta in found:
            if is_temporary(meta.key) and meta.modified_ms < modified_before_ms:
                yield meta

    def filesystem(self) -> FileSystem:
        """Returns the objects as an Arrow file system; large files are uploaded in pieces while they grow."""
        return filesystem_over(self, self._open_output)

    def _open_output(self, key: str) -> Upload:
        check_new_key(key)
        self._before_write()
        with translated_write(key):
            return Upload(obstore.open_writer(self._client, key), lambda: translated_write(key))

    def _create(self, key: str, data: bytes) -> None:
        with translated_write(key):
            # The condition works for a single request only, so the object is not uploaded in pieces.
            obstore.put(self._client, key, data, mode="create", use_multipart=False)

    def _is_there(self, key: str) -> bool:
        try:
            self.head(key)
        except ObjectNotFoundError:
            return False
        return True

    def _in_order(self, prefix: str, after: str) -> Iterator[ObjectMeta]:
        metas = self._listed(prefix, after)
        # S3 and GCS list in byte order. Azure with hierarchical names and other servers may not.
        ordered = self._location.family in {"s3", "gs"} and self._endpoint is None
        return metas if ordered else iter(sorted(metas, key=lambda meta: meta.key))

    def _listed(self, prefix: str, after: str) -> Iterator[ObjectMeta]:
        directory = prefix.rpartition("/")[0]
        if directory:
            check_key(directory)
        offset = after if after and why_not_a_key(after) is None else None
        try:
            with translated_read(prefix):
                for page in obstore.list(self._client, directory or None, offset=offset):
                    yield from (meta for meta in map(_meta, page) if meta.key > after)
        except ObjectNotFoundError as error:
            raise StorageError(f"cannot list {self._uri!r}: {error.message}") from error

    def _before_write(self) -> None:
        """Raises ReadOnlyStoreError if the server ignores conditions, which is tested once per process."""
        if self._endpoint is None:
            return
        tested = (self._endpoint, self._location.authority, self._location.path)
        if tested not in _PROBED:
            _PROBED[tested] = self._honours_conditions()
        if not _PROBED[tested]:
            raise ReadOnlyStoreError(
                f"the endpoint {self._endpoint!r} ignores conditional writes: two exclusive puts of one "
                "key succeeded, so two writers could both believe that they committed",
                hint="use a server that supports If-None-Match on PUT, or a newer version of this one; "
                "tables can be read from it",
                endpoint=self._endpoint,
            )

    def _honours_conditions(self) -> bool:
        key = temporary_name()
        try:
            self._create(key, b"may I write here?")
            self._create(key, b"twice?")
        except ObjectExistsError:
            return True
        else:
            return False
        finally:
            with suppress(StorageError):
                self.delete(key)


def _meta(found: obstore.ObjectMeta) -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))
