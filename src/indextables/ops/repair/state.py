"""Do two intact sources tell the same story of the table? If not, the first thing they differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import LogCorruptedError
from indextables.log.open.checkpoint import read_checkpoint
from indextables.log.open.load import read_bodies
from indextables.log.open.replay import replay
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.files import LogBody, Unverified, Whole, read_body
from indextables.log.wire.lines import LinePosition
from indextables.ops.repair.evidence import FileEvidence
from indextables.ops.repair.findings import Finding, disagreement
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.route import Route
from indextables.ops.repair.shorten import Shortener
from indextables.ops.repair.unpack import AT_ONCE, read_chunks, without_parts

_OF_EVERY_WRITER: Final = ("size", "partition_values", "stats")
_OF_OURS: Final = ("seq", "file_group", "kind", "block", "schema_id")
_FEW: Final = 3


def difference(left: Snapshot, right: Snapshot, *, ours: bool) -> str | None:
    """Returns what the two states disagree about, in words; None if nothing.

    What only one of them knows is no disagreement: other writers leave statistics out of checkpoints, and
    `seq` (`ours`: both are files of this library, so these fields are there too).
    """
    for name in ("schema", "partition_columns", "properties"):
        if getattr(left, name) != getattr(right, name):
            return f"the table's {name.replace('_', ' ')}"
    if ours and (left.protocol, dict(left.txns)) != (right.protocol, dict(right.txns)):
        return "the protocol or the transactions of applications"
    return _files_difference(left, right, (*_OF_EVERY_WRITER, *(_OF_OURS if ours else ())))


def _files_difference(left: Snapshot, right: Snapshot, columns: tuple[str, ...]) -> str | None:
    keys = [snapshot.column("key").combine_chunks() for snapshot in (left, right)]
    for one, two in (keys, keys[::-1]):
        alone = one.filter(pc.invert(pc.is_in(one, two)))
        if len(alone):
            names = ", ".join(map(repr, alone.slice(0, _FEW).to_pylist()))
            return (
                f"{len(alone)} splits that only one of them has ({names}{', …' * (len(alone) > _FEW)})"
            )
    at = [pc.sort_indices(column) for column in keys]
    for name in columns:
        one, two = (
            snapshot.column(name).combine_chunks().take(rows)
            for snapshot, rows in zip((left, right), at, strict=True)
        )
        for row in _rows_that_differ(one, two):
            return f"the {name.replace('_', ' ')} of {keys[0].take(at[0])[row].as_py()!r}"
    return None


def _rows_that_differ(one: Any, two: Any) -> Iterator[int]:
    """Yields rows with two different values; a null says nothing, and neither does a list."""
    if pa.types.is_struct(one.type):
        for part in range(one.type.num_fields):
            yield from _rows_that_differ(pc.struct_field(one, [part]), pc.struct_field(two, [part]))
    elif not pa.types.is_list(one.type):
        unequal = pc.fill_null(pc.not_equal(one, two), fill_value=False)
        yield from pc.indices_nonzero(unequal).to_pylist()


# From a route to the state of the table, in bounded memory: some commits at a time, long bounds dropped at once.

_LARGE: Final = 2 * AT_ONCE
_MANY: Final = 256


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The newest state, and checkpoints on the way that turned out not to be intact."""

    snapshot: Snapshot
    findings: tuple[Finding, ...]


def rebuild(location: LogLocation, route: Route, shortener: Shortener) -> Rebuilt:
    """Returns the state at the end of the route; RepairError where a checkpoint on the way tells another story.

    LogCorruptedError names a file of the route that is not what it seemed.
    """
    snapshot = _checkpoint(location, route.base, shortener) if route.base else None
    findings: list[Finding] = []
    stops = {found.file.version for found in route.checkpoints}
    for batch in _batches(route.commits, stops):
        snapshot = _replayed(location, snapshot, batch, shortener)
        for checkpoint in route.checkpoints:
            if checkpoint.file.version == snapshot.version:
                findings.extend(_check(location, checkpoint, snapshot, shortener))
    assert snapshot is not None, "a route has a base or a first commit"
    return Rebuilt(snapshot, tuple(findings))


def finding_of(error: LogCorruptedError) -> Finding:
    """Returns the same as a finding; errors of the log name their file and line."""
    location = f"{error.facts['file']}, line {error.facts['line']}: "
    return Finding(error.facts["file"], error.facts["line"], error.message.removeprefix(location))


def _batches(commits: Sequence[FileEvidence], stops: set[int]) -> Iterator[list[FileEvidence]]:
    """Commits to be read together: not too many, not too large, none beyond a checkpoint."""
    batch: list[FileEvidence] = []
    size = 0
    for commit in commits:
        if batch and (size + commit.text_bytes > _LARGE or len(batch) >= _MANY):
            yield batch
            batch, size = [], 0
        batch.append(commit)
        size += commit.text_bytes
        if commit.file.version in stops:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _replayed(
    location: LogLocation, base: Snapshot | None, batch: Sequence[FileEvidence], shortener: Shortener
) -> Snapshot:
    if len(batch) == 1 and batch[0].text_bytes > _LARGE:
        return _in_pieces(location, base, batch[0], shortener)
    bodies = read_bodies(location.store, [commit.file for commit in batch])
    try:
        return shortener.shortened(replay(base, bodies, location.store.uri))
    except LogCorruptedError:
        # The count of files is compared once per call: one by one, the first that does not fit is named.
        for body in bodies:
            base = replay(base, [body], location.store.uri)
        raise


def _in_pieces(
    location: LogLocation, base: Snapshot | None, found: FileEvidence, shortener: Shortener
) -> Snapshot:
    """Returns one large file, some lines at a time.

    Its checksum was verified, so each piece is what it was.
    """
    verdict = Whole(found.info) if isinstance(found.verdict, Whole) else Unverified()
    snapshot, lines = base, 0
    for chunk in read_chunks(location.store, found.file):
        if snapshot is None and b'"metaData"' not in chunk:
            # the schema comes later, and without it no add can be typed
            return shortener.shortened(
                replay(base, [read_body(location.store, found.file)], location.store.uri)
            )
        try:
            body = LogBody(found.file, chunk, verdict)
            snapshot = shortener.shortened(replay(snapshot, [body], location.store.uri))
        except LogCorruptedError as error:
            at = finding_of(error)
            raise LinePosition(at.file, at.line + lines).corrupted(at.reason) from error
        lines += chunk.count(b"\n")
    assert snapshot is not None, "a large file has a first piece"
    return snapshot


def _checkpoint(location: LogLocation, found: FileEvidence, shortener: Shortener) -> Snapshot:
    if found.text_bytes > _LARGE:
        return _in_pieces(location, None, found, shortener)
    try:
        return without_parts(location, read_checkpoint(location.store, found.file), shortener)
    except LogCorruptedError as error:
        at = finding_of(error)
        if at.file == found.file.name:
            raise
        raise LinePosition(found.file.name, 0).corrupted(f"{at.file}: {at.reason}") from error


def _check(
    location: LogLocation, found: FileEvidence, snapshot: Snapshot, shortener: Shortener
) -> Iterator[Finding]:
    try:
        stored = _checkpoint(location, found, shortener)
    except LogCorruptedError as error:
        yield finding_of(error)
        return
    ours = isinstance(found.verdict, Whole) and snapshot.commit_id is not None
    about = difference(snapshot, stored, ours=ours)
    if about is not None:
        raise disagreement(
            f"{found.file.name} and the commits up to version {snapshot.version} disagree about {about}",
            found.file.name,
        )
