"""Putting a repaired log in place of the old one, and back: readers see one of the two at every moment.

    the log        old ──────────────┐ exchange  ┌─ repaired
    the backup           repaired ───┘ in one    └─ old
    the target     repaired ─ rename ┘ step

Nothing is written down about the progress: each log says itself what it is (the first commit of a repaired
one names its source by a fingerprint), so a run that died is finished, or undone, by looking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from indextables.errors import RepairError
from indextables.log.open.load import Listing, list_log
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.new_log import origin_of
from indextables.ops.repair.plan import fingerprint
from indextables.storage import durable

Mover: TypeAlias = Callable[[Path, Path], object]
Done: TypeAlias = Literal["replaced", "already replaced", "undone", "nothing to undo"]
BACKUP_SUFFIX: Final = "_backup"
_LAST: Final = 1


def rename_durably(source: Path, target: Path) -> None:
    """The directory has its new name, and keeps it through a power cut."""
    target.parent.mkdir(parents=True, exist_ok=True)
    durable.rename_exclusively(source, target)
    for parent in {source.parent, target.parent}:
        durable.fsync_directory(parent)


def exchange_durably(one: Path, two: Path) -> bool:
    """Returns the same for two directories at once; False if the system cannot."""
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

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def listing(self) -> Listing:
        return list_log(self.location.store, self.location.names)

    def is_repair_of(self, other: _Directory) -> bool:
        """Returns True if this log was made from exactly what the other one is now, and is finished."""
        if not self.exists or not other.exists:
            return False
        origin = origin_of(self.location)
        finished = (self.path / "_last_checkpoint").exists()
        return (
            finished
            and origin is not None
            and origin.get("sourceFingerprint") == fingerprint(other.listing())
        )

    def went_on(self) -> bool:
        """Returns True if somebody has committed to this repaired log."""
        return self.listing().newest > _LAST


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
    here, new, old = (_directory(location) for location in (log, repaired, backup_of(log)))
    if here.is_repair_of(old) and not here.went_on() and not new.exists:
        return _swap(here, old, "already replaced")
    if not here.exists and new.is_repair_of(old):
        moves.rename(new.path, here.path)  # a run with a gap died in its middle
        return _swap(here, old, "replaced")
    if new.is_repair_of(here):
        if old.exists:
            raise RepairError(
                f"there is already a backup at {old.path}",
                hint="move it away, or undo, then replace again",
                path=str(old.path),
            )
        moves.rename(new.path, old.path)
    elif not old.is_repair_of(here):
        raise _does_not_fit(here, new)
    if not moves.exchange(here.path, old.path):
        moves.rename(old.path, new.path)
        _check_gap(allow_gap, here)
        moves.rename(here.path, old.path)
        moves.rename(new.path, here.path)
    _check_nothing_was_lost(moves, here, old, new)
    return _swap(here, old, "replaced")


def undo_replace(log: LogLocation, *, allow_gap: bool = False, moves: Moves | None = None) -> Swap:
    """Returns the old log is the table's log again; the repaired one goes back to where it was written.

    RepairError if somebody has committed to the repaired log since: those commits would be lost.
    """
    moves = moves or Moves()
    here, old = _directory(log), _directory(backup_of(log))
    if not old.exists:
        return _swap(here, old, "nothing to undo")
    if not here.exists:
        moves.rename(old.path, here.path)  # a run with a gap died in its middle
        return _swap(here, old, "undone")
    if here.is_repair_of(old):
        _check_nobody_went_on(here)
        target = _target(here)
        if not moves.exchange(here.path, old.path):
            _check_gap(allow_gap, here)
            moves.rename(here.path, target)
            moves.rename(old.path, here.path)
            return _swap(here, old, "undone")
    elif not old.is_repair_of(here):
        raise _does_not_fit(here, old)
    else:
        target = _target(old)
    moves.rename(old.path, target)
    return _swap(here, old, "undone")


def _directory(location: LogLocation) -> _Directory:
    path = location.local_path
    if path is None:
        raise RepairError(
            f"{location.uri} is in an object store, which cannot exchange two directories in one step",
            hint=by_hand(location),
            uri=location.uri,
        )
    return _Directory(location, path)


def _swap(here: _Directory, old: _Directory, done: Done) -> Swap:
    return Swap(str(here.path), str(old.path), done)


def _target(repaired: _Directory) -> Path:
    origin = origin_of(repaired.location) or {}
    return Path(str(origin.get("target") or f"{repaired.path}_repaired"))


def _check_nobody_went_on(here: _Directory) -> None:
    if here.went_on():
        raise RepairError(
            f"{here.listing().newest - _LAST} commits were made since the log was replaced; undoing would "
            "lose them",
            hint="keep the repaired log; the old one stays in the backup",
        )


def _check_nothing_was_lost(moves: Moves, here: _Directory, old: _Directory, new: _Directory) -> None:
    """A writer may have committed to the old log after it was compared and before it was moved."""
    if here.is_repair_of(old):
        return
    if here.went_on() or not moves.exchange(here.path, old.path):
        raise RepairError(
            f"a writer committed to the old log while it was replaced; that commit is only in {old.path}",
            hint="stop all writers, undo by hand and repair again",
            path=str(old.path),
        )
    moves.rename(old.path, new.path)
    raise RepairError(
        "a writer committed to the log while it was being replaced; the log is as the writer left it",
        hint="stop all writers, then repair and replace again",
    )


def _check_gap(allow_gap: bool, here: _Directory) -> None:
    if not allow_gap:
        raise RepairError(
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
