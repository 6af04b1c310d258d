"""What a log directory holds, file by file: each one is read, and none is believed by its name."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import orjson

from indextables.errors import LogCorruptedError, ObjectNotFoundError, StorageError
from indextables.log.open.load import Listing, list_log
from indextables.log.wire.actions import CommitInfo, last_version
from indextables.log.wire.files import (
    LogFile,
    Torn,
    Unverified,
    Verdict,
    Whole,
    last_info,
    mostly_blank,
)
from indextables.log.wire.lines import LinePosition, count_lines, loads, written_lines
from indextables.ops.repair.findings import Finding, disagreement
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.unpack import read_chunks
from indextables.storage.base import ObjectMeta

# One file of a log, judged by itself.


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """One commit or checkpoint: whether it is whole, and what its last line says."""

    file: LogFile
    verdict: Verdict
    info: CommitInfo
    text_bytes: int
    findings: tuple[Finding, ...] = ()

    @property
    def usable(self) -> bool:
        """Returns True if nothing is known against this file, whoever wrote it."""
        return not self.findings


# A checkpoint must be the state of the version in its name: a copy under another name is intact but wrong.


def with_true_names(
    checkpoints: tuple[FileEvidence, ...], commits: Mapping[int, tuple[FileEvidence, ...]]
) -> tuple[FileEvidence, ...]:
    """Returns the checkpoints, each with a finding if it is, or may be, the state of another version.

    Believing its name would lose every commit between the two versions.
    """
    versions = _versions_by_id(commits)
    ids = {(c.file.version, c.info.commit_id) for c in checkpoints}
    shared = Counter(commit_id for _, commit_id in ids)
    return tuple(
        replace(c, findings=(*c.findings, Finding(c.file.name, 0, reason)))
        if c.usable and (reason := _why_not(c, versions, shared, commits))
        else c
        for c in checkpoints
    )


def _versions_by_id(commits: Mapping[int, tuple[FileEvidence, ...]]) -> dict[str, int]:
    """Returns the version of each commit id; a commit also names the id of the one before it."""
    found: dict[str, int] = {}
    for version, files in commits.items():
        for file in files:
            if file.info.parent is not None:
                found.setdefault(file.info.parent, version - 1)
    for version, files in commits.items():
        for file in files:
            if file.info.commit_id is not None:
                found[file.info.commit_id] = version
    return found


def _why_not(
    checkpoint: FileEvidence,
    versions: Mapping[str, int],
    shared: Mapping[str | None, int],
    commits: Mapping[int, tuple[FileEvidence, ...]],
) -> str | None:
    version, commit_id = checkpoint.file.version, checkpoint.info.commit_id
    if checkpoint.file.is_state:
        return None  # it says itself whose state it is, and it was compared when it was read
    if commit_id is None:
        # Cleanup deletes the oldest first. If older commits are there but not this one, something is lost.
        if version not in commits and any(older < version for older in commits):
            return f"version {version} is missing, and nothing proves that this is its state"
        return None
    known = versions.get(commit_id)
    if known is not None and known != version:
        return f"it is the state of version {known}"
    if known is None and shared[commit_id] > 1:
        return "it is the state of the same commit as another checkpoint"
    return None


_TRAILER: Final = b'{"commitInfo":'
_MANY: Final = 20
"""The number of bad lines to report for one file; more would say nothing new."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The whole log directory."""

    location: LogLocation
    listing: Listing
    commits: Mapping[int, tuple[FileEvidence, ...]]
    checkpoints: tuple[FileEvidence, ...]
    """Oldest first."""
    hint: int | None
    hint_problem: str | None = None
    highest_name: int = -1
    """The highest version in any name of a local directory, whatever kind of entry has it."""

    @property
    def newest(self) -> int:
        """Returns the highest version that a commit, a checkpoint, a part or the hint names."""
        named = (file.version for file in self.listing.parts)
        hint = -1 if self.hint is None else self.hint
        first = (last_version(file.info) for file in self.commits.get(0, ()))
        return max([self.listing.newest, hint, self.highest_name, *named, *first])

    def files(self) -> Iterator[FileEvidence]:
        """Yields every file that was read."""
        for files in self.commits.values():
            yield from files
        yield from self.checkpoints


def gather(location: LogLocation, parallelism: int) -> Evidence:
    """Reads every file of the log once, `parallelism` of them at a time."""
    listing = list_log(location.store, location.names)
    hint, problem = _read_hint(location)
    listed = [file for _, files in sorted(listing.commits.items()) for file in files]
    listed += reversed(listing.checkpoints)
    with ThreadPoolExecutor(parallelism, "indextables-repair") as pool:
        found = list(pool.map(lambda file: examine(location, file), listed))
    commits: dict[int, tuple[FileEvidence, ...]] = {}
    for one in found:
        if one.file.kind == "commit":
            commits[one.file.version] = (*commits.get(one.file.version, ()), one)
    checkpoints = tuple(one for one in found if one.file.kind == "checkpoint")
    true = with_true_names(checkpoints, commits)
    return Evidence(location, listing, commits, true, hint, problem, _highest_name(location))


def _highest_name(location: LogLocation) -> int:
    """Returns the highest version in the names of a local directory; -1 if there is none.

    A listing passes over a link to nowhere, but a commit had that name: its disk may only be missing now.
    """
    here = location.local_path
    if here is None or not here.is_dir():
        return -1
    names = (entry.name for entry in here.iterdir())
    entries = (ObjectMeta(f"{location.names.prefix}{name}", 0, 0) for name in names)
    return max((file.version for file in location.names.parse_all(entries)), default=-1)


def _read_hint(location: LogLocation) -> tuple[int | None, str | None]:
    try:
        hint = orjson.loads(location.store.get(location.names.hint))
    except ObjectNotFoundError:
        return None, None
    except orjson.JSONDecodeError:
        return None, "it is not JSON"
    except StorageError as error:
        return None, f"it cannot be read: {error.message}"
    match hint:
        case {"version": bool()}:
            pass
        case {"version": int(version)} if 0 <= version < 10**18:
            return version, None
    return None, "it names no version"


def examine(location: LogLocation, file: LogFile) -> FileEvidence:
    """Returns the verdict on one file, as `trailer.verify` would, without holding all of it in memory."""
    reader = _Reader()
    try:
        for chunk in read_chunks(location.store, file):
            reader.feed(chunk)
        verdict = reader.verdict()
    except (zlib.error, EOFError) as error:
        verdict = Torn(f"the compressed text is damaged ({error})", 1)
        return FileEvidence(file, verdict, CommitInfo(), reader.size, (_of(verdict, file),))
    except ObjectNotFoundError:
        raise
    except StorageError as error:
        # Whether it is needed, the way through the log will tell.
        return FileEvidence(file, Unverified(), CommitInfo(), 0, (_unread(file, error),))
    found: tuple[Finding, ...] = ()
    if not (isinstance(verdict, Whole) or (isinstance(verdict, Torn) and not verdict.has_lines)):
        found = tuple(_bad_lines(location, file))
    if isinstance(verdict, Torn) and not found:
        found = (_of(verdict, file),)
    return FileEvidence(file, verdict, reader.info(), reader.size, found)


def _unread(file: LogFile, error: StorageError) -> Finding:
    return Finding(file.name, 0, f"it cannot be read: {error.message}")


def _of(verdict: Torn, file: LogFile) -> Finding:
    return Finding(file.name, verdict.line, verdict.reason)


class _Reader:
    """Counts and checks every line but the last, which is kept because it may be the trailer."""

    def __init__(self) -> None:
        self.size = 0
        self._blank = True
        self._crc = self._crc_of_all = 0
        self._lines = self._all_lines = 0
        self._last = b""

    def feed(self, chunk: bytes) -> None:
        """Takes the next whole lines, as `read_chunks` cuts them."""
        self.size += len(chunk)
        self._blank &= chunk.isspace()
        start = 0
        if text := chunk.rstrip(b"\r\n"):
            start = text.rfind(b"\n") + 1
            self._crc = zlib.crc32(memoryview(chunk)[:start], self._crc_of_all)
            self._lines = self._all_lines + count_lines(chunk, start)
            self._last = text[start:]
            self._crc_of_all, self._all_lines = self._crc, self._lines
        rest = chunk[start:]
        # blank lines count only if another line follows them
        self._crc_of_all = zlib.crc32(rest, self._crc_of_all)
        self._all_lines += count_lines(rest, len(rest))

    def info(self) -> CommitInfo:
        return last_info(self._last) or CommitInfo()

    def verdict(self) -> Verdict:
        if self._blank:
            return Torn("the file is empty", 1)
        if (blank := mostly_blank(self.size, self._all_lines)) is not None:
            return blank
        info = last_info(self._last) if self._last.startswith(_TRAILER) else None
        if info is None or info.crc32 is None:
            return Unverified()
        if info.crc32 != self._crc:
            reason = "the checksum in the last line does not match the lines before it"
            return Torn(reason, self._lines + 1)
        if info.actions != self._lines:
            reason = f"the last line counts {info.actions} actions, but there are {self._lines}"
            return Torn(reason, self._lines + 1)
        return Whole(info)


def _bad_lines(location: LogLocation, file: LogFile) -> Iterator[Finding]:
    """Yields lines that are no action at all; what an action says is judged when it is replayed."""
    first, found = 1, 0
    for chunk in read_chunks(location.store, file):
        for number, text in written_lines(chunk, first):
            reason = _why_no_action(text, LinePosition(file.name, number))
            if reason is not None:
                found += 1
                yield Finding(file.name, number, reason)
            if found >= _MANY:
                return
        first += count_lines(chunk, len(chunk))


def _why_no_action(text: bytes, position: LinePosition) -> str | None:
    try:
        value = loads(text, position)
    except LogCorruptedError as error:
        return error.message.partition(": ")[2]
    if not isinstance(value, dict) or not value:
        return "not an action: an object with the action's name was expected"
    return None


def commit_of(evidence: Evidence, version: int) -> FileEvidence | None:
    """Returns the one file to believe for a version; RepairError if there are two whole ones that differ."""
    files = evidence.commits.get(version, ())
    if len(files) < 2:
        return files[0] if files else None
    first, second = files
    if _same_text(evidence.location, first.file, second.file):
        return first
    # A torn copy does not count if it is the beginning of the other.
    for torn, other in ((first, second), (second, first)):
        if (
            not torn.usable
            and other.usable
            and _same_text(evidence.location, torn.file, other.file, short=True)
        ):
            return other
    raise disagreement(
        f"version {version} exists twice, as {first.file.name} and as {second.file.name}, and they differ",
        second.file.name,
    )


def _same_text(location: LogLocation, one: LogFile, two: LogFile, *, short: bool = False) -> bool:
    """Returns True if the texts are equal or, with `short`, if the second begins with the first."""
    try:
        left, right = (b"".join(read_chunks(location.store, file)) for file in (one, two))
    except (zlib.error, EOFError, StorageError):
        return False
    return right.startswith(left) if short else left == right
