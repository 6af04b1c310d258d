"""Object stores (S3, Google Cloud Storage, Azure) through obstore.

A put is visible as a whole and durable once answered; exclusive puts use the store's own condition. What
no client can give is certainty after a lost answer: obstore repeats a request that ended in a 5xx or a
broken connection, and a repeated `put_if_absent` finds its own object and reports ObjectExistsError. S3
may also answer 409 while another writer's request is under way, which looks the same although nobody may
have won. So the caller reads the object back before it believes either.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

import obstore

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
from indextables.storage.object_client import custom_endpoint, make_client, reading, writing

# A file being written to an object store: in parts while it grows, visible when it is closed.


class Upload(io.RawIOBase):
    """Obstore's writer as a Python file whose errors are ours."""

    def __init__(self, writer: Any, translated: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._writer = writer
        self._translated = translated

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """Returns all bytes, or an error."""
        # A copy: Arrow's buffer is of signed bytes, which obstore refuses, and may be reused by its owner.
        copied = bytes(data)
        with self._translated():
            self._writer.write(copied)
        return len(copied)

    def close(self) -> None:
        """The object is there when this returns, and only then."""
        if not self.closed:
            super().close()
            with self._translated():
                self._writer.close()

    def __del__(self) -> None:
        """An abandoned upload is dropped: the base class would close it, and half a file would appear."""


_PROBED: dict[tuple[str, str, str], bool] = {}


class ObjectStore:
    """`s3://bucket/prefix`, `gs://…`, `az://container/…`, `abfss://container@account…/…`."""

    has_own_clock = True
    """Times of objects are the service's, whatever the clocks of its clients say."""

    def __init__(self, uri: str, options: Mapping[str, Any]) -> None:
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

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectStore, (self._uri, self._options)

    @property
    def uri(self) -> str:
        """Returns the root as the user wrote it."""
        return self._uri

    def get(self, key: str) -> bytes:
        """Returns the whole object."""
        check_key(key)
        with reading(key):
            return bytes(obstore.get(self._client, key).bytes())

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns part of the object, in one request."""
        check_key(key)
        check_range(start, length)
        try:
            with reading(key):
                # zero bytes are no range of HTTP's: ask for one
                return bytes(obstore.get_range(self._client, key, start=start, length=length or 1))[
                    :length
                ]
        except ObjectNotFoundError:
            raise
        except StorageError:
            # a range behind the end is an error (416) to a server, and nothing to us
            if start < self.head(key).size:
                raise
            return b""

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time of the object."""
        check_key(key)
        try:
            with reading(key):
                return _meta(obstore.head(self._client, key))
        except ObjectNotFoundError:
            # The answer to a HEAD has no body, so it cannot say *what* is missing; that of a GET can.
            with reading(key):
                return _meta(obstore.get(self._client, key).meta)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Yields the objects whose keys start with `prefix`, in byte order of their keys."""
        for meta in self._in_order(prefix, start_after or ""):
            if not meta.key.startswith(prefix):
                if meta.key > prefix:
                    return
            elif why_not_a_key(meta.key) is None and not is_temporary(meta.key):
                # obstore shows the marker 'data/' that other tools leave as an empty object 'data'
                if meta.size == 0 and not self._is_there(meta.key):
                    continue
                yield meta

    def put(self, key: str, data: bytes) -> None:
        """Write or replace; the parts of a large object become visible together."""
        check_new_key(key)
        self._before_write()
        with writing(key):
            obstore.put(self._client, key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Exclusive by the store's own condition (If-None-Match: * and its likes)."""
        check_new_key(key)
        self._before_write()
        self._create(key, data)

    def delete(self, key: str) -> None:
        """Gone afterwards."""
        check_key(key)
        with suppress(ObjectNotFoundError), reading(key):
            obstore.delete(self._client, key)

    def sync_files(self, keys: Iterable[str]) -> None:
        """Nothing to do: an object that is there is durable."""

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        """Probes (below) whose process died.

        Unfinished uploads are for the bucket's lifecycle rules.
        """
        with reading(""):
            found = [_meta(meta) for meta in obstore.list_with_delimiter(self._client)["objects"]]
        for meta in found:
            if is_temporary(meta.key) and meta.modified_ms < modified_before_ms:
                yield meta

    def filesystem(self) -> Any:
        """Returns the objects as an Arrow file system.

        Large files are uploaded in parts while being written.
        """
        return filesystem_over(self, self._open_output)

    def _open_output(self, key: str) -> Upload:
        check_new_key(key)
        self._before_write()
        with writing(key):
            return Upload(obstore.open_writer(self._client, key), lambda: writing(key))

    def _create(self, key: str, data: bytes) -> None:
        with writing(key):
            # never in parts: only a single request carries the condition
            obstore.put(self._client, key, data, mode="create", use_multipart=False)

    def _is_there(self, key: str) -> bool:
        try:
            self.head(key)
        except ObjectNotFoundError:
            return False
        return True

    def _in_order(self, prefix: str, after: str) -> Iterator[ObjectMeta]:
        metas = self._listed(prefix, after)
        # S3 and GCS list in byte order. Azure with hierarchical names and other people's servers need not.
        ordered = self._location.family in {"s3", "gs"} and self._endpoint is None
        return metas if ordered else iter(sorted(metas, key=lambda meta: meta.key))

    def _listed(self, prefix: str, after: str) -> Iterator[ObjectMeta]:
        directory = prefix.rpartition("/")[0]
        if directory:
            check_key(directory)
        offset = after if after and why_not_a_key(after) is None else None
        try:
            with reading(prefix):
                for page in obstore.list(self._client, directory or None, offset=offset):
                    yield from (meta for meta in map(_meta, page) if meta.key > after)
        except ObjectNotFoundError as error:
            raise StorageError(f"cannot list {self._uri!r}: {error.message}") from error

    def _before_write(self) -> None:
        """Refuses a server that says yes to both of two exclusive puts; asked once per process."""
        if self._endpoint is None:
            return
        place = (self._endpoint, self._location.authority, self._location.path)
        if place not in _PROBED:
            _PROBED[place] = self._honours_conditions()
        if not _PROBED[place]:
            raise ReadOnlyStoreError(
                f"the endpoint {self._endpoint!r} ignores conditional writes: it let two exclusive puts of one "
                "key succeed, so two writers could both believe that they committed",
                hint="use a server that supports If-None-Match on PUT, or a newer version of this one; reading works",
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


def _meta(found: Any) -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))
