"""The fence: the last version of a log that is being replaced. No writer gets past it.

A writer that has planned on the version before finds its number taken, and one that reads the fence finds a
protocol it must not write under. So what a log holds when its fence is up is all it will ever hold.
"""

from __future__ import annotations

import uuid
import zlib
from dataclasses import replace
from typing import Final

from indextables.errors import LogCorruptedError, ObjectExistsError, ObjectNotFoundError
from indextables.log.open.load import Listing, list_log, load
from indextables.log.wire.actions import BEING_REPLACED, CommitInfo
from indextables.log.wire.codec import encode_action
from indextables.log.wire.files import LogFile, read_info
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.new_log import LAST, first_info

_OPERATION: Final = "REPLACE LOG"


def put_up(location: LogLocation, version: int, parent: str | None, repaired: LogLocation) -> bool:
    """Returns True if the fence is this version of the log; False if a commit is.

    `parent` is the commit before it, `repaired` the log that takes its place, or that it goes back from.
    """
    state = load(repaired.store, repaired.names, LAST)[0]
    features = (*state.protocol.writer_features, BEING_REPLACED)
    protocol = replace(state.protocol, min_writer=2, writer_features=features)
    line = encode_action(protocol, seq=version, schema=state.schema)
    info = CommitInfo(
        _OPERATION,
        timestamp=(state.timestamp_ms or 0) + 1,
        commit_id=uuid.uuid4().hex,
        parent=parent,
        parameters={"repair": repair_id(repaired)},
        actions=1,
        crc32=zlib.crc32(line),
    )
    data = line + encode_action(info, seq=version, schema=state.schema)
    listing = list_log(location.store, location.names)
    file = LogFile("commit", version, listing.width, location.names.commit(version, listing.width))
    try:
        location.store.put_if_absent(file.key, data)
    except ObjectExistsError:
        return fence_of(location) is not None
    return True


def take_down(location: LogLocation) -> bool:
    """Returns True if there was a fence; the log can be written again."""
    newest = _newest(list_log(location.store, location.names))
    if newest is None or _info(location, newest) is None:
        return False
    location.store.delete(newest.key)
    return True


def fence_of(location: LogLocation) -> CommitInfo | None:
    """Returns what the fence of this log says; None if it has none."""
    newest = _newest(list_log(location.store, location.names))
    return None if newest is None else _info(location, newest)


def without_fence(location: LogLocation) -> Listing:
    """Returns the files of the log, as they were before it got a fence."""
    listing = list_log(location.store, location.names)
    newest = _newest(listing)
    if newest is None or _info(location, newest) is None:
        return listing
    commits = {v: files for v, files in listing.commits.items() if v != newest.version}
    return replace(listing, commits=commits)


def repair_id(repaired: LogLocation) -> str | None:
    """Returns the commit id of the first version of a repaired log: no other repair has it."""
    info = first_info(repaired)
    return None if info is None else info.commit_id


def _newest(listing: Listing) -> LogFile | None:
    return listing.commits[max(listing.commits)][0] if listing.commits else None


def _info(location: LogLocation, file: LogFile) -> CommitInfo | None:
    try:
        info = read_info(location.store, file)
    except (LogCorruptedError, ObjectNotFoundError):
        return None
    return info if info is not None and info.operation == _OPERATION else None
