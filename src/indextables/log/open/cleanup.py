"""Deletes old files of the log, oldest first, but none that a kept version needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from indextables.errors import LogCorruptedError, ObjectNotFoundError
from indextables.log.open.age import Age
from indextables.log.open.checkpoint import parts_of, read_checkpoint
from indextables.log.open.load import Listing, list_log
from indextables.log.wire.files import LogFile, LogNames
from indextables.storage.base import LogStore, held

_logger: Final = logging.getLogger(__name__)


def plan_cleanup(store: LogStore, listing: Listing, age: Age) -> list[LogFile]:
    """Returns the files that no version within the retention needs, in the order in which to delete them.

    Two intact checkpoints, and every commit from the older one on, are always kept.
    """
    needed = age.version(store, listing)
    if needed is None:
        return []  # everything is younger, or nobody can tell how old it is
    intact = list(_intact(store, listing, needed))
    if len(intact) < 2 or intact[-1] > needed:
        return []
    commits = [file for files in listing.commits.values() for file in files]
    old = [file for file in (*commits, *listing.checkpoints) if file.version < intact[-1]]
    unused = _unused_parts(store, listing, keep_from=intact[-1])
    return [*sorted(old, key=lambda file: (file.version, file.kind)), *unused]


def _intact(store: LogStore, listing: Listing, needed: int) -> Iterator[int]:
    """Yields versions of intact checkpoints, newest first, down to the oldest one that must be kept."""
    found = 0
    for file in listing.checkpoints:
        try:
            read_checkpoint(store, file)
        except LogCorruptedError:
            continue
        found += 1
        yield file.version
        if found >= 2 and file.version <= needed:
            return


def _unused_parts(store: LogStore, listing: Listing, keep_from: int) -> list[LogFile]:
    """Returns old parts that no kept checkpoint names; a young one may belong to a checkpoint in the making."""
    old = [part for part in listing.parts if part.version < keep_from]
    if not old:
        return []
    kept = (file for file in listing.checkpoints if file.version >= keep_from)
    used = {key for file in kept for key in parts_of(store, file)}
    return [part for part in old if part.key not in used]


def cleanup(store: LogStore, names: LogNames, age: Age) -> list[str]:
    """Deletes the files that `plan_cleanup` names; the log stays usable if this fails half-way.

    What is deleted is of the log that was listed, even if a repaired one takes its place meanwhile.
    """
    with held(store, names.directory) as here:
        listing = list_log(here, names)
        try:
            doomed = plan_cleanup(here, listing, age)
        except ObjectNotFoundError:
            return []  # another cleanup is deleting the files that were listed
        for file in doomed:
            here.delete(file.key)
    if doomed:
        _logger.info("removed %d files of the log up to version %d", len(doomed), doomed[-1].version)
    return [file.key for file in doomed]
