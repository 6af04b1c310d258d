"""Replays a route in bounded memory and compares the state with checkpoints: two intact sources must agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

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
_OF_THIS_LIBRARY: Final = ("seq", "file_group", "kind", "block", "schema_id")
_FEW: Final = 3


def difference(left: Snapshot, right: Snapshot, *, ours: bool) -> str | None:
    """Returns what two states disagree about, in words; None if they agree.

    What only one of them knows is no disagreement, because other writers leave statistics out of
    checkpoints. `ours` says that this library wrote both, so that `seq` and the like are compared too.
    """
    for name in ("schema", "partition_columns", "properties"):
        if getattr(left, name) != getattr(right, name):
            return f"the table's {name.replace('_', ' ')}"
    if ours and (left.protocol, dict(left.txns)) != (right.protocol, dict(right.txns)):
        return "the protocol or the transactions of applications"
    return _files_difference(left, right, (*_OF_EVERY_WRITER, *(_OF_THIS_LIBRARY if ours else ())))


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


def _rows_that_differ(one: pa.Array, two: pa.Array) -> Iterator[int]:
    """Yields rows with two different values; NULL says nothing and lists are not compared."""
    if pa.types.is_struct(one.type):
        for at in range(one.type.num_fields):
            yield from _rows_that_differ(pc.struct_field(one, [at]), pc.struct_field(two, [at]))
    elif not pa.types.is_list(one.type):
        unequal = pc.fill_null(pc.not_equal(one, two), fill_value=False)
        yield from pc.indices_nonzero(unequal).to_pylist()


# The state at the end of a route, read some commits at a time and with long bounds dropped at once.

_LARGE: Final = 2 * AT_ONCE
_MANY: Final = 256


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The newest state, and checkpoints on the route that turned out to be damaged."""

    snapshot: Snapshot
    findings: tuple[Finding, ...]


def rebuild(location: LogLocation, route: Route, shortener: Shortener) -> Rebuilt:
    """Returns the state at the end of the route; RepairError if a checkpoint on it disagrees.

    LogCorruptedError names a file of the route that is not what it seemed to be.
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
    """Returns the error as a finding; errors of the log name their file and line."""
    location = f"{error.facts['file']}, line {error.facts['line']}: "
    return Finding(error.facts["file"], error.facts["line"], error.message.removeprefix(location))


def _batches(commits: Sequence[FileEvidence], stops: set[int]) -> Iterator[list[FileEvidence]]:
    """Yields commits to replay together: not too many, not too large, none beyond a checkpoint."""
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
        # Counts of files are compared once for each call. Replayed one by one, the first wrong commit is named.
        for body in bodies:
            base = replay(base, [body], location.store.uri)
        raise


def _in_pieces(
    location: LogLocation, base: Snapshot | None, found: FileEvidence, shortener: Shortener
) -> Snapshot:
    """Returns the state after one large file, replayed some lines at a time; its checksum was verified before."""
    verdict = Whole(found.info) if isinstance(found.verdict, Whole) else Unverified()
    snapshot, lines = base, 0
    for chunk in read_chunks(location.store, found.file):
        if snapshot is None and b'"metaData"' not in chunk:
            # the schema comes later in the file, and adds cannot be read without it
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
