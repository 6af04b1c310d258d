"""The commit: plan, one exclusive put, and on losing whatever the conflict table says."""

from __future__ import annotations

import errno
import logging
import random
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    LogCorruptedError,
    LogReplacedError,
    ObjectNotFoundError,
    ReadOnlyStoreError,
    StorageError,
)
from indextables.log.commit.conflict import Conflict, Outcome, Rebase, Replan, Skip, check, winner
from indextables.log.commit.intent import Append, CommitPlan, Maintain, SnapshotId, check_kept
from indextables.log.commit.turn import asked
from indextables.log.open.replay import replay
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Action, Add, CommitInfo, Metadata, Remove, check_writable
from indextables.log.wire.files import LogBody, LogFile, LogNames, body_of, read_info, seal
from indextables.storage.base import LogStore, held

# Putting a commit into the store, and finding out what happened when the store does not say.

_logger: Final = logging.getLogger(__name__)
_AHEAD_MS: Final = 60 * 60 * 1000
"""A parent this far ahead of the clock is worth a warning."""
_LOSSES: Final = 2
"""A writer that loses more often asks for its turn."""
_PAUSES: Final = (0.05, 0.2, 0.8, 2.0)
"""Seconds between the questions to a store that fails."""

_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG}
    | {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
)
"""The system itself said no, and nothing is there: that is no doubt, and asking again does not help."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Publisher:
    """Writes commits of one log, in its spelling."""

    store: LogStore
    names: LogNames
    width: int
    now_ms: Callable[[], int] = _now_ms
    pause: Callable[[float], None] = time.sleep

    def file(self, version: int) -> LogFile:
        """Returns the commit of a version, by name."""
        return LogFile("commit", version, self.width, self.names.commit(version, self.width))

    def publish(self, version: int, data: bytes, commit_id: str) -> bool:
        """Returns True: this version is our commit. False: it is another writer's. Never a guess.

        A store may write the object and answer with an error; trying again then finds our own commit.
        """
        file = self.file(version)
        problem: StorageError | None = None
        for seconds in (0.0, *_PAUSES):
            if seconds:
                self.pause(seconds)
            try:
                self.store.put_if_absent(file.key, data)
            except ReadOnlyStoreError:
                raise
            except StorageError as error:
                problem = error
            else:
                return True
            try:
                owner = self._owner(file)
            except ObjectNotFoundError:
                if problem.facts.get("errno") in _REFUSED:
                    raise problem from None
                continue  # not there: the same bytes under the same name can safely be put again
            except StorageError as error:
                problem = error
                continue
            return owner.commit_id == commit_id
        raise CommitStateUnknownError(
            f"the store never said whether version {version} was written: {problem}",
            hint=f"look if {file.key} has commitId {commit_id}; do not delete the data files before",
            version=version,
            commit_id=commit_id,
        ) from problem

    def confirm_parent(self, base: Snapshot, commit_id: str) -> None:
        """Raises unless the version before is still the one this commit was built on; asked after a put.

        A repair may have replaced the log in between. Then this commit would hang in the void, so it is
        taken back.
        """
        parent, mine = self.file(base.version), self.file(base.version + 1)
        # of another writer's commit without an id all that can be said is whether it is there
        found = self._owner_once_shown(parent, base)
        if found is not None and found.commit_id == base.commit_id:
            return
        if found is None and self._is_checkpointed(mine, commit_id):
            return  # others went on from here, and a cleanup has followed them
        with suppress(StorageError):
            if self._owner(mine).commit_id == commit_id:  # else it is a version of the log that came in
                self.store.delete(mine.key)
        raise LogReplacedError(
            f"the log was replaced while version {mine.version} was written; it has been taken back",
            hint=f"open the table again, see that {mine.key} is gone, and repeat the write",
            version=mine.version,
            expected=base.commit_id,
            found=found.commit_id if found else None,
        )

    def on(self, store: LogStore) -> Publisher:
        """Returns the same publisher by another way to its log."""
        return replace(self, store=store)

    def check_has(self, snapshot: Snapshot, *, or_nothing: bool = False) -> None:
        """Raises LogReplacedError unless the log has the version of this snapshot, by the same writer.

        With `or_nothing` it is enough that the version is no one else's.
        """
        found = self.has(snapshot)
        if not found and not (found is None and or_nothing):
            raise LogReplacedError(
                f"version {snapshot.version} is not in the log any more: the log was replaced, or cleaned up since",
                hint="open the table again",
                version=snapshot.version,
            )

    def publish_after(self, base: Snapshot, data: bytes, commit_id: str) -> bool:
        """Returns True if our commit is the version after `base`; False if another one is, or if it is another log.

        Where the store can hold the log's directory, nothing is put into a log that has taken its place.
        """
        with held(self.store, self.names.directory) as here:
            mine = self.on(here)
            if here is not self.store and not mine.has(base):
                return False
            if not mine.publish(base.version + 1, data, commit_id):
                return False
            mine.confirm_parent(base, commit_id)
            return True

    def has(self, snapshot: Snapshot) -> bool | None:
        """Returns True if the log has this version by the same writer, None if it has no such version.

        A checkpoint of the version counts as well as its commit.
        """
        try:
            owner: CommitInfo | None = self._owner(self.file(snapshot.version))
        except ObjectNotFoundError:
            owner = self._checkpointed_owner(snapshot.version)
        return None if owner is None else owner.commit_id == snapshot.commit_id

    def _owner_once_shown(self, parent: LogFile, base: Snapshot) -> CommitInfo | None:
        """Returns what the version before says of itself; None if it is gone."""
        problem: StorageError | None = None
        for seconds in (0.0, *_PAUSES):
            if seconds:
                self.pause(seconds)
            try:
                return self._owner(parent)
            except ObjectNotFoundError:
                return self._checkpointed_owner(base.version)
            except StorageError as error:
                problem = error
        raise CommitStateUnknownError(
            f"version {base.version + 1} was written, but the store does not show version {base.version} "
            f"any more: {problem}",
            hint="look at the table's history before you repeat the write",
            version=base.version + 1,
        ) from problem

    def _is_checkpointed(self, mine: LogFile, commit_id: str) -> bool:
        """Returns True if a checkpoint has our commit: somebody read it as the version it is."""
        found = self._checkpointed_owner(mine.version)
        return found is not None and found.commit_id == commit_id

    def _checkpointed_owner(self, version: int) -> CommitInfo | None:
        """Returns a commit may be gone by cleanup, if a checkpoint of it is there."""
        key = self.names.checkpoint(version, self.width)
        try:
            return self._owner(LogFile("checkpoint", version, self.width, key))
        except ObjectNotFoundError:
            return None

    def _owner(self, file: LogFile) -> CommitInfo:
        """Returns who wrote this version; an empty answer for a writer that leaves no name."""
        size = self.store.head(file.key).size
        known = LogFile(file.kind, file.version, file.width, file.key, size)
        try:
            return read_info(self.store, known) or CommitInfo()
        except LogCorruptedError:
            return CommitInfo()


Planner: TypeAlias = Callable[[Snapshot], CommitPlan]
"""Makes the plan for a snapshot; called again when a winner has overtaken what it relied on."""
Proposal: TypeAlias = Planner | CommitPlan
"""A planner, or a plan that cannot be made again: it follows its winners as it is, or not at all."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The version that holds the commit; with `no_op` there was nothing (left) to do."""

    version: int
    snapshot: Snapshot
    attempts: int = 1
    no_op: bool = False
    skipped: frozenset[str] = frozenset()
    """Groups that were left out because another writer touched them."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A plan, the snapshot it was made for, and the one it is to follow now."""

    plan: CommitPlan
    planned_on: Snapshot
    base: Snapshot
    skipped: frozenset[str] = frozenset()
    is_proven: bool = False
    """These actions were read back before, on an older base."""

    def result(self, file: LogFile, data: bytes) -> Snapshot:
        """Returns the table with this commit."""
        return replay(self.base, [body_of(file, data)], self.base.table_uri)

    def after(self, outcome: Outcome, newest: Snapshot, planner: Planner | None) -> _Draft:
        """Returns the draft to try next, on top of the winners.

        Without a planner the plan stands as it is.
        """
        match outcome:
            case Rebase():
                return replace(self, base=newest, is_proven=True)
            case Skip(groups, columns):
                plan = self.plan.without(groups).without_statistics(columns)
                skipped = self.skipped | groups
                return replace(self, plan=plan, base=newest, skipped=skipped, is_proven=False)
            case Replan(reason):
                if planner is None:
                    raise _derived(reason, newest, self.plan)
                return _Draft(planner(newest), newest, newest)
            case Conflict(error):
                raise error
            case _:
                assert_never(outcome)


class _Plans:
    """Asks for plans, each for one snapshot: a plan made for another one is never taken for a new one."""

    def __init__(self, proposal: Proposal, replans: bool) -> None:
        self._proposal = proposal
        self._given: list[tuple[CommitPlan, SnapshotId]] = []
        can_replan = replans and not isinstance(proposal, CommitPlan)
        self.again: Planner | None = self if can_replan else None

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        proposal, now = self._proposal, SnapshotId(snapshot.version, snapshot.commit_id)
        plan = proposal if isinstance(proposal, CommitPlan) else proposal(snapshot)
        for given, made_for in self._given if plan.all_actions() else ():
            if plan is given:
                plan.bound(made_for).bound(now)  # raises: it was made for another one
        self._given.append((plan, now))
        return plan.bound(now)


def commit(
    publisher: Publisher,
    proposal: Proposal,
    base: Snapshot,
    *,
    winners_after: Callable[[Snapshot], Sequence[LogBody]],
    newest_now: Callable[[], Snapshot],
    kept_since: Callable[[int], frozenset[str]],
    max_attempts: int,
    replans: bool = True,
) -> Committed:
    """Returns the plan as the next version, exactly once; CommitConflictError if it never gets its turn.

    Without `replans`, or with a plan instead of a planner, the plan is made once: a winner it cannot follow
    as it is, is an error too. `kept_since` are the files that some version from this one on has.
    """
    commit_id, plans = uuid.uuid4().hex, _Plans(proposal, replans)
    with ExitStack() as turn:
        draft = _Draft(plans(base), base, base)
        for attempt in range(1, max_attempts + 1):
            if _nothing_to_do(draft):
                return Committed(
                    draft.base.version, draft.base, attempt, no_op=True, skipped=draft.skipped
                )
            check_writable(draft.base.protocol)
            if any(isinstance(action, Add) for action in draft.plan.actions):
                draft.base.check_parquet()
            check_kept(draft.plan, base.version, draft.base, kept_since)
            now_ms = publisher.now_ms()
            if attempt == 1:
                _warn_of_clocks(base, now_ms)
            data = sealed(draft.plan, draft.planned_on, draft.base, commit_id, now_ms)
            version = draft.base.version + 1
            file = publisher.file(version)
            # read it before anybody else can: what a reader refuses is never published
            proof = None if draft.is_proven else draft.result(file, data)
            if publisher.publish_after(draft.base, data, commit_id):
                done = proof or draft.result(file, data)
                return Committed(version, done, attempt, skipped=draft.skipped)
            # Wait before looking, not after: what was seen is stale by then. And the less the more often
            # it has lost: a wait that grows would starve it behind writers that have just begun.
            publisher.pause(random.uniform(0, 0.1 / attempt))
            if attempt == _LOSSES:
                turn.enter_context(asked(publisher.store, publisher.names.turn(commit_id)))
            try:
                bodies = winners_after(draft.base)
                if not bodies:
                    _check_same_log(draft.base, newest_now())
                    continue
                newest = replay(draft.base, bodies, draft.base.table_uri)
                outcome = _outcome(draft, bodies, newest)
            except (LogCorruptedError, ObjectNotFoundError):
                newest = newest_now()  # a log that is really damaged does not open either
                if newest.version <= draft.base.version:
                    raise
                outcome = _unseen(draft, newest)
            draft = draft.after(outcome, newest, plans.again)
    raise _exhausted(draft.base.version + 1, max_attempts)


def _derived(reason: str, newest: Snapshot, plan: CommitPlan) -> CommitConflictError:
    made_for = plan.made_for.version if plan.made_for else newest.version
    return CommitConflictError(
        f"{plan.operation} stands on what was read from version {made_for}, and {reason} meanwhile",
        hint="read the table again and repeat the write",
        version=newest.version,
    )


def _exhausted(version: int, attempts: int) -> CommitConflictError:
    return CommitConflictError(
        f"version {version} was the last of {attempts} versions in a row that other writers took first",
        hint="raise spark.indextables.commit.maxAttempts, or write less often",
        attempts=attempts,
    )


def _nothing_to_do(draft: _Draft) -> bool:
    """Returns True if nothing is left to commit, or if the application has committed this batch before."""
    txn = draft.plan.txn()
    known = draft.base.txns.get(txn.app_id) if txn else None
    if txn is not None and known is not None and known.version >= txn.version:
        return True
    return not draft.plan.all_actions()


def _outcome(draft: _Draft, bodies: Sequence[LogBody], newest: Snapshot) -> Outcome:
    same_table = (newest.metadata, newest.protocol) == (draft.base.metadata, draft.base.protocol)
    if isinstance(draft.plan.verb, Append) and same_table:
        return Rebase()  # the usual case, and it needs no look at what exactly the winners did
    winners, before = [], draft.base
    for body in bodies:
        winners.append(winner(before, body, before.table_uri))
        before = winners[-1].after
    return check(draft.plan, winners)


def _check_same_log(base: Snapshot, newest: Snapshot) -> None:
    """Raises LogReplacedError if a version that was taken is free now because another log is there.

    In the same log it is free because whoever took it has taken it back, or the store does not list it yet.
    """
    if newest.version > base.version or newest.commit_id == base.commit_id:
        return
    raise LogReplacedError(
        f"the log was replaced while version {base.version + 1} was to be written; nothing was committed",
        hint="open the table again and repeat the write",
        version=base.version + 1,
    )


def _unseen(draft: _Draft, newest: Snapshot) -> Outcome:
    """Returns what to do when a cleanup has removed the winners before this writer saw what they did."""
    if isinstance(draft.plan.verb, Maintain):
        return Rebase()  # it relies on nothing that a winner can change
    same_table = (newest.metadata, newest.protocol) == (draft.base.metadata, draft.base.protocol)
    if isinstance(draft.plan.verb, Append) and same_table:
        return Rebase()
    return Replan("commits that came first were cleaned up")


def sealed(
    plan: CommitPlan, planned_on: Snapshot | None, base: Snapshot | None, commit_id: str, now_ms: int
) -> bytes:
    """Returns the bytes of the plan as the version after `base`; the same id in every attempt."""
    earlier = base.timestamp_ms if base else None
    moment = now_ms if earlier is None else max(now_ms, earlier + 1)
    actions = tuple(_removed_at(action, moment) for action in plan.all_actions())
    metadata = next((a for a in actions if isinstance(a, Metadata)), None)
    schema = metadata.schema if metadata else planned_on.schema if planned_on else None
    assert schema is not None, "the first commit of a table has its metadata"
    info = CommitInfo(
        operation=plan.operation,
        timestamp=moment,
        commit_id=commit_id,
        parent=base.commit_id if base else None,
        parameters=plan.parameters,
        metrics=plan.all_metrics(),
        read_version=planned_on.version if planned_on else None,
        num_files=files_after(base, actions),
    )
    return seal(actions, info, seq=base.next_seq if base else 0, schema=schema)


def _removed_at(action: Action, moment: int) -> Action:
    """Returns a file is removed by the commit, so the commit says when.

    A plan's own clock does not matter.
    """
    return replace(action, deletion_timestamp=moment) if isinstance(action, Remove) else action


def files_after(base: Snapshot | None, actions: Sequence[Action]) -> int:
    """Returns the number of live files once these actions are committed."""
    last = {a.path: isinstance(a, Add) for a in actions if isinstance(a, Add | Remove)}
    added = sum(last.values())
    if base is None:
        return added
    keys = pa.array(list(last), pa.string())
    touched = (segment.contains(keys) & ~segment.dead for segment in base.state.segments)
    return base.num_files - sum(int(np.count_nonzero(mask)) for mask in touched) + added


def first_snapshot(file: LogFile, data: bytes, table_uri: str) -> Snapshot:
    """Returns the table right after its first commit."""
    return replay(None, [body_of(file, data)], table_uri)


def _warn_of_clocks(base: Snapshot, now_ms: int) -> None:
    """Warns of a clock that was ahead: the times of versions only grow, so it stays in the log."""
    ahead = (base.timestamp_ms or now_ms) - now_ms
    if ahead > _AHEAD_MS:
        _logger.warning(
            "version %d of %s says it was committed %.1f hours from now: the clock of its writer was ahead, "
            "or the clock here is behind; versions that follow it get times from there on",
            base.version,
            base.table_uri,
            ahead / 3_600_000,
        )
