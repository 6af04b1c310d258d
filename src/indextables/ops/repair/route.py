"""Decides whether the log is complete, and finds the route from the evidence to the newest version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from indextables.errors import RepairError
from indextables.log.wire.files import LogNames
from indextables.ops.repair.evidence import Evidence, FileEvidence, commit_of
from indextables.ops.repair.findings import Finding, disagreement, incomplete


@dataclass(frozen=True, slots=True)
class Route:
    """A base and every commit after it up to the newest version, all present and none known to be damaged."""

    base: FileEvidence | None
    """A checkpoint; None to start from the first commit."""
    commits: tuple[FileEvidence, ...]
    checkpoints: tuple[FileEvidence, ...]
    """The checkpoints on the route; each must agree with the commits before it."""

    @property
    def start(self) -> int:
        """Returns the version of the base; -1 if there is none."""
        return -1 if self.base is None else self.base.file.version


def find_route(evidence: Evidence, refuted: Mapping[str, Finding]) -> Route:
    """Returns the longest route through usable files; RepairError if none is complete.

    `refuted` are files, by key, that turned out to be damaged when their actions were read.
    """
    newest = evidence.newest
    first, commits = _unbroken(evidence, newest, refuted)
    if first == 0:
        route = Route(None, commits, ())
    else:
        base = next(
            (c for c in _checkpoints(evidence, refuted) if first - 1 <= c.file.version <= newest), None
        )
        if base is None:
            raise incomplete(_first_hole(evidence, newest, refuted))
        route = Route(base, tuple(c for c in commits if c.file.version > base.file.version), ())
    on_the_way = (c for c in _checkpoints(evidence, refuted) if c.file.version > route.start)
    return Route(route.base, route.commits, tuple(on_the_way))


def _unbroken(
    evidence: Evidence, newest: int, refuted: Mapping[str, Finding]
) -> tuple[int, tuple[FileEvidence, ...]]:
    """Returns the lowest version from which every commit is usable, and these commits."""
    commits: list[FileEvidence] = []
    version = newest
    while (found := _usable_commit(evidence, version, refuted)) is not None:
        commits.append(found)
        version -= 1
    return version + 1, tuple(reversed(commits))


def _usable_commit(
    evidence: Evidence, version: int, refuted: Mapping[str, Finding]
) -> FileEvidence | None:
    found = commit_of(evidence, version)
    return found if found is not None and found.usable and found.file.key not in refuted else None


def _checkpoints(evidence: Evidence, refuted: Mapping[str, Finding]) -> Iterator[FileEvidence]:
    for found in evidence.checkpoints:
        if found.usable and found.file.key not in refuted:
            yield found


def _first_hole(evidence: Evidence, newest: int, refuted: Mapping[str, Finding]) -> Sequence[Finding]:
    """Returns the first version after the best base that is missing or damaged."""
    bases = [c.file.version for c in _checkpoints(evidence, refuted) if c.file.version < newest]
    version = max(bases, default=-1) + 1
    # ends at the newest version at the latest: if that one were usable, there would be a route
    while _usable_commit(evidence, version, refuted) is not None:
        version += 1
    found = commit_of(evidence, version)
    if found is None:
        name = LogNames("").commit(version, evidence.listing.width).lstrip("/")
        reason = f"version {version} is missing, and the log goes on to version {newest}"
        return (Finding(name, 0, reason), *_useless_checkpoints(evidence, refuted))
    known = refuted.get(found.file.key)
    return (*found.findings, *((known,) if known else ()), *_useless_checkpoints(evidence, refuted))


def _useless_checkpoints(evidence: Evidence, refuted: Mapping[str, Finding]) -> Iterator[Finding]:
    for found in evidence.checkpoints:
        yield from found.findings
        if found.file.key in refuted:
            yield refuted[found.file.key]


def broken_link(route: Route) -> Finding | None:
    """Returns the file before a commit that names another parent; RepairError if both files are whole.

    A commit that lost its last line has no id, so it cannot be the parent that the next one names.
    """
    chain = (*((route.base,) if route.base else ()), *route.commits)
    for before, after in pairwise(chain):
        parent, found = after.info.parent, before.info.commit_id
        if parent is None or parent == found:
            continue
        if found is None:
            reason = f"it lost its last line: {after.file.name} follows commit {parent}"
            return Finding(before.file.name, 0, reason)
        raise _foreign(before, after)
    return None


def _foreign(before: FileEvidence, after: FileEvidence) -> RepairError:
    return disagreement(
        f"{after.file.name} follows commit {after.info.parent}, but {before.file.name} is commit "
        f"{before.info.commit_id}: they come from two different logs",
        after.file.name,
    )
