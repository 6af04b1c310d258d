"""Which files a log consists of, by their names alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from indextables.storage.base import ObjectMeta

LOG_DIRECTORY: Final = "_transaction_log"
WIDTH: Final = 18
"""Digits of a version in the logs this library creates."""
WIDTHS: Final = (18, 20)
"""Digits a reader understands; 20 is what other writers of this format use."""

Kind: TypeAlias = Literal["commit", "checkpoint", "part"]

_NAME: Final = re.compile(
    r"(?P<version>\d{18}|\d{20})"
    r"(?P<rest>\.json|\.checkpoint\.json|\.checkpoint\.[0-9A-Za-z-]+\.parquet)"
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log as a listing shows it."""

    kind: Kind
    version: int
    width: int
    key: str
    size: int = -1
    modified_ms: int = -1

    @property
    def name(self) -> str:
        """The name without the directory, as error messages show it."""
        return self.key.rpartition("/")[2]

    @property
    def directory(self) -> str:
        """The log directory it is in."""
        return self.key.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class LogNames:
    """The names inside one log directory; a repair reads and writes logs beside the usual one."""

    directory: str = LOG_DIRECTORY

    @property
    def prefix(self) -> str:
        """What every key of the log starts with."""
        return f"{self.directory}/"

    @property
    def hint(self) -> str:
        """The pointer to a checkpoint: a hint, never the truth."""
        return f"{self.directory}/_last_checkpoint"

    def commit(self, version: int, width: int = WIDTH) -> str:
        """The key of a commit.

        Examples:
            >>> LogNames().commit(7)
            '_transaction_log/000000000000000007.json'
        """
        return f"{self.directory}/{version:0{width}d}.json"

    def checkpoint(self, version: int, width: int = WIDTH) -> str:
        """The key of a checkpoint, or of the manifest of its parts."""
        return f"{self.directory}/{version:0{width}d}.checkpoint.json"

    def part(self, version: int, identity: str, width: int = WIDTH) -> str:
        """The key of a Parquet part, named after the checkpoint that first wrote it."""
        return f"{self.directory}/{version:0{width}d}.checkpoint.{identity}.parquet"

    def before(self, version: int, width: int = WIDTH) -> str:
        """A key that sorts right before every file of this version (in this width)."""
        return f"{self.directory}/{version:0{width}d}"

    def parse(self, meta: ObjectMeta) -> LogFile | None:
        """What this object is to the log; None for everything that is not part of it."""
        directory, _, name = meta.key.rpartition("/")
        found = _NAME.fullmatch(name) if directory == self.directory else None
        if found is None:
            return None
        digits, rest = found["version"], found["rest"]
        return LogFile(_kind(rest), int(digits), len(digits), meta.key, meta.size, meta.modified_ms)

    def parse_all(self, listing: Iterable[ObjectMeta]) -> Iterator[LogFile]:
        """The log's files of a listing."""
        for meta in listing:
            if (file := self.parse(meta)) is not None:
                yield file


def _kind(rest: str) -> Kind:
    if rest == ".json":
        return "commit"
    return "checkpoint" if rest == ".checkpoint.json" else "part"
