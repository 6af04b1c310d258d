"""What is wrong with a log, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from indextables.errors import RepairError


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in the log that cannot be read; `line` is 0 if the file as a whole is meant."""

    file: str
    line: int
    reason: str
    needed: bool = True
    """False if other files of the log are enough for the state of the table."""

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Excluded:
    """A split that the log names but that is not stored as the log describes it."""

    path: str
    reason: str
    is_delta: bool = False
    """True for a delta file, whose rows replace or delete rows of older files."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


_SHOWN = 100


def listed(things: Iterable[object]) -> str:
    """Returns all of them as text, or the first hundred and how many more there are."""
    texts = [str(thing) for thing in things]
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more


def incomplete(findings: Iterable[Finding]) -> RepairError:
    """Returns the error for a log that cannot be proved complete."""
    found = tuple(findings)
    return RepairError(
        f"the log is not complete: {listed(found)}",
        hint="restore these files from a backup, then repair again",
        findings=found,
        file=found[0].file,
        line=found[0].line,
    )


def disagreement(message: str, file: str) -> RepairError:
    """Returns the error for two intact sources that disagree, of which no program can say which is right."""
    return RepairError(
        message,
        hint="find out which writer wrote which file, move the wrong one out of the log, then repair again",
        file=file,
        line=0,
    )
