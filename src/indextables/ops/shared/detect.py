"""Finds out what a directory is if it is not a table of this library, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from indextables.storage.base import LogStore, ObjectMeta, why_not_a_key
from indextables.storage.local import LocalStore
from indextables.storage.location import LOG_DIRECTORY


@dataclass(frozen=True, slots=True)
class Foreign:
    """What was found, in words, and what to do about it."""

    what: str
    hint: str
    convertible: bool = False
    is_table: bool = False


# A directory by which a format is recognised, the format's name, and what to do.
_MARKS: Final = (
    (
        "_delta_log/",
        "a Delta Lake table",
        "read it with deltalake or Spark and append the rows to a new table",
    ),
    (".hoodie/", "an Apache Hudi table", "read it with Spark and append the rows to a new table"),
    (
        "metadata/",
        "an Apache Iceberg table",
        "read it with pyiceberg or Spark and append the rows to a new table",
    ),
)
_TABLE_MARKS: Final = (LOG_DIRECTORY, "_delta_log", ".hoodie")
_PARQUET: Final = (".parquet", ".parq", ".pq")
_FIRST: Final = 10_000
"""The number of files looked at: a wrong path may name the root of a whole disk."""


def foreign_format(store: LogStore) -> Foreign | None:
    """Returns what lies at the store's root; None if nothing does."""
    # Path.is_file raises without permission; the listing below says that in words
    if isinstance(store, LocalStore) and os.path.isfile(store.uri):  # noqa: PTH113
        return Foreign("a file", "name a directory that is empty or new")
    for prefix, what, hint in _MARKS:
        found = next(iter(store.list(prefix)), None)
        if found is not None and (prefix != "metadata/" or _is_iceberg(store)):
            return Foreign(what, hint, is_table=True)
    first = list(islice(store.list(""), _FIRST))
    if any(map(_is_commit, first)):
        return Foreign("the transaction log of a table", "name the directory above it", is_table=True)
    if any(map(_is_parquet, first)):
        return Foreign(
            "a directory of plain Parquet files",
            "adopt it in place with indextables.convert(path)",
            True,
        )
    if first:
        return Foreign("a directory with other files", "choose an empty or new directory")
    return None


def table_around(store: LogStore) -> str | None:
    """Returns the table in whose `data/` this directory lies; None if there is none.

    Files in there may be ones that the table has removed.
    """
    if not isinstance(store, LocalStore):
        return None
    root = Path(store.uri)
    above = (str(path.parent) for path in (root, *root.parents) if path.name == "data")
    return next((path for path in above if os.path.isdir(f"{path}/{LOG_DIRECTORY}")), None)  # noqa: PTH112


def table_within(keys: Iterable[str]) -> str | None:
    """Returns a directory among these files that is a table of its own, in any format; None if there is none."""
    for key in keys:
        for mark in _TABLE_MARKS:
            found, slash, _ = f"/{key}".partition(f"/{mark}/")
            if slash and found:
                return found[1:]
    return None


def parquet_files(store: LogStore) -> Iterator[ObjectMeta]:
    """Yields the Parquet files that are not hidden; names that begin with _ or . belong to other programs."""
    return filter(_is_parquet, store.list(""))


def unnamable_files(store: LogStore) -> Iterator[tuple[str, str]]:
    """Yields Parquet files that a listing passes over, with the reason; their rows would be lost silently."""
    if not isinstance(store, LocalStore):
        return  # the listing of an object store fails at such a name
    seen: set[tuple[int, int]] = set()
    for here, directories, files in os.walk(store.uri, followlinks=True):
        status = os.stat(here)  # noqa: PTH116 - the walk is by text
        if (status.st_dev, status.st_ino) in seen:
            directories.clear()  # a link back to a directory seen before
            continue
        seen.add((status.st_dev, status.st_ino))
        for path in (Path(here, name) for name in files):
            key = path.relative_to(store.uri).as_posix()
            reason = why_not_a_key(key) or (None if path.exists() else "it is a link to nowhere")
            if reason and _has_rows(key):
                yield key, reason


def _is_parquet(meta: ObjectMeta) -> bool:
    return _has_rows(meta.key)


def _has_rows(key: str) -> bool:
    hidden = any(part[0] in "._" and "=" not in part for part in key.split("/"))
    return not hidden and key.lower().endswith(_PARQUET)


def _is_commit(meta: ObjectMeta) -> bool:
    return re.fullmatch(r"[0-9]{18}([0-9]{2})?\.json", meta.key) is not None


def _is_iceberg(store: LogStore) -> bool:
    return any(meta.key.endswith(".metadata.json") for meta in store.list("metadata/"))
