"""Writes the new log: two commits, a checkpoint, and the hint last. A failed run leaves nothing."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from indextables.errors import ObjectExistsError, ObjectNotFoundError, RepairError, StorageError
from indextables.log.open.checkpoint import Format, add_lines, write_checkpoint
from indextables.log.open.load import load
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import LAST_VERSION, REPAIR, CommitInfo, StateAction
from indextables.log.wire.codec import encode_action
from indextables.log.wire.files import WIDTH, LogFile, any_info, read_body
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.plan import RepairPlan
from indextables.ops.repair.state import difference

LAST: Final = 1
"""The newest version of a log that a repair has just written."""


def check_target(source: LogLocation, target: LogLocation) -> list[str]:
    """Returns what an earlier repair of this source left in the target when it was killed.

    RepairError if there is anything else.
    """
    found = [meta.key for meta in target.store.list(target.names.prefix)]
    if not found or _is_unfinished(source, target, found):
        return found
    raise RepairError(
        f"Target location already exists and is not empty: {target.uri}",
        hint="choose a new directory; a repair never overwrites a log",
        target=target.uri,
    )


def _is_unfinished(source: LogLocation, target: LogLocation, found: Iterable[str]) -> bool:
    """Returns True for exactly what a repair of this source leaves when it is killed before its last step.

    The hint is that last step, and the first commit names the source. So whatever is removed here can be
    written again from the same source.
    """
    names = target.names
    first = names.commit(0)
    parts = [names.parse(meta) for meta in target.store.list(names.prefix)]
    if first not in found or any(p is None or p.version > LAST for p in parts):
        return False
    origin = origin_of(target)
    return origin is not None and origin.get("source") == source.address


def origin_of(location: LogLocation) -> Mapping[str, object] | None:
    """Returns what the first commit of a repaired log says of its source; None for every other log."""
    info = first_info(location)
    return None if info is None else info.parameters


def first_info(location: LogLocation) -> CommitInfo | None:
    """Returns the last line of the first commit of a repaired log; None for every other log."""
    try:
        body = read_body(location.store, LogFile("commit", 0, WIDTH, location.names.commit(0)))
    except ObjectNotFoundError:
        return None
    info = any_info(body)
    return info if info is not None and info.operation == REPAIR else None


def write_log(plan: RepairPlan, snapshot: Snapshot, target: LogLocation, form: Format) -> None:
    """Writes the new log and compares it, read back, with the plan before its hint is set.

    `form` is the form of its checkpoint.
    """
    ids = uuid.uuid4().hex, uuid.uuid4().hex
    now = max(time.time_ns() // 1_000_000, (snapshot.timestamp_ms or 0) + 1)
    try:
        _put(target, 0, _first(plan, snapshot, target, ids[0], now))
        _put(target, LAST, _second(plan, snapshot, ids, now + 1))
        written = load(target.store, target.names)[0]
        _verify(snapshot, written)
        write_checkpoint(target.store, target.names, written, keep_removes_after=0, form=form)
    except BaseException:
        remove(target, ids[0])
        raise


def remove(target: LogLocation, commit_id: str) -> None:
    """Deletes what this run wrote, the first commit last: until then it tells whose files these are."""
    first = target.names.commit(0)
    try:
        keys = sorted((meta.key for meta in target.store.list(target.names.prefix)), reverse=True)
        if first in keys and not _is_mine(target, first, commit_id):
            return
        for key in keys:
            target.store.delete(key)
    except StorageError:
        return  # the first failure matters more; the next run removes the leftovers


def _is_mine(target: LogLocation, key: str, commit_id: str) -> bool:
    info = any_info(read_body(target.store, LogFile("commit", 0, WIDTH, key)))
    return info is not None and info.commit_id == commit_id


def _put(target: LogLocation, version: int, data: bytes) -> None:
    key = target.names.commit(version)
    try:
        target.store.put_if_absent(key, data)
    except ObjectExistsError:
        # a store that lost the answer and tried again finds what it stored itself
        if target.store.get(key) != data:
            raise RepairError(
                f"another repair writes to {target.uri} at the same time",
                hint="choose another directory",
                target=target.uri,
            ) from None


def _first(
    plan: RepairPlan, snapshot: Snapshot, target: LogLocation, commit_id: str, now: int
) -> bytes:
    actions: tuple[StateAction, ...] = (
        snapshot.protocol,
        snapshot.metadata,
        *snapshot.txns.values(),
        *snapshot.unknown,
    )
    lines = [encode_action(action, seq=0, schema=snapshot.schema) for action in actions]
    parameters = {
        "source": plan.source_address,
        "target": target.address,
        "sourceVersion": plan.version,
        "sourceCommitId": snapshot.commit_id,
        "sourceFingerprint": plan.fingerprint,
        LAST_VERSION: LAST,
    }
    info = CommitInfo(REPAIR, now, commit_id, parameters=parameters, num_files=0)
    return _sealed(lines, info, snapshot)


def _second(plan: RepairPlan, snapshot: Snapshot, ids: tuple[str, str], now: int) -> bytes:
    metrics: dict[str, object] = {
        "numTotalSplits": plan.total_splits,
        "numMissingSplits": len(plan.missing),
        "numMismatchedSplits": len(plan.mismatched),
        "numTruncatedColumns": plan.truncated.columns,
        "truncationBytesSaved": plan.stats_bytes_saved,
    }
    info = CommitInfo(
        REPAIR,
        now,
        ids[1],
        parent=ids[0],
        metrics=metrics,
        read_version=0,
        num_files=snapshot.num_files,
    )
    return _sealed(list(add_lines(snapshot)), info, snapshot)


def _sealed(lines: list[bytes], info: CommitInfo, snapshot: Snapshot) -> bytes:
    body = b"".join(lines)
    info = replace(info, actions=len(lines), crc32=zlib.crc32(body))
    return body + encode_action(info, seq=0, schema=snapshot.schema)


def _verify(planned: Snapshot, written: Snapshot) -> None:
    about = difference(planned, written, ours=True)
    if about is not None or not planned.files().equals(written.files()):
        raise RepairError(
            f"the new log, read back, differs from the plan in {about or 'what it says of a split'}",
            hint="the store returned other bytes than were written to it; nothing is left in the target",
        )
