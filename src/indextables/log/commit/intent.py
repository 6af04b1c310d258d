"""What a writer wants to commit, and what it relied on when it decided so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.types import FieldPath
from indextables.errors import CommitConflictError
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Action, Add, Remove, Txn

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Append:
    """New rows; nothing was read."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Overwrite or delete: every row that satisfies `where` was looked at (None: all rows)."""

    where: Any | None = None
    inserted: Any | None = None
    """A condition on the keys that get a new row, in a table with a record key; None: no key does."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rows by key: no other row may hold one of the `keys` (a condition; None: any key)."""

    keys: Any | None = None
    groups: frozenset[str] = frozenset()
    """File groups that receive a log file."""
    inserted: Any | None = None
    """A condition on those of the keys that get a new row in a new group; None: no key does."""
    partial: bool = False
    """Only some columns are set: the values of the others were relied on."""
    derived: bool = False
    """The rows were computed from rows of the table: those with the same keys were relied on."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Rows keep their group and their `seq`; only the number of files changes."""


@dataclass(frozen=True, slots=True)
class Optimize:
    """Rows move between files and groups; no row changes."""


@dataclass(frozen=True, slots=True)
class Analyze:
    """Statistics of files change, no row does; `columns` are those that were looked at."""

    columns: frozenset[FieldPath] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangeSchema:
    """The table's metadata changes: schema, properties or protocol."""


@dataclass(frozen=True, slots=True)
class Maintain:
    """Neither rows nor metadata: vacuum's mark."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Files that were part of the table before are so again; every file there is now was looked at."""


Verb: TypeAlias = (
    Append | Rewrite | Upsert | Compact | Optimize | Analyze | ChangeSchema | Maintain | Restore
)


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """Which snapshot a plan was made for: versions repeat in a log that was replaced, ids do not."""

    version: int
    commit_id: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """A part of a commit that can be left out without harm: files compacted together, one path analyzed."""

    name: str
    inputs: frozenset[str]
    """Keys of the files it stands on."""
    actions: tuple[Action, ...]
    file_groups: frozenset[str] = frozenset()
    """File groups its inputs belong to, where the table has slices."""
    metrics: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Numbers that count only if it is not left out."""


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The actions of one commit; parts of some verbs come in groups that may be skipped."""

    verb: Verb
    operation: str
    actions: tuple[Action, ...] = ()
    groups: tuple[Group, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    made_for: SnapshotId | None = None
    """The snapshot it was made for: what it says of the table is true of that one only."""

    def bound(self, snapshot: SnapshotId) -> CommitPlan:
        """Returns the same plan as one for this snapshot.

        CommitConflictError if it was made for another one.
        """
        if self.made_for not in (None, snapshot):
            assert self.made_for is not None
            raise CommitConflictError(
                f"{self.operation} was planned on version {self.made_for.version} and cannot be "
                f"committed as a plan for version {snapshot.version}",
                hint="run it again: it is planned on the table as it is then",
                read_version=self.made_for.version,
                version=snapshot.version,
            )
        return replace(self, made_for=snapshot)

    def all_actions(self) -> tuple[Action, ...]:
        """Returns everything the commit will hold, groups included."""
        return (*self.actions, *(action for group in self.groups for action in group.actions))

    def all_metrics(self) -> dict[str, Any]:
        """Returns the numbers of the commit, those of its groups added up."""
        total = Counter[str]()
        for group in self.groups:
            total.update(group.metrics)
        return {**self.metrics, **total}

    def removed(self) -> frozenset[str]:
        """Returns keys of the files this commit removes."""
        return frozenset(action.path for action in self.all_actions() if isinstance(action, Remove))

    def logged_groups(self) -> frozenset[str]:
        """Returns the slices that receive a delta file by this commit."""
        adds = (a for a in self.all_actions() if isinstance(a, Add) and a.kind == "log")
        return frozenset(add.file_group for add in adds if add.file_group is not None)

    def txn(self) -> Txn | None:
        """Returns the application's own version, where it gave one."""
        return next((action for action in self.actions if isinstance(action, Txn)), None)

    def without(self, names: frozenset[str]) -> CommitPlan:
        """Returns the same commit with these groups left out."""
        kept = tuple(group for group in self.groups if group.name not in names)
        return replace(self, groups=kept)

    def without_statistics(self, columns: frozenset[FieldPath]) -> CommitPlan:
        """Returns the same commit with nothing said about these columns."""
        groups = tuple(
            replace(group, actions=tuple(_forget(action, columns) for action in group.actions))
            for group in self.groups
        )
        return replace(self, actions=tuple(_forget(a, columns) for a in self.actions), groups=groups)


def _forget(action: Action, columns: frozenset[FieldPath]) -> Action:
    if not isinstance(action, Add) or action.stats is None:
        return action
    stats = action.stats
    kept = replace(
        stats,
        min_values=_others(stats.min_values, columns),
        max_values=_others(stats.max_values, columns),
        null_count=_others(stats.null_count, columns),
        nan_count=_others(stats.nan_count, columns),
    )
    return replace(action, stats=kept)


def _others(values: Mapping[FieldPath, T], columns: frozenset[FieldPath]) -> dict[FieldPath, T]:
    return {path: value for path, value in values.items() if path not in columns}


# Whether the files a commit names are sure to be there: what a vacuum goes by, and what it must not meet.
#
# A vacuum deletes files that were written for an older version than its mark, and files the log says were
# removed. So nothing of that kind becomes part of the table unless it is already, or a version since the mark
# has it. Every commit passes here, whatever verb made it.

_WRITTEN_BY_US: Final = re.compile(r"data/([0-9]+)-[0-9a-f-]{36}/")


def written_for(key: str) -> int | None:
    """Returns the version the writer of this file had read, by the file's name.

    None for the files of others.
    """
    found = _WRITTEN_BY_US.match(key)
    return None if found is None else int(found[1])


def check_kept(
    plan: CommitPlan, began: int, base: Snapshot, kept_since: Callable[[int], frozenset[str]]
) -> None:
    """Raises CommitConflictError if a vacuum may have deleted what this plan stands on, or a file it adds.

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
