"""Whether the files a commit names are sure to be there: what a vacuum goes by, and what it must not meet.

A vacuum deletes files that were written for an older version than its mark, and files the log says were
removed. So nothing of that kind becomes part of the table unless it is already, or a version since the mark
has it. Every commit passes here, whatever verb made it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CommitConflictError
from indextables.log.commit.intent import CommitPlan, Maintain
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Add

_WRITTEN_BY_US: Final = re.compile(r"data/(\d+)-[0-9a-f-]{36}/")


def written_for(key: str) -> int | None:
    """Returns the version the writer of this file had read, by the file's name.

    None for the files of others.
    """
    found = _WRITTEN_BY_US.match(key)
    return None if found is None else int(found[1])


def check_kept(
    plan: CommitPlan, began: int, base: Snapshot, kept_since: Callable[[int], frozenset[str]]
) -> None:
    """CommitConflictError if a vacuum may have deleted what this plan stands on, or a file it adds.

    `began` is the version that was the newest when the write began: plans for newer ones use its files, too.
    """
    lowest = base.min_read_version
    if isinstance(plan.verb, Maintain):
        return  # a vacuum's own mark names no file
    if began < lowest:
        raise CommitConflictError(
            f"this write read version {began}, but a vacuum has removed files that only versions "
            f"below {lowest} need",
            hint="start again from the current version",
            read_version=began,
            min_read_version=lowest,
        )
    if doubtful := _doubtful(plan, base):
        lost = doubtful - kept_since(lowest)
        if lost:
            raise CommitConflictError(
                f"this write names {min(lost)!r}, which a vacuum may have deleted: no version from "
                f"{lowest} on has the file",
                hint="start again from the current version",
                files=tuple(sorted(lost)),
                min_read_version=lowest,
            )


def _doubtful(plan: CommitPlan, base: Snapshot) -> frozenset[str]:
    """Returns files this plan adds that are not in the table now, and that a vacuum may delete as they are."""
    keys = {action.path for action in plan.all_actions() if isinstance(action, Add)}
    lowest = base.min_read_version
    found = {key for key in keys if _is_older(key, lowest)} if lowest else set()
    if base.tombstones.num_rows and keys:
        removed = pc.is_in(base.tombstones.column("key"), pa.array(sorted(keys), pa.string()))
        found.update(base.tombstones.column("key").filter(removed).to_pylist())
    if found:
        found -= base.keys_among(found)
    return frozenset(found)


def _is_older(key: str, version: int) -> bool:
    written = written_for(key)
    return written is not None and written < version
