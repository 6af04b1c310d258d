"""Putting a repaired log in place of the old one, and back: readers see one of the two at every moment.

    the log        old ──────────────┐ exchange  ┌─ repaired
    the backup           repaired ───┘ in one    └─ old
    the target     repaired ─ rename ┘ step

Nothing is written down about the progress: each log says itself what it is (the first commit of a repaired
one names its source by a fingerprint), so a run that died is finished, or undone, by looking. The log that is
to leave gets a fence first: a commit was made before that, and stops the exchange, or it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from indextables.errors import RepairError
from indextables.log.open.load import load
from indextables.ops.repair.fence import fence_of, put_up, repair_id, take_down, without_fence
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.new_log import LAST, origin_of
from indextables.ops.repair.plan import fingerprint
from indextables.storage import durable

Mover: TypeAlias = Callable[[Path, Path], object]
Done: TypeAlias = Literal["replaced", "already replaced", "undone", "nothing to undo"]
BACKUP_SUFFIX: Final = "_backup"


def rename_durably(source: Path, target: Path) -> None:
    """Renames a directory, so that it keeps its new name through a power cut."""
    target.parent.mkdir(parents=True, exist_ok=True)
    durable.rename_exclusively(source, target)
    for parent in {source.parent, target.parent}:
        durable.fsync_directory(parent)


def exchange_durably(one: Path, two: Path) -> bool:
    """Exchanges two directories in one durable step; returns False if the system cannot."""
    if not durable.exchange(one, two):
        return False
    for parent in {one.parent, two.parent}:
        durable.fsync_directory(parent)
    return True


@dataclass(frozen=True, slots=True)
class Moves:
    """The two things that happen to directories; tests put a crash before or after each."""

    rename: Mover = rename_durably
    exchange: Callable[[Path, Path], bool] = exchange_durably
    exists: Callable[[Path], bool] = os.path.lexists


@dataclass(frozen=True, slots=True)
class Swap:
    """Where everything is afterwards."""

    log: str
    backup: str
    done: Done


@dataclass(frozen=True, slots=True)
class _Directory:
    location: LogLocation
    path: Path
    moves: Moves

    @property
    def exists(self) -> bool:
        return self.moves.exists(self.path)

    def is_repair_of(self, other: _Directory) -> bool:
        """Returns True if this log was made from exactly what the other one is now, and is finished."""
        if not self.exists or not other.exists or not self.moves.exists(self.path / "_last_checkpoint"):
            return False
        origin = origin_of(self.location)
        if origin is None:
            return False
        fence = fence_of(other.location)
        if fence is not None and fence.parameters.get("repair") == repair_id(self.location):
            return True  # nothing was committed since; what a cleanup has taken does not matter
        return origin.get("sourceFingerprint") == fingerprint(without_fence(other.location))

    def newest(self) -> int:
        """Returns the newest version, a fence not counted."""
        return without_fence(self.location).newest


def backup_of(log: LogLocation) -> LogLocation:
    """Returns where the old log goes."""
    return log.sibling(log.names.directory + BACKUP_SUFFIX)


def replace_log(
    log: LogLocation, repaired: LogLocation, *, allow_gap: bool = False, moves: Moves | None = None
) -> Swap:
    """Returns the repaired log is the table's log afterwards, and the old one lies beside it; run it again after a crash.

    RepairError if the old log is not the one that was repaired, however late that shows. Without an
    exchange in one step (not Linux), a reader may find no log for a moment: `allow_gap` permits that.
    """
    moves = moves or Moves()
    here, new, old = (_directory(location, moves) for location in (log, repaired, backup_of(log)))
    done: Done = "replaced"
    if here.is_repair_of(old) and here.newest() == LAST and not new.exists:
        done = "already replaced"
    elif not here.exists and new.is_repair_of(old):
        moves.rename(new.path, here.path)  # a run with a gap died in its middle
    else:
        _exchange_for_repair(moves, here, new, old, allow_gap=allow_gap)
    take_down(here.location)
    return _swap(here, old, done)


def _exchange_for_repair(
    moves: Moves, here: _Directory, new: _Directory, old: _Directory, *, allow_gap: bool
) -> None:
    source = new if new.is_repair_of(here) else old
    if not source.is_repair_of(here):
        raise _does_not_fit(here, new)
    if source is new and old.exists:
        raise RepairError(
            f"there is already a backup at {old.path}",
            hint="move it away, or undo, then replace again",
            path=str(old.path),
        )
    origin = origin_of(source.location) or {}
    last, parent = int(str(origin["sourceVersion"])), origin["sourceCommitId"]
    # From here on the old log is what it will ever be: whoever committed to it was first, and is seen now.
    if not (
        put_up(here.location, last + 1, None if parent is None else str(parent), source.location)
        and source.is_repair_of(here)
    ):
        take_down(here.location)
        raise _does_not_fit(here, source)
    if source is new:
        moves.rename(new.path, old.path)
    if not moves.exchange(here.path, old.path):
        moves.rename(old.path, new.path)
        if not allow_gap:
            take_down(here.location)
            raise _gap(here)
        moves.rename(here.path, old.path)
        moves.rename(new.path, here.path)


def undo_replace(log: LogLocation, *, allow_gap: bool = False, moves: Moves | None = None) -> Swap:
    """Returns the old log is the table's log again; the repaired one goes back to where it was written.

    RepairError if somebody has committed to the repaired log since: those commits would be lost.
    """
    moves = moves or Moves()
    here, old = _directory(log, moves), _directory(backup_of(log), moves)
    done: Done = "undone"
    if not old.exists:
        done = "undone" if fence_of(log) else "nothing to undo"  # a run died before anything moved
    elif not here.exists:
        moves.rename(old.path, here.path)  # a run with a gap died in its middle
    elif here.is_repair_of(old):
        _exchange_back(moves, here, old, allow_gap=allow_gap)
    elif old.is_repair_of(here):
        moves.rename(old.path, _target(old))
    else:
        raise _does_not_fit(here, old)
    take_down(here.location)
    return _swap(here, old, done)


def _exchange_back(moves: Moves, here: _Directory, old: _Directory, *, allow_gap: bool) -> None:
    target, newest = _target(here), load(here.location.store, here.location.names, LAST)[0]
    if here.newest() != LAST or not put_up(here.location, LAST + 1, newest.commit_id, here.location):
        raise RepairError(
            f"{max(here.newest() - LAST, 1)} commits were made since the log was replaced; undoing would "
            "lose them",
            hint="keep the repaired log; the old one stays in the backup",
        )
    if not moves.exchange(here.path, old.path):
        if not allow_gap:
            take_down(here.location)
            raise _gap(here)
        moves.rename(here.path, target)
        moves.rename(old.path, here.path)
        return
    # Its fence stays: a writer may still hold the directory, and what it commits there would be in no table.
    moves.rename(old.path, target)


def _directory(location: LogLocation, moves: Moves) -> _Directory:
    path = location.local_path
    if path is None:
        raise RepairError(
            f"{location.uri} is in an object store, which cannot exchange two directories in one step",
            hint=by_hand(location),
            uri=location.uri,
        )
    return _Directory(location, path, moves)


def _swap(here: _Directory, old: _Directory, done: Done) -> Swap:
    return Swap(str(here.path), str(old.path), done)


def _target(repaired: _Directory) -> Path:
    origin = origin_of(repaired.location) or {}
    target = Path(str(origin.get("target") or f"{repaired.path}_repaired"))
    if repaired.moves.exists(target):
        raise RepairError(
            f"the repaired log goes back to {target}, and something is there already",
            hint="move it away, then undo again",
            path=str(target),
        )
    return target


def _gap(here: _Directory) -> RepairError:
    return RepairError(
        f"the system cannot exchange {here.path} with another directory in one step: readers would find "
        "no log for a moment",
        hint="stop all readers and writers, then allow the gap (--allow-gap)",
        path=str(here.path),
    )


def _does_not_fit(here: _Directory, other: _Directory) -> RepairError:
    if not other.exists:
        return RepairError(f"there is no repaired log at {other.path}", hint="repair the log first")
    return RepairError(
        f"{other.path} is not a finished repair of {here.path} as it is now",
        hint="the log may have got commits since; repair it again, to a new directory",
        path=str(other.path),
    )


_TOOLS: Final = {
    "s3": ("aws s3 sync {0} {1}", "aws s3 rm --recursive {0}"),
    "gs": ("gcloud storage rsync -r {0} {1}", "gcloud storage rm -r {0}"),
    "az": ("azcopy copy --recursive {0}/* {1}", "azcopy remove --recursive {0}"),
}


def by_hand(log: LogLocation, repaired: str | None = None) -> str:
    """Returns the commands that replace a log in an object store; readers must wait while they run."""
    copy, remove = _TOOLS.get(log.location.family, ("copy {0} to {1}", "delete {0}"))
    here, new = log.uri.rstrip("/"), (repaired or f"{log.uri.rstrip('/')}_repaired").rstrip("/")
    return "\n    ".join(
        [
            "stop all readers and writers, then run",
            copy.format(here, here + BACKUP_SUFFIX),
            remove.format(here),
            copy.format(new, here),
        ]
    )
