"""A captured write, carried out: which verb it is, on which table, with which options in force."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from indextables.config import Config
from indextables.core.types import StructType
from indextables.engines.spark.change.replace_where import condition_of_text
from indextables.engines.spark.place.tables_and_options import (
    SparkTable,
    WriteOptions,
    key_names,
    open_table,
    settings_of,
)
from indextables.engines.spark.scan.scan_report import reads_table
from indextables.engines.spark.write.executor import SparkExecutor
from indextables.engines.spark.write.fit import frame_schema
from indextables.errors import (
    ConfigError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata
from indextables.ops.append import append
from indextables.ops.create import new_metadata
from indextables.ops.delete_overwrite import Condition, SamePartitions, overwrite
from indextables.ops.keyed.upsert import upsert
from indextables.ops.replace import create_as, replace_table
from indextables.ops.shared.commit import CommitResult
from indextables.plan.merge_rule import RECORD_KEY, MergeRule

SaveMode: TypeAlias = Literal["append", "overwrite", "error", "ignore", "upsert"]
IfMissing: TypeAlias = Literal["create", "error"]
_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Write:
    """Everything a chain of writer calls has said."""

    frame: DataFrame
    path: str
    mode: SaveMode
    options: WriteOptions = field(default_factory=WriteOptions)
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    if_missing: IfMissing = "create"
    """What a write into a table that is not there does."""
    assign: bool = False
    """Convert values as SQL's INSERT does."""
    description: str | None = None
    """The COMMENT of a new table."""
    replaces: Condition | SamePartitions | None = None
    """What an overwrite replaces, where the options do not say it."""

    @property
    def session(self) -> SparkSession:
        """Returns the session that the rows come from."""
        return self.frame.sparkSession


def execute(write: Write) -> CommitResult | None:
    """Carries out the write in one commit; None if there was nothing to do (`ignore`)."""
    _check_options(write)
    work = _Work.of(write)
    for _ in range(2):
        if work.log.exists():
            return _told(_into_existing(write, work), write)
        if write.if_missing == "error":
            raise TableNotFoundError(
                f"there is no table at {write.path}", hint="create it first", uri=write.path
            )
        try:
            return _told(work.create(write), write)
        except TableExistsError:
            # It appeared while the rows were written. Who asked for a new table is told so; a row
            # that was to be added belongs into it.
            if write.mode == "error":
                raise
    return None


def _into_existing(write: Write, work: _Work) -> CommitResult | None:
    match write.mode:
        case "error":
            raise TableExistsError(
                f"there is a table at {write.path} already",
                hint="mode('append') adds rows, mode('overwrite') replaces them",
                uri=write.path,
            )
        case "ignore":
            return None
        case "overwrite" if write.options.overwrite_schema:
            return work.replace(write)
        case _:
            work.check_key(write)
            work.check_partitions(write)
            return _into_kept(write, work)


def _into_kept(write: Write, work: _Work) -> CommitResult:
    """Returns a write into a table that stays what it is: its schema, its partitions and its key."""
    options: dict[str, Any] = {
        "merge_schema": write.options.merge_schema,
        "options": work.settings,
        "txn": write.options.txn,
    }
    match write.mode:
        case "append":
            return append(work.log, work.executor, write.frame, derived=work.derived, **options)
        case "upsert":
            return upsert(work.log, work.executor, write.frame, derived=work.derived, **options)
        case "overwrite":
            return overwrite(work.log, work.executor, write.frame, _replaced(write), **options)
        case _:
            raise AssertionError(write.mode)


@dataclass(frozen=True, slots=True)
class _Work:
    """The table, the options in force, and Spark to do it."""

    table: SparkTable
    log: TransactionLog
    executor: SparkExecutor
    settings: Mapping[str, Any]
    derived: bool
    """The rows were read from the table that they go into, and replace some of its rows."""

    @classmethod
    def of(cls, write: Write) -> _Work:
        table = open_table(write.session, write.path)
        settings = settings_of(write.session, write.options.settings)
        config = Config.of(write=settings).validate()
        # Rows that replace others and were read from the same table would be others on a newer version.
        derived = _replaces(write, table.log) and reads_table(write.frame, table.place.root)
        log = table.log.configured(config, replans=not derived)
        executor = SparkExecutor(write.session, table.place, write.options.parquet, write.assign)
        return cls(replace(table, log=log), log, executor, settings, derived)

    def check_key(self, write: Write) -> None:
        """Raises if a write names another key or merge mode than the table's own."""
        rule = MergeRule.of(self.log.snapshot().properties)
        asked, mode = write.options.record_key, write.options.merge_mode
        if not rule.key and (asked or mode is not None):
            raise ConfigError(
                f"the table at {write.path} has no record key, so its rows cannot be written by one",
                hint="leave out recordKey and mergeMode, or make the table anew with a key: "
                "mode('overwrite') and option('overwriteSchema', 'true')",
            )
        if asked and {name.lower() for name in asked} != {name.lower() for name in rule.key}:
            raise ConfigError(
                f"the table has the record key {list(rule.key)}, this write names {list(asked)}",
                hint="leave out recordKey: the table knows its key",
            )
        if mode is not None and mode != rule.mode:
            raise ConfigError(
                f"the table merges rows by {rule.mode.value}, this write says {mode!r}",
                hint="leave out mergeMode: it is said once, when a table is created",
            )

    def create(self, write: Write) -> CommitResult:
        return create_as(
            self.log,
            self.executor,
            write.frame,
            _metadata(write),
            options=self.settings,
            txn=write.options.txn,
        )

    def replace(self, write: Write) -> CommitResult:
        metadata = _metadata(write, self.log.snapshot())
        return replace_table(self.log, self.executor, write.frame, metadata, options=self.settings)

    def check_partitions(self, write: Write) -> None:
        """Raises if a write names other partition columns than the table's own."""
        has = self.log.snapshot().partition_columns
        asked = write.partition_by
        if asked and [name.lower() for name in asked] != [name.lower() for name in has]:
            raise SchemaMismatchError(
                f"the table is partitioned by {list(has)}, this write by {list(asked)}",
                hint="leave out partitionBy: the table knows its partitions; a table with other ones "
                "is written with mode('overwrite') and option('overwriteSchema', 'true')",
                partition_columns=has,
            )


def _replaces(write: Write, log: TransactionLog) -> bool:
    """Returns whether rows of the table may give way to those of the write."""
    if write.mode == "append":
        return log.exists() and RECORD_KEY in log.snapshot().properties
    return write.mode in {"overwrite", "upsert"}


def _metadata(write: Write, replaced: Snapshot | None = None) -> Metadata:
    """Returns the metadata of a table of exactly these rows."""
    properties = {**(replaced.properties if replaced else {}), **write.properties}
    key = write.options.record_key or key_names(properties.get(RECORD_KEY, ""))
    if write.mode == "upsert" and not key:
        raise SchemaError(
            f"there is no table at {write.path}, and a new one needs a key to be written by",
            hint="option('recordKey', 'id') names the columns that identify a row",
        )
    return new_metadata(
        with_key(frame_schema(write.frame), key),
        partition_by=write.partition_by,
        record_key=key,
        merge_mode=write.options.merge_mode,
        properties=properties,
        description=write.description,
    )


def with_key(schema: StructType, key: Sequence[str]) -> StructType:
    """Returns the schema with key columns that are never NULL.

    A row where one is will stop the write.
    """
    names = {name.lower() for name in key}
    return StructType(
        tuple(replace(f, nullable=f.nullable and f.name.lower() not in names) for f in schema)
    )


def _check_options(write: Write) -> None:
    options = write.options
    if options.upsert and write.mode != "upsert":
        raise ConfigError(
            f"option upsert and mode {write.mode!r} exclude each other",
            hint="upsert goes with mode('append'), or is itself a mode: mode('upsert')",
        )
    for name, value in (
        ("replaceWhere", options.replace_where),
        ("partitionOverwriteMode", options.overwrite_mode),
        ("overwriteSchema", options.overwrite_schema or None),
    ):
        if value is not None and write.mode != "overwrite":
            raise ConfigError(f"{name} needs mode('overwrite')", hint="this write only adds rows")
    if options.replace_where is not None and options.overwrite_mode == "dynamic":
        raise ConfigError(
            "replaceWhere and partitionOverwriteMode=dynamic exclude each other",
            hint="the first says itself what is replaced",
        )
    if options.overwrite_schema and (options.replace_where or options.overwrite_mode == "dynamic"):
        raise ConfigError(
            "overwriteSchema replaces the whole table, not a part of it",
            hint="leave out replaceWhere and partitionOverwriteMode",
        )
    says_what = write.replaces is not None and write.replaces != Condition()
    if says_what and (options.overwrite_schema or options.replace_where is not None):
        raise ConfigError(
            "this write says itself what is replaced, and an option says it once more",
            hint="leave out replaceWhere and overwriteSchema",
        )


def _replaced(write: Write) -> Condition | SamePartitions:
    if write.replaces is not None:
        return write.replaces
    if write.options.replace_where is not None:
        return condition_of_text(write.session, write.path, write.options.replace_where)
    return SamePartitions() if write.options.is_dynamic(write.session) else Condition()


def _told(result: CommitResult | None, write: Write) -> CommitResult | None:
    if result is not None:
        _logger.info(
            "%s: version %d, %s, %s", write.path, result.version, result.operation, dict(result.metrics)
        )
    return result
