"""One finding of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

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
    """What is wrong where; `line` counts from 1 in files of the log."""

    kind: Kind
    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message} [{self.kind}]"
