"""Opens the store at a path or URI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from indextables.errors import StorageError
from indextables.storage.base import LogStore
from indextables.storage.local import LocalStore
from indextables.storage.location import root_of
from indextables.storage.memory import MemoryStore


def open_store(uri: str | Path, *, options: Mapping[str, object] | None = None) -> LogStore:
    """Returns the store whose root is this path or URI; nothing is read, written or checked yet.

    A location is a local path, file://, memory://name, s3:// (s3a://), gs://, az:// or
    abfss://container@account.dfs.core.windows.net/path. `options` are credentials and endpoints of object
    stores, by obstore's names; what is not given comes from the environment.
    """
    if not str(uri).strip():
        # An unset variable in a script must not mean the directory in which it runs.
        raise StorageError("the path of the table is empty", hint="'.' is the current directory")
    if "\0" in str(uri):
        raise StorageError(f"{str(uri)!r} has a NUL character, which no path can have", uri=str(uri))
    location = root_of(str(uri)) if not isinstance(uri, Path) else root_of(str(uri.absolute()))
    if location is None:
        raise StorageError(
            f"there is no store for {str(uri)!r}",
            hint="use a local path, or a URI with file://, s3://, gs://, az://, abfss:// or memory://",
            uri=str(uri),
        )
    match location.family:
        case "file":
            if location.authority:
                raise StorageError(
                    f"{str(uri)!r} names a file on the host {location.authority!r}",
                    hint="a local file URI has three slashes: file:///path",
                    uri=str(uri),
                )
            return LocalStore(location.path)
        case "memory":
            return MemoryStore(f"{location.authority}/{location.path}")
        case _:
            # obstore takes 30 ms to import, and most tables are local.
            from indextables.storage.object_store import ObjectStore  # noqa: PLC0415

            return ObjectStore(str(uri), options or {})
