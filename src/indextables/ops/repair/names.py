"""Is a checkpoint the state of the version its name says? A copy under another name is intact and wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from indextables.ops.repair.file import FileEvidence
from indextables.ops.repair.findings import Finding


def with_true_names(
    checkpoints: tuple[FileEvidence, ...], commits: Mapping[int, tuple[FileEvidence, ...]]
) -> tuple[FileEvidence, ...]:
    """The checkpoints, each with a finding if it is, or may be, the state of another version.

    Believing such a name would lose every commit between the two versions.
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
    """Which version a commit id is; a commit also names the one before it."""
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
    if commit_id is None:
        # Cleanup deletes oldest first: commits below, but not its own, mean that something is lost.
        if version not in commits and any(older < version for older in commits):
            return f"version {version} is missing, and nothing proves that this is its state"
        return None
    known = versions.get(commit_id)
    if known is not None and known != version:
        return f"it is the state of version {known}"
    if known is None and shared[commit_id] > 1:
        return "it is the state of the same commit as another checkpoint"
    return None
