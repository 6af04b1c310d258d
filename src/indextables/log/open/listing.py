"""What a store shows of a log, and what it does not show but has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import orjson

from indextables.errors import (
    IndexTablesError,
    LogCorruptedError,
    ObjectNotFoundError,
    ReadOnlyStoreError,
)
from indextables.log.wire.names import WIDTH, WIDTHS, LogFile, LogNames
from indextables.storage.base import LogStore

_logger: Final = logging.getLogger(__name__)
_BY_NAME: Final = 2
"""Up to so many names are asked for one by one; for more, one listing is quicker."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a log; `complete` unless it was listed from some version on."""

    names: LogNames
    commits: Mapping[int, tuple[LogFile, ...]]
    checkpoints: tuple[LogFile, ...]
    """Newest first."""
    parts: tuple[LogFile, ...]
    complete: bool

    @classmethod
    def of(cls, names: LogNames, files: Iterable[LogFile], *, complete: bool) -> Listing:
        """The files sorted into what they are."""
        commits: dict[int, tuple[LogFile, ...]] = {}
        checkpoints, parts = [], []
        for file in files:
            match file.kind:
                case "commit":
                    commits[file.version] = (*commits.get(file.version, ()), file)
                case "checkpoint":
                    checkpoints.append(file)
                case "part":
                    parts.append(file)
        newest_first = sorted(checkpoints, key=lambda file: (file.version, file.width), reverse=True)
        return cls(names, commits, tuple(newest_first), tuple(parts), complete)

    @property
    def newest(self) -> int:
        """The highest version that a commit or a checkpoint names; -1 for an empty log."""
        return max([*self.commits, *(file.version for file in self.checkpoints)], default=-1)

    @property
    def widths(self) -> frozenset[int]:
        """The numbers of digits in use."""
        commits = (file.width for files in self.commits.values() for file in files)
        return frozenset([*commits, *(file.width for file in self.checkpoints)])

    @property
    def width(self) -> int:
        """The digits of the lowest version: how this log spells its names."""
        lowest = min(self.commits, default=None)
        if lowest is not None:
            return self.commits[lowest][0].width
        return self.checkpoints[-1].width if self.checkpoints else WIDTH


def check_one_width(widths: frozenset[int]) -> None:
    """Raises for a log in two spellings: two writers could each create 'the' next version."""
    if len(widths) > 1:
        raise ReadOnlyStoreError(
            f"the log mixes names of {' and '.join(map(str, sorted(widths)))} digits, so it can be read "
            "but not written",
            hint="run REPAIR INDEXFILES TRANSACTION LOG to get a log in one spelling",
            widths=widths,
        )


def list_log(store: LogStore, names: LogNames) -> Listing:
    """Every file of the log."""
    return Listing.of(names, names.parse_all(store.list(names.prefix)), complete=True)


def list_from(store: LogStore, names: LogNames, version: int, width: int, *, unread: int) -> Listing:
    """The files of this version and of later ones; every file if it has a version in another width too.

    Versions from `unread` on, and the one after the newest, are looked for in the other width.
    """
    found = store.list(names.prefix, start_after=names.before(version, width))
    files = [file for file in names.parse_all(found) if file.version >= version]
    listing = Listing.of(names, files, complete=False)
    # 20 digits sort before 18: a version in the other width is not where this listing looks
    if not files or _has_twins(store, names, range(unread, listing.newest + 2), width):
        return list_log(store, names)
    return listing


def _has_twins(store: LogStore, names: LogNames, versions: range, width: int) -> bool:
    """True if one of these versions is there in another width; no more is listed than they would take."""
    (other,) = (known for known in WIDTHS if known != width)
    if len(versions) <= _BY_NAME:
        return any(_is_there(store, names.commit(version, other)) for version in versions)
    first, end = names.before(versions.start, other), names.before(versions.stop, other)
    found = takewhile(lambda meta: meta.key < end, store.list(names.prefix, start_after=first))
    return any(file.width == other and file.kind == "commit" for file in names.parse_all(found))


def _is_there(store: LogStore, key: str) -> bool:
    try:
        store.head(key)
    except ObjectNotFoundError:
        return False
    return True


def read_hint(store: LogStore, names: LogNames) -> int | None:
    """The version `_last_checkpoint` names; None if it is missing or says nothing."""
    try:
        hint: Any = orjson.loads(store.get(names.hint))
    except ObjectNotFoundError:
        return None
    except orjson.JSONDecodeError:
        hint = None
    version = hint.get("version") if isinstance(hint, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 10**18:
        _logger.warning("%s is garbled; the log is listed instead", names.hint)
        return None
    return version


def find_commit(store: LogStore, listing: Listing, version: int) -> LogFile:
    """The commit of a version; one that the listing lacks is asked for by name before it is an error."""
    listed = listing.commits.get(version, ())
    if len(listed) == 1:
        return listed[0]
    if not listed:
        listed = tuple(_fetch(store, listing.names, version))
    if len(listed) == 2 and store.get(listed[0].key) != store.get(listed[1].key):
        first, second = (file.name for file in listed)
        raise LogCorruptedError(
            f"version {version} exists twice, as {first} and as {second}, and they differ",
            hint="find out which writer was wrong; REPAIR cannot decide that",
            file=second,
            line=1,
        )
    if not listed:
        name = listing.names.commit(version, listing.width).rpartition("/")[2]
        raise LogCorruptedError(
            f"{name} is missing: version {version} is not in the log, later versions are",
            hint="restore the file, or run REPAIR INDEXFILES TRANSACTION LOG to see what can be saved",
            file=name,
            line=0,
            version=version,
        )
    return listed[0]


def is_missing(error: IndexTablesError) -> bool:
    """True if what is wrong is a file that is not there, not one that is damaged."""
    return isinstance(error, LogCorruptedError) and error.facts.get("line") == 0


def _fetch(store: LogStore, names: LogNames, version: int) -> Iterable[LogFile]:
    for width in WIDTHS:
        try:
            meta = store.head(names.commit(version, width))
        except ObjectNotFoundError:
            continue
        yield LogFile("commit", version, width, meta.key, meta.size, meta.modified_ms)
