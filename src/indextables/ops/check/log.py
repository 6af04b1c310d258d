"""Checks the log by itself: commits are whole and in sequence, checkpoints equal the state they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from indextables.errors import IndexTablesError, LogCorruptedError, LogReplacedError, StorageError
from indextables.log.open.checkpoint import read_checkpoint
from indextables.log.open.load import Listing, list_log, read_hint
from indextables.log.open.replay import replay
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import last_version
from indextables.log.wire.files import LogBody, LogFile, Torn, Unverified, read_body, read_info
from indextables.log.wire.lines import loads, written_lines

Kind: TypeAlias = Literal[
    "torn-file",
    "garbled-line",
    "missing-commit",
    "foreign-commit",
    "mixed-names",
    "bad-checkpoint",
    "bad-pointer",
    "unverified-commit",
    "not-opened",
    "missing-file",
    "wrong-size",
    "bad-partition-value",
    "unreadable-file",
    "bad-text",
    "wrong-statistics",
    "unreferenced-file",
    "unknown-merge-mode",
    "log-without-key",
    "no-file-group",
    "two-bases",
    "mixed-partitions",
    "lost-base",
    "duplicate-key",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem and where it is; `line` counts from 1 in files of the log."""

    kind: Kind
    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        position = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{position}: {self.message} [{self.kind}]"


@dataclass(slots=True)
class Findings:
    """What a check has found so far."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    commits: int = 0


def check_log(log: TransactionLog) -> Findings:
    """Returns every problem of the log's files; a commit that cannot be read does not stop the check."""
    listing = list_log(log.store, log.names)
    findings = Findings()
    findings.problems += _mixed_names(listing)
    checkpoints = {
        file.version: _checkpoint(log, file, findings) for file in reversed(listing.checkpoints)
    }
    if any(file.is_state for file in listing.checkpoints):
        _walk_states(log, listing, checkpoints, findings)
    else:
        _walk(log, listing, checkpoints, findings)
    findings.notes += _pointer(log, listing)
    findings.problems += _lost_end(log, listing)
    return findings


def _walk(
    log: TransactionLog,
    listing: Listing,
    checkpoints: dict[int, Snapshot | None],
    findings: Findings,
) -> None:
    """Replays the log from its oldest version, and again from the next checkpoint after each break."""
    first = min([*listing.commits, *checkpoints], default=0)
    state: Snapshot | None = None  # the first checkpoint already contains the commit of its version
    for version in range(first, listing.newest + 1):
        files = listing.commits.get(version, ())
        if files:
            state = _commit(log, files, state, findings, starts=version == 0)
        elif version > first or version not in checkpoints:
            findings.problems.append(_gap(listing, version))
            state = None
        state = _compare(listing, version, state, checkpoints.get(version), findings)


def _walk_states(
    log: TransactionLog,
    listing: Listing,
    checkpoints: dict[int, Snapshot | None],
    findings: Findings,
) -> None:
    """Looks for gaps between states, each of which is a whole version, and reads the few commits beside them."""
    oldest = min(file.version for file in listing.checkpoints if file.is_state)
    for version in range(oldest, listing.newest + 1):
        if version in checkpoints:
            findings.commits += 1
        elif version not in listing.commits:
            findings.problems.append(_gap(listing, version))
    for files in listing.commits.values():
        findings.problems += _line_problems(read_body(log.store, files[0]))


def _commit(
    log: TransactionLog,
    files: tuple[LogFile, ...],
    state: Snapshot | None,
    findings: Findings,
    *,
    starts: bool,
) -> Snapshot | None:
    findings.commits += 1
    try:
        body = read_body(log.store, files[0])
    except StorageError as error:
        findings.problems.append(Problem("unreadable-file", files[0].name, None, error.message))
        return None
    if len(files) > 1 and log.store.get(files[1].key) != log.store.get(files[0].key):
        findings.problems.append(
            Problem(
                "mixed-names",
                files[1].name,
                1,
                f"differs from {files[0].name}, which is the same version",
            )
        )
    if isinstance(body.verdict, Unverified):
        message = "has no checksum, so nothing proves that it is whole"
        findings.notes.append(Problem("unverified-commit", body.file.name, None, message))
    if isinstance(body.verdict, Torn) or (state is None and not starts):
        findings.problems += _line_problems(body)
        return None
    try:
        return replay(state, [body], log.store.uri)
    except LogReplacedError as error:
        findings.problems.append(Problem("foreign-commit", body.file.name, 1, error.message))
    except IndexTablesError as error:
        findings.problems += _line_problems(body) or [_from_error(body, error)]
    return None


def _line_problems(body: LogBody) -> list[Problem]:
    """Returns a problem for the torn end and for every line that is not JSON."""
    found = []
    for number, text in written_lines(body.data):
        try:
            loads(text, body.position(number))
        except LogCorruptedError as error:
            found.append(Problem("garbled-line", body.file.name, number, _reason(error)))
    if isinstance(body.verdict, Torn):
        found.append(Problem("torn-file", body.file.name, body.verdict.line, body.verdict.reason))
    return found


def _from_error(body: LogBody, error: IndexTablesError) -> Problem:
    line = error.facts.get("line")
    return Problem(
        "garbled-line", body.file.name, line if isinstance(line, int) else None, _reason(error)
    )


def _reason(error: IndexTablesError) -> str:
    """Returns the message without its position, which the problem has already."""
    prefix, found, rest = error.message.partition(": ")
    return rest if found and ", line " in prefix else error.message


def _checkpoint(log: TransactionLog, file: LogFile, findings: Findings) -> Snapshot | None:
    try:
        return read_checkpoint(log.store, file)
    except IndexTablesError as error:
        line = error.facts.get("line")
        number = line if isinstance(line, int) else None
        findings.problems.append(Problem("bad-checkpoint", file.name, number, _reason(error)))
        return None


def _compare(
    listing: Listing,
    version: int,
    state: Snapshot | None,
    checkpoint: Snapshot | None,
    findings: Findings,
) -> Snapshot | None:
    if checkpoint is None or state is None or state is checkpoint:
        return state or checkpoint
    same = state.metadata == checkpoint.metadata and state.files().equals(checkpoint.files())
    if not same:
        name = next(file.name for file in listing.checkpoints if file.version == version)
        message = "shows another table than the commits up to its version"
        findings.problems.append(Problem("bad-checkpoint", name, None, message))
    return state


def _gap(listing: Listing, version: int) -> Problem:
    name = listing.names.commit(version, listing.width).rpartition("/")[2]
    return Problem(
        "missing-commit", name, None, f"version {version} is missing, but later versions are there"
    )


def _mixed_names(listing: Listing) -> Iterator[Problem]:
    if len(listing.widths) > 1:
        widths = " and ".join(map(str, sorted(listing.widths)))
        message = f"has names of {widths} digits: the table can be read but not written"
        yield Problem("mixed-names", listing.names.directory, None, message)


def _pointer(log: TransactionLog, listing: Listing) -> Iterator[Problem]:
    hint = read_hint(log.store, log.names)
    versions = {file.version for file in listing.checkpoints}
    name = log.names.hint.rpartition("/")[2]
    if hint is None and versions:
        yield Problem(
            "bad-pointer", name, None, "is missing or garbled, so opening the table lists the whole log"
        )
    elif hint is not None and hint not in versions and hint <= listing.newest:
        yield Problem("bad-pointer", name, None, f"names version {hint}, which has no checkpoint")


def _lost_end(log: TransactionLog, listing: Listing) -> Iterator[Problem]:
    """Yields the versions behind the newest one that the log itself says it has."""
    promised = [read_hint(log.store, log.names) or 0]
    if 0 in listing.commits:
        with suppress(IndexTablesError):
            promised.append(last_version(read_info(log.store, listing.commits[0][0])))
    if max(promised) > listing.newest >= 0:
        name = listing.names.commit(max(promised), listing.width).rpartition("/")[2]
        message = f"the log says that it goes to version {max(promised)}, and ends at {listing.newest}"
        yield Problem("missing-commit", name, None, message)
