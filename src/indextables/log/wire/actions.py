"""The actions of a commit, as a closed union of frozen values.

A path in these actions is always the *key* of the file: relative to the table, percent-decoded, and inside
the table. The codec translates what other writers spell differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias  # Any: values of JSON fields that this library does not know

from indextables.core.stats import SplitStats
from indextables.core.types import StructType
from indextables.errors import LogReplacedError, ProtocolError

Extra: TypeAlias = Mapping[str, Any]
"""Fields that this version of the library does not know, in the order they were found."""

READER_VERSION: Final = 2
WRITER_VERSION: Final = 2
COMMIT_TRAILER: Final = "commitTrailer"
"""Writer feature: every commit ends in a commitInfo with its checksum, so one without it is torn."""
MERGE_ON_READ: Final = "mergeOnRead"
"""Reader feature: a slice may have delta files, whose rows replace those of older files."""
BEING_REPLACED: Final = "beingReplaced"
"""Writer feature that no writer has: a repaired log is about to take the place of this one, so nobody may commit."""
AVRO_STATE: Final = "avroState"
"""Writer feature of a log that is kept in Avro states, which only IndexTables4Spark writes."""
READER_FEATURES: Final = frozenset({MERGE_ON_READ})
WRITER_FEATURES: Final = frozenset({COMMIT_TRAILER, MERGE_ON_READ})
PARQUET_FORMAT: Final[Mapping[str, Any]] = {"provider": "parquet", "options": {}}
"""The `format` of every table that this library creates."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a reader and a writer must understand to use the table."""

    min_reader: int = READER_VERSION
    min_writer: int = WRITER_VERSION
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = (COMMIT_TRAILER,)
    extra: Extra = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the table is: its schema now, and every schema a split may have been written with."""

    id: str
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    name: str | None = None
    description: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_time: int | None = None
    schema_id: int = 0
    past_schemas: Mapping[int, StructType] = field(default_factory=dict, hash=False)
    extra: Extra = field(default_factory=dict, hash=False)

    def schema_of(self, schema_id: int | None) -> StructType | None:
        """Returns the schema with which a split was written; None if the log does not say."""
        if schema_id is None:
            return None
        return self.schema if schema_id == self.schema_id else self.past_schemas.get(schema_id)


@dataclass(frozen=True, slots=True)
class Add:
    """A file belongs to the table from here on; for a file that does already, its entry is replaced."""

    path: str
    size: int | None
    partition_values: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    modification_time: int | None = None
    data_change: bool = True
    stats: SplitStats | None = field(default=None, hash=False)
    tags: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    schema_id: int | None = None
    seq: int | None = None
    """None: the version of its commit, or a higher number if `Snapshot.next_seq` says so."""
    file_group: str | None = None
    kind: str | None = None
    block: str | None = None
    extra: Extra = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Remove:
    """A file no longer belongs to the table; readers of older versions still need it for a while."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extra: Extra = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Txn:
    """The last batch that an application has committed, so that a retry commits nothing twice."""

    app_id: str
    version: int
    last_updated: int | None = None
    extra: Extra = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Files that only versions below this one need may be gone; a writer that read such a version must not commit."""

    min_read_version: int
    extra: Extra = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """An action that only a newer or another writer knows; `raw` is its line, byte for byte."""

    name: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Who committed what and when; as the trailer of a file it also proves that the file is whole."""

    operation: str | None = None
    timestamp: int | None = None
    commit_id: str | None = None
    parent: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    read_version: int | None = None
    actions: int | None = None
    crc32: int | None = None
    num_files: int | None = None
    extra: Extra = field(default_factory=dict, hash=False)


REPAIR: Final = "REPAIR"
"""The operation of the commits of a repaired log."""
LAST_VERSION: Final = "lastVersion"
"""A parameter of the first commit of a repaired log: its last version, without which the log is incomplete."""


def last_version(first: CommitInfo | None) -> int:
    """Returns the version that a log must have, as its first commit says; 0 if it does not say any."""
    found = first.parameters.get(LAST_VERSION) if first and first.operation == REPAIR else None
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


StateAction: TypeAlias = Protocol | Metadata | Txn | Vacuum | Unknown
"""Actions that are not about files; there are few of them, so they are Python objects."""
Action: TypeAlias = StateAction | Add | Remove
"""The actions that a commit is planned from; its CommitInfo is added when it is written."""


# A table that needs more than this library knows is refused before it is misread.


def check_readable(protocol: Protocol) -> None:
    """Raises ProtocolError unless this library can read a table with this protocol."""
    _check("read", protocol.min_reader, READER_VERSION, protocol.reader_features, READER_FEATURES)


def check_writable(protocol: Protocol) -> None:
    """Raises ProtocolError unless this library can write to a table with this protocol."""
    check_readable(protocol)
    if AVRO_STATE in protocol.writer_features:
        raise ProtocolError(
            "this log is kept in the Avro states of IndexTables4Spark, which only that writes",
            hint="write with IndexTables4Spark; REPAIR INDEXFILES TRANSACTION LOG makes a log in JSON of it",
            needs_version=protocol.min_writer,
            has_version=WRITER_VERSION,
            unknown_features=(AVRO_STATE,),
        )
    if BEING_REPLACED in protocol.writer_features:
        raise LogReplacedError(
            "the log of this table is being replaced by a repaired one and takes no commits until that is done",
            hint="try again in a moment; if the replacement has failed, run it again (repair --replace) or take "
            "it back (repair --undo)",
        )
    _check("written", protocol.min_writer, WRITER_VERSION, protocol.writer_features, WRITER_FEATURES)


def needs_trailer(protocol: Protocol | None) -> bool:
    """Returns True if every commit must end in its checksum, so that a commit without one is torn."""
    return protocol is not None and COMMIT_TRAILER in protocol.writer_features


def _check(verb: str, needs: int, has: int, features: Iterable[str], known: frozenset[str]) -> None:
    unknown = sorted(set(features) - known)
    if needs <= has and not unknown:
        return
    needed = [f"protocol version {needs} (this library has {has})"] if needs > has else []
    needed += [f"the feature {name!r}" for name in unknown]
    raise ProtocolError(
        f"the table cannot be {verb}: it needs {' and '.join(needed)}",
        hint="upgrade indextables",
        needs_version=needs,
        has_version=has,
        unknown_features=tuple(unknown),
    )
