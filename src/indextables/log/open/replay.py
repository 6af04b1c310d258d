"""Replays a log into a snapshot: the few small actions one by one, adds and removes all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import assert_never

from indextables.errors import LogReplacedError
from indextables.log.state.parse import Body, no_tombstones, parse_adds, parse_removes
from indextables.log.state.parts import PART_ACTION
from indextables.log.state.segments import Shape
from indextables.log.state.snapshot import Files, Snapshot, Typed, reconcile
from indextables.log.wire.actions import (
    CommitInfo,
    Metadata,
    Protocol,
    Txn,
    Unknown,
    Vacuum,
    check_readable,
    needs_trailer,
)
from indextables.log.wire.codec import FILE_ACTIONS, decode_action
from indextables.log.wire.files import LogBody, Torn, Whole
from indextables.log.wire.lines import ADD, Lines, find_lines


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the log says of a table besides its files, as far as it was read."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: Mapping[str, Txn] = field(default_factory=dict)
    min_read_version: int = 0
    unknown: tuple[Unknown, ...] = ()
    info: CommitInfo = field(default_factory=CommitInfo)

    def after(self, action: Protocol | Metadata | Vacuum | CommitInfo) -> _Facts:
        """Returns what is known after one more action."""
        match action:
            case Protocol():
                check_readable(action)
                return replace(self, protocol=action)
            case Metadata():
                return replace(self, metadata=action)
            case Vacuum():
                lowest = max(self.min_read_version, action.min_read_version)
                return replace(self, min_read_version=lowest)
            case CommitInfo():
                return replace(self, info=action)
            case _:
                assert_never(action)


def replay(
    base: Snapshot | None, bodies: Sequence[LogBody], table_uri: str, files: Files | None = None
) -> Snapshot:
    """Returns the snapshot after the actions of these files, in this order, on top of `base` or of `files`."""
    facts = facts_of(base)
    parsed: list[tuple[Shape | None, Body]] = []
    shape: Shape | None = None
    for ordinal, body in enumerate(bodies, start=1):
        before = facts
        facts, lines = read_body(facts, body, ordinal)
        _check_parent(before.info, facts.info, body, ordinal)
        if facts.metadata is not None and (shape is None or facts.metadata is not before.metadata):
            shape = Shape.of(facts.metadata)
        parsed.append((shape, lines))
    adds = list(_typed(parsed, table_uri))
    removes = parse_removes([body for _, body in parsed], table_uri)
    state = base.state if base else files or Files((), no_tombstones())
    return _snapshot(facts, bodies[-1], reconcile(state, adds, removes), table_uri)


def shape_in(lines: Lines) -> Shape:
    """Returns the shape that follows from the metaData in these lines."""
    for index, name, value, raw in lines.others():
        if name == "metaData":
            metadata = decode_action(name, value, raw, lines.position(index))
            assert isinstance(metadata, Metadata)
            return Shape.of(metadata)
    raise lines.position(0).corrupted("there is no metaData, so the schema is not known")


def facts_of(base: Snapshot | None) -> _Facts:
    """Returns what a snapshot knows of the table besides its files."""
    if base is None:
        return _Facts()
    info = CommitInfo(commit_id=base.commit_id, timestamp=base.timestamp_ms)
    return _Facts(base.protocol, base.metadata, base.txns, base.min_read_version, base.unknown, info)


def read_body(facts: _Facts, body: LogBody, ordinal: int) -> tuple[_Facts, Body]:
    """Returns what is known after one file, and its lines, from which adds and removes are parsed."""
    if isinstance(body.verdict, Torn):
        raise body.position(body.verdict.line).corrupted(body.verdict.reason)
    whole = isinstance(body.verdict, Whole)
    lines = find_lines(body.file.name, body.data)
    trailer = _trailer(body, lines)
    facts = replace(facts, info=trailer or CommitInfo())
    unknown: list[Unknown] = []
    txns: dict[str, Txn] = {}
    strays: list[tuple[int, str, object]] = []
    for index, name, value, raw in lines.others(but_last=trailer is not None):
        if name == PART_ACTION and body.file.kind == "checkpoint":
            continue  # its rows are among the files that the replay starts from
        if name in FILE_ACTIONS:
            strays.append((index, name, value))
            continue
        action = decode_action(name, value, raw, lines.position(index))
        if isinstance(action, Unknown):
            unknown.append(action)
        elif isinstance(action, Txn):
            txns[action.app_id] = (
                action  # collected here, as copying all of them for each would take for ever
            )
        elif isinstance(action, CommitInfo) and action.crc32 is not None and not whole:
            raise lines.position(index).corrupted("there are lines after the one that ends a commit")
        else:
            facts = facts.after(action)
    if not whole and needs_trailer(facts.protocol):
        raise lines.position(len(lines.ends)).corrupted(
            "the file is cut off: every file of this log ends in its checksum, but this one does not"
        )
    if unknown or txns:
        all_txns = {**facts.txns, **txns}
        facts = replace(facts, unknown=(*facts.unknown, *unknown), txns=all_txns)
    committed_ms = facts.info.timestamp if body.file.kind == "commit" else None
    return facts, Body(lines, body.file.version, ordinal, whole, tuple(strays), committed_ms)


def _trailer(body: LogBody, lines: Lines) -> CommitInfo | None:
    """Returns the trailer if it is among the lines; a repair also replays pieces that end before it."""
    if not isinstance(body.verdict, Whole) or not len(lines.ends):
        return None
    is_last = lines.text(-1).startswith(b'{"commitInfo":')
    return body.verdict.info if is_last else None


def _check_parent(before: CommitInfo, after: CommitInfo, body: LogBody, ordinal: int) -> None:
    """Raises LogReplacedError for a commit whose parent is not the version before it: it is of another log.

    A writer names no parent if the version before has no id, so a parent is wrong then, too. Only the
    version from which a replay starts may have lost its id, in another writer's checkpoint.
    """
    if body.file.kind != "commit" or after.parent is None or body.file.version == 0:
        return
    if before.commit_id is None and ordinal == 1:
        return
    if before.commit_id != after.parent:
        raise LogReplacedError(
            f"{body.file.name} follows commit {after.parent}, but the version before it is "
            f"commit {before.commit_id}",
            hint="the log was replaced, for example by a repair; open the table again",
            version=body.file.version,
        )


def _typed(parsed: Sequence[tuple[Shape | None, Body]], table_uri: str) -> Iterator[Typed]:
    """Yields the adds of all files; consecutive files with the same schema are parsed together."""
    for shape, run in groupby(parsed, key=lambda item: item[0]):
        bodies = [body for _, body in run]
        if shape is not None:
            yield Typed(parse_adds(bodies, shape, table_uri), shape)
            continue
        for body in bodies:
            if len(adds := body.lines.of(ADD)):
                raise body.lines.position(int(adds[0])).corrupted("an add before any metaData")


def _snapshot(facts: _Facts, last: LogBody, state: Files, table_uri: str) -> Snapshot:
    if facts.metadata is None:
        raise last.position(1).corrupted("no metaData up to this version, so the schema is not known")
    snapshot = Snapshot(
        version=last.file.version,
        timestamp_ms=facts.info.timestamp,
        commit_id=facts.info.commit_id,
        protocol=facts.protocol or Protocol(1, 1, writer_features=()),
        metadata=facts.metadata,
        txns=facts.txns,
        min_read_version=facts.min_read_version,
        unknown=facts.unknown,
        state=state,
        table_uri=table_uri,
    )
    if facts.info.num_files not in (None, snapshot.num_files):
        raise last.position(1).corrupted(
            f"the writer of this version counted {facts.info.num_files} files, "
            f"but the log has {snapshot.num_files}"
        )
    return snapshot
