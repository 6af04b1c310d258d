"""Where a log is: the store of its table and the name of its directory in there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from indextables.errors import RepairError, redacted
from indextables.log.wire.files import LogNames
from indextables.storage import LogStore, open_store
from indextables.storage.location import Location, root_of

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)/(.+)", re.DOTALL)

Opener: TypeAlias = Callable[[str], LogStore]
"""Returns the store of the table at a URI; an engine may bring its own, with its own credentials."""


@dataclass(frozen=True, slots=True)
class LogLocation:
    """A log directory; relative paths in its actions start at the root of `store`."""

    uri: str
    """As the user wrote it."""
    location: Location
    store: LogStore
    names: LogNames

    @property
    def local_path(self) -> Path | None:
        """Returns the directory if it is on this machine, else None."""
        return Path(self.location.path) if self.location.family == "file" else None

    @property
    def address(self) -> str:
        """Returns the location, spelled the same however the user wrote it."""
        here = self.local_path
        return redacted(self.uri.rstrip("/")) if here is None else str(here)

    def sibling(self, name: str) -> LogLocation:
        """Returns another log directory of the same table."""
        parent = self.location.path.rpartition("/")[0]
        path = f"{parent}/{name}" if "/" in self.location.path else name
        location = Location(self.location.family, self.location.authority, path)
        uri = f"{self.uri.rstrip('/').rpartition('/')[0]}/{name}"
        return LogLocation(uri, location, self.store, LogNames(name))


def opener_with(storage_options: Mapping[str, object] | None) -> Opener:
    """Returns an opener of this library's own stores, with these credentials and endpoints."""
    return partial(open_store, options=storage_options)


def location_of(uri: str | Path, opener: Opener) -> LogLocation:
    """Returns the location of a log directory; RepairError if the text cannot name one."""
    text = str(uri.absolute()) if isinstance(uri, Path) else uri
    if not isinstance(text, str) or not callable(opener):
        raise RepairError(
            f"{uri!r:.60} does not name the directory of a transaction log, or {opener!r:.60} opens no store",
            hint="pass a path or a URI, and as opener a function from a URI to a store",
        )
    location = root_of(text) or _of_another_scheme(text)
    if location is None or not location.path.strip("/"):
        raise RepairError(
            f"{text!r} does not name the directory of a transaction log",
            hint="name the log, not the table: 's3://bucket/table/_transaction_log'",
            uri=text,
        )
    if location.family == "file":
        parent, name = os.path.split(location.path)
    else:
        parent, name = text.rstrip("/").rpartition("/")[0], location.path.rpartition("/")[2]
    store = opener(parent)
    if not hasattr(store, "put_if_absent"):
        raise RepairError(
            f"the opener made a {type(store).__name__} of {parent!r}", hint="it has to return a store"
        )
    return LogLocation(text, location, store, LogNames(name))


def _of_another_scheme(uri: str) -> Location | None:
    """Returns a location that only an engine can open, such as hdfs://host/table/_transaction_log."""
    found = _URI.fullmatch(uri)
    return found and Location(found[1].lower(), found[2], found[3].strip("/"))


def check_apart(source: LogLocation, target: LogLocation) -> None:
    """Raises RepairError if writing to the target could touch the source: they are the same, or one contains the other."""
    one, two = _real(source.location), _real(target.location)
    if one.startswith(two) or two.startswith(one):
        raise RepairError(
            f"the target {target.uri!r} and the source {source.uri!r} overlap",
            hint="repair never writes into its source: choose a new directory beside it",
            source=source.uri,
            target=target.uri,
        )


def _real(location: Location) -> str:
    # two spellings of one directory, by a link, are one directory
    path = os.path.realpath(location.path) if location.family == "file" else location.path
    return f"{location.family}://{location.authority}/{path.rstrip('/')}/"
