"""What a directory is if it is not one of our tables, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indextables.storage.base import LogStore, ObjectMeta


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


def foreign_format(store: LogStore) -> Foreign | None:
    """What lies at the store's root; None if nothing does."""
    for prefix, what, hint in _MARKS:
        found = next(iter(store.list(prefix)), None)
        if found is not None and (prefix != "metadata/" or _is_iceberg(store)):
            return Foreign(what, hint)
    if next(parquet_files(store), None) is not None:
        return Foreign(
            "a directory of plain Parquet files",
            "adopt it in place with indextables.convert(path)",
            True,
        )
    if next(iter(store.list("")), None) is not None:
        return Foreign("a directory with other files", "choose an empty or new directory")
    return None


def parquet_files(store: LogStore) -> Iterator[ObjectMeta]:
    """Parquet files that are not hidden: names starting with _ or . belong to whoever wrote them."""
    for meta in store.list(""):
        hidden = any(part[0] in "._" and "=" not in part for part in meta.key.split("/"))
        if not hidden and meta.key.lower().endswith(_PARQUET):
            yield meta


def _is_iceberg(store: LogStore) -> bool:
    return any(meta.key.endswith(".metadata.json") for meta in store.list("metadata/"))
