"""How the files of a slice are merged into rows of the table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from indextables.core.types import StructType
from indextables.deprecated import renamed
from indextables.errors import ProtocolError, SchemaError
from indextables.log.state.rows import Split

RECORD_KEY: Final = "recordKey"
"""The property with the columns of the record key, as a JSON list."""
MERGE_MODE: Final = "mergeMode"
"""The property that says how rows with the same key are merged."""


class MergeMode(StrEnum):
    """What becomes of several rows with the same key."""

    RECORD = "record"
    """The newest row is shown."""
    COLUMNS = "columns"
    """Each column comes from the newest file that sets it."""
    CUSTOM = "custom"
    """Only the other system that wrote the files knows; tables of this library are not merged like this."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How the slices of a table are merged."""

    key: tuple[str, ...] = ()
    """The columns of the record key; empty for a table without one."""
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
                f"the table merges rows in the mode {mode!r}, which this version of the library does not know",
                hint="upgrade indextables",
            )
        return cls(_names(properties.get(RECORD_KEY)), MergeMode(mode))

    def columns_set(self, schema: StructType, given: Iterable[str]) -> StructType:
        """Returns the columns that rows with these ones set: where columns are merged, some may be left out."""
        if self.mode is not MergeMode.COLUMNS:
            return schema
        names = {name.lower() for name in (*given, *self.key)}
        return StructType(tuple(field for field in schema if field.name.lower() in names))


def rule_of(properties: Mapping[str, str], verb: str) -> MergeRule:
    """Returns how this table merges rows; SchemaError if it has no key, which `verb` cannot do without."""
    rule = MergeRule.of(properties)
    if not rule.key:
        raise SchemaError(
            f"{verb} replaces rows by their key, and this table has none",
            hint="create it with record_key=[…], or use append, overwrite and delete",
        )
    return rule


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
            hint='somebody has changed it by hand; it should look like ["id"]',
        )
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Piece:
    """The files of one slice that must be merged, in order of `seq`, then of path."""

    file_group: str
    """The name of the slice."""
    files: tuple[Split, ...]
    """The files whose rows are read."""
    deltas: tuple[Split, ...]
    """The delta files whose keys hide rows of older files, or change them in the mode COLUMNS. A data delta
    file whose rows are read is also among `files`."""
    mode: MergeMode
    key: tuple[str, ...]
    """The columns of the record key."""

    logs = renamed("logs", "deltas", removed_in="0.3")
