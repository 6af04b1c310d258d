"""How the files of a slice become rows of the table: by which key, in which way, and piece by piece."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from indextables.errors import ProtocolError
from indextables.log.state.rows import Split

RECORD_KEY: Final = "recordKey"
"""The property that holds the columns identifying a row, as a JSON list."""
MERGE_MODE: Final = "mergeMode"
"""The property that says how rows of one key are merged."""


class MergeMode(StrEnum):
    """What becomes of several rows with one key."""

    RECORD = "record"
    """The newest row is the row."""
    COLUMNS = "columns"
    """Each column has its value from the newest file that sets it."""
    CUSTOM = "custom"
    """Only the system that wrote the files knows; no table of ours is merged like this."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How a table merges its slices."""

    key: tuple[str, ...] = ()
    """The columns that identify a row; none for a table without a record key."""
    mode: MergeMode = MergeMode.RECORD

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MergeRule:
        """Returns the rule in a table's properties.

        >>> MergeRule.of({"recordKey": '["id"]'})
        MergeRule(key=('id',), mode=<MergeMode.RECORD: 'record'>)
        """
        mode = properties.get(MERGE_MODE, MergeMode.RECORD.value)
        if mode not in (MergeMode.RECORD, MergeMode.COLUMNS):
            raise ProtocolError(
                f"the table merges rows in the mode {mode!r}, which this version does not know",
                hint="upgrade indextables",
            )
        return cls(_names(properties.get(RECORD_KEY)), MergeMode(mode))


def _names(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ProtocolError(
            f"the table's property {RECORD_KEY} is not a JSON list of columns: {text!a:.80}",
            hint='it was changed by hand; it looks like ["id"]',
        )
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Piece:
    """The files of one slice that have to be merged; everything in order of `seq`, then of path."""

    group: str
    files: tuple[Split, ...]
    """The files rows are read from."""
    logs: tuple[Split, ...]
    """The log files whose keys hide (or, by columns, change) rows of older files; a data log whose rows
    are read is also among `files`."""
    mode: MergeMode
    key: tuple[str, ...]
    """The columns by which rows are merged."""
