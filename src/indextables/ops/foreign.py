"""What a directory is if it is not one of our tables, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from indextables.storage.base import LogStore, ObjectMeta
from indextables.storage.local import LocalStore


@dataclass(frozen=True, slots=True)
class Foreign:
    """What was found, in words, and the advice that goes with it."""

    what: str
    hint: str
    convertible: bool = False


# Directory that gives a format away, its name, and how to get the plain files out of it.
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
_PARQUET: Final = (".parquet", ".parq", ".pq")
_FIRST: Final = 10_000
"""So many files are looked at: a wrong path may name the root of a whole disk."""


def foreign_format(store: LogStore) -> Foreign | None:
    """What lies at the store's root; None if nothing does."""
    if isinstance(store, LocalStore) and Path(store.uri).is_file():
        return Foreign("a file", "name a directory that is empty or new")
    for prefix, what, hint in _MARKS:
        found = next(iter(store.list(prefix)), None)
        if found is not None and (prefix != "metadata/" or _is_iceberg(store)):
            return Foreign(what, hint)
    first = list(islice(store.list(""), _FIRST))
    if any(map(_is_commit, first)):
        return Foreign("the transaction log of a table", "name the directory above it")
    if any(map(_is_parquet, first)):
        return Foreign(
            "a directory of plain Parquet files",
            "adopt it in place with indextables.convert(path)",
            True,
        )
    if first:
        return Foreign("a directory with other files", "choose an empty or new directory")
    return None


def parquet_files(store: LogStore) -> Iterator[ObjectMeta]:
    """Parquet files that are not hidden: names starting with _ or . belong to whoever wrote them."""
    return filter(_is_parquet, store.list(""))


def _is_parquet(meta: ObjectMeta) -> bool:
    hidden = any(part[0] in "._" and "=" not in part for part in meta.key.split("/"))
    return not hidden and meta.key.lower().endswith(_PARQUET)


def _is_commit(meta: ObjectMeta) -> bool:
    return re.fullmatch(r"\d{18}(\d\d)?\.json", meta.key) is not None


def _is_iceberg(store: LogStore) -> bool:
    return any(meta.key.endswith(".metadata.json") for meta in store.list("metadata/"))
