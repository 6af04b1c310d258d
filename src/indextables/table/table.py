"""The handle users hold. Each call sees the newest version of the table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from indextables.config import TARGET_FILE_SIZE, Config, layered
from indextables.core.types import StructType
from indextables.engines.arrow.conditions import Rules
from indextables.errors import ConfigError, NotATableError, PredicateError, TableNotFoundError
from indextables.log.open.history import History
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops import analyze as _analyze
from indextables.ops.alter import set_properties
from indextables.ops.append import append
from indextables.ops.check.check import CheckReport, check
from indextables.ops.compact import Threshold, compact
from indextables.ops.convert.convert import convert as _convert
from indextables.ops.convert.convert import plan_convert
from indextables.ops.create import as_schema, create, new_metadata
from indextables.ops.delete_overwrite import delete, overwrite
from indextables.ops.evolve import evolve
from indextables.ops.keyed.upsert import upsert
from indextables.ops.optimize import Clustering, optimize
from indextables.ops.restore import restore
from indextables.ops.rollback import rollback
from indextables.ops.shared.commit import CommitResult, Condition
from indextables.ops.shared.executor import Executor
from indextables.ops.truncate_history import TruncationPlan, truncate_time_travel
from indextables.ops.vacuum import VacuumPlan, vacuum
from indextables.parquet.write.curves import Curve
from indextables.parquet.write.executor import ArrowExecutor
from indextables.plan.planner import Planner, plan_files
from indextables.storage.base import LogStore
from indextables.table.arguments import (
    Location,
    Moment,
    Names,
    Progress,
    Where,
    checked,
    condition_of,
    count_of,
    names_of,
    not_a_table,
    point_in_time,
    predicate_of,
    settings_of,
    store_of,
)
from indextables.table.recovery import describe_log
from indextables.table.scan import Query, QueryResult, Scan, TablePlan

if TYPE_CHECKING:
    import pandas as pd

    from indextables.engines.arrow.dataset import TableDataset


# What keeps a table in shape: better files, statistics, history, and returning to older versions.


@checked
class Upkeep:
    """The methods of a table that look after its files and its history. `Table` adds those that read and write rows."""

    def __init__(self, store: LogStore, options: Mapping[str, object] | None) -> None:
        self._store = store
        self._session = dict(settings_of(options))
        self._log = TransactionLog(store, Config.of(session=self._session))
        self._executor: Executor = ArrowExecutor(store)

    def on(self, spark: Any) -> Self:
        """Returns the same table with its work done as jobs of a Spark session.

        Args:
            spark: The session that runs the jobs. `append`, `overwrite` and `upsert` then take its DataFrames.

        Returns:
            A handle of its own; this one still works in this process.

        Example:
            >>> import indextables as it
            >>> it.Table("/data/trips").on(spark).optimize()  # doctest: +SKIP
        """
        from indextables.engines.spark.write.executor import (  # noqa: PLC0415 - loads pyspark
            spark_executor,
        )

        other = copy(self)
        other._executor = spark_executor(spark, self._store.uri)  # noqa: SLF001 - its own class
        return other

    def optimize(
        self,
        where: Where = None,
        *,
        z_order_by: Names | None = None,
        hilbert_by: Names | None = None,
        target_size: int | str | None = None,
        options: Mapping[str, object] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """Writes the same rows in better splits: packs small ones together, or sorts all rows along a curve.

        A curve through several columns lets a condition on any of them skip splits. Hilbert's curve keeps
        rows closer together than Z-order and takes a little longer.

        Args:
            where: Work only on the splits that may hold a row for which this condition is TRUE.
            z_order_by: Sort along a Z-order curve through these columns.
            hilbert_by: Sort along a Hilbert curve through these columns.
            target_size: The size of a new split, in bytes or as text such as "128MB".
            options: Settings for this call.
            timezone: The time zone of timestamps in `where`.

        Returns:
            The commit; nothing is committed if the splits are good as they are.

        Raises:
            ConfigError: Both curves were given, or a setting is wrong.
            UnknownColumnError: A curve's column is not in the table.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://optimize", pa.schema({"n": pa.int64()}))
            >>> for n in range(3):
            ...     _ = table.append(pa.table({"n": [n]}))
            >>> table.optimize().metrics["numRemovedFiles"]
            3
        """
        if z_order_by is not None and hilbert_by is not None:
            raise ConfigError("z_order_by and hilbert_by exclude each other", hint="choose one curve")
        columns = hilbert_by if z_order_by is None else z_order_by
        curve: Curve = "z" if hilbert_by is None else "hilbert"
        return optimize(
            self._log,
            self._executor,
            Condition(predicate_of(where, timezone), timezone),
            clustering=None if columns is None else Clustering(names_of(columns), curve),
            target_bytes=_size(target_size),
            options=self._options(options),
        )

    def compact(
        self,
        where: Where = None,
        *,
        min_logs: int = 1,
        min_percent: float = 0,
        progress: Progress | None = None,
        options: Mapping[str, object] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """Writes each slice with delta files as one new base file, so that reading it merges nothing. No row changes.

        Args:
            where: Compact only slices that may show a row for which this condition is TRUE.
            min_logs: Leave slices with fewer delta files alone.
            min_percent: Leave slices alone whose delta files are smaller than this share of the base file.
            progress: Called with the number of slices compacted and of all to compact.
            options: Settings for this call.
            timezone: The time zone of timestamps in `where`.

        Returns:
            The commit; nothing is committed if no slice qualifies.

        Raises:
            ConfigError: A threshold or a setting is wrong.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string())])
            >>> table = it.Table.create("memory://compact", schema, record_key="id")
            >>> for city in ("Oslo", "Rome"):
            ...     _ = table.upsert(pa.table({"id": [1], "city": [city]}))
            >>> table.compact().metrics["numCompactedSlices"]
            1
        """
        return compact(
            self._log,
            self._executor,
            Condition(predicate_of(where, timezone), timezone),
            threshold=Threshold(min_logs, min_percent),
            progress=progress,
            options=self._options(options),
        )

    def analyze(
        self,
        columns: Names | None = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        options: Mapping[str, object] | None = None,
    ) -> CommitResult:
        """Computes the statistics that splits lack, from their rows, and commits them. No data is rewritten.

        Args:
            columns: The columns to compute them for; by default those a write would collect.
            rebuild: Compute them for every split, even where they are complete.
            progress: Called with the number of splits read and of all to read.
            options: Settings for this call.

        Returns:
            The commit; nothing is committed if no split lacks any.

        Raises:
            UnknownColumnError: A column is not in the table, or is a partition column.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://analyze", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> table.analyze(rebuild=True).metrics["numAnalyzedFiles"]
            1
        """
        return _analyze.analyze(
            self._log,
            self._executor,
            None if columns is None else names_of(columns),
            rebuild=rebuild,
            progress=progress,
            options=self._options(options),
        )

    def drop_statistics(self, columns: Names) -> CommitResult:
        """Removes the statistics of some columns from the log. Queries stay correct and skip less.

        Args:
            columns: The columns; a struct stands for all its fields.

        Returns:
            The commit; nothing is committed if there are no such statistics.

        Raises:
            UnknownColumnError: A column is not in the table, or is a partition column.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://drop_statistics", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> table.drop_statistics("n").version
            2
        """
        return _analyze.drop_statistics(self._log, names_of(columns))

    def statistics_info(self) -> list[_analyze.ColumnStatistics]:
        """Returns how many splits have statistics, for each column.

        Returns:
            One entry for each column and nested field. Partition columns are left out: the log has their values.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://statistics_info", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> [(found.column, found.complete) for found in table.statistics_info()]
            [(('n',), 1)]
        """
        return _analyze.statistics_info(self._log.snapshot())

    def restore(self, version: int | None = None, *, timestamp: Moment | None = None) -> CommitResult:
        """Brings back the rows of an older version, as a new version.

        Columns that were added since then stay, and restored rows have NULL in them.

        Args:
            version: The version to go back to.
            timestamp: The moment to go back to, instead of a version.

        Returns:
            The commit.

        Raises:
            ConfigError: Neither or both were given.
            VersionNotFoundError: The log no longer has that version.
            ObjectNotFoundError: Data files of that version are gone.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://restore", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1]}))
            >>> _ = table.delete("true")
            >>> _ = table.restore(version=1)
            >>> table.scan().to_arrow()["n"].to_pylist()
            [1]
        """
        if (version is None) == (timestamp is None):
            raise ConfigError("restore needs a version or a timestamp", hint="restore(version=12)")
        return restore(self._log, self._log.snapshot(*point_in_time(version, timestamp)))

    def rollback(self, version: int) -> CommitResult:
        """Undoes what one version did and keeps what later versions did.

        Args:
            version: The version to undo.

        Returns:
            The commit.

        Raises:
            CommitConflictError: A later version builds on it; the error names that version.
            VersionNotFoundError: There is no such version, or the log no longer has it.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://rollback", pa.schema({"n": pa.int64()}))
            >>> for n in (1, 2):
            ...     _ = table.append(pa.table({"n": [n]}))
            >>> _ = table.rollback(1)
            >>> table.scan().to_arrow()["n"].to_pylist()
            [2]
        """
        return rollback(self._log, version)

    def checkpoint(self) -> int:
        """Writes a checkpoint of the newest version, so that opening the table reads fewer commits.

        Returns:
            The version of the checkpoint.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> it.Table.create("memory://checkpoint", pa.schema({"n": pa.int64()})).checkpoint()
            0
        """
        return self._log.checkpoint().version

    def truncate_time_travel(self, *, apply: bool = False) -> TruncationPlan:
        """Lists the files of the log that only older versions need, and deletes them if told to.

        Args:
            apply: Delete them. The newest version is then the only one left.

        Returns:
            The files, and whether they were deleted.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://truncate_time_travel", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1]}))
            >>> len(table.truncate_time_travel().files)
            1
        """
        return truncate_time_travel(self._log, apply=apply)

    def vacuum(
        self,
        *,
        apply: bool = False,
        allow_short_retention: bool = False,
        progress: Progress | None = None,
        options: Mapping[str, object] | None = None,
    ) -> VacuumPlan:
        """Lists the data files that no version within the retention needs, and deletes them if told to.

        Args:
            apply: Delete them.
            allow_short_retention: Allow a retention below the table's own (7 days if it has none). Writes that
                began before it are then refused, and queries of older versions lose their files.
            progress: Called with the number of files deleted and of all to delete.
            options: Settings for this call, such as the retention.

        Returns:
            The files, and whether they were deleted.

        Raises:
            ConfigError: The retention is too short and that was not allowed.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> it.Table.create("memory://vacuum", pa.schema({"n": pa.int64()})).vacuum().files
            ()
        """
        return vacuum(
            self._log,
            apply=apply,
            allow_short_retention=allow_short_retention,
            progress=progress,
            options=self._options(options),
        )

    def check(self, *, deep: bool = False, progress: Progress | None = None) -> CheckReport:
        """Looks for problems in the log and in the files it names.

        Args:
            deep: Also read every data file and compare its rows with the log.
            progress: Called with the number of files checked and of all files.

        Returns:
            The problems found, each with its file and line. Printed, it is a summary.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> print(it.Table.create("memory://check", pa.schema({"n": pa.int64()})).check())
            1 commits, 0 files (log and files): no problem found
        """
        return check(self._log, self._executor, deep=deep, progress=progress)

    def _options(self, call: Mapping[str, object] | None) -> Mapping[str, object]:
        return layered(settings_of(call), self._session)


def _size(size: int | str | None) -> int | None:
    """Returns a size in bytes, given as a number or as text such as 128MB."""
    if size is None or isinstance(size, int):
        return size
    return Config.of(write={TARGET_FILE_SIZE.key: size}).get(TARGET_FILE_SIZE)


@checked
class Table(Upkeep):
    """A table at a path or URI. Opening it reads the log and no data.

    Args:
        path: The table's path or URI, or a store.
        options: Settings (`spark.indextables.…`) for everything done through this handle. The options of a
            single call go before them, and they go before the table's own properties.
        storage_options: Credentials and endpoints of an object store.

    Raises:
        TableNotFoundError: There is nothing at this path.
        NotATableError: What is there is no table, or one of another format.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create(
        ...     "memory://trips", pa.schema({"city": pa.string(), "km": pa.int64()})
        ... )
        >>> _ = table.append(pa.table({"city": ["Oslo", "Rome"], "km": [3, 14]}))
        >>> it.Table("memory://trips").scan("km > 5").to_arrow().to_pylist()
        [{'city': 'Rome', 'km': 14}]
    """

    def __init__(
        self,
        path: Location,
        *,
        options: Mapping[str, object] | None = None,
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(store_of(path, storage_options), options)
        try:
            self._log.snapshot()
        except (TableNotFoundError, NotATableError) as error:
            raise not_a_table(self._store, error) from None

    @classmethod
    def create(
        cls,
        path: Location,
        schema: object,
        *,
        partition_by: Names = (),
        record_key: Names = (),
        merge_mode: str | None = None,
        properties: Mapping[str, object] | None = None,
        name: str | None = None,
        description: str | None = None,
        options: Mapping[str, object] | None = None,
        storage_options: Mapping[str, object] | None = None,
    ) -> Table:
        """Creates an empty table.

        Args:
            path: Where to create it: a path, a URI or a store.
            schema: A `pyarrow.Schema`, a Spark `StructType`, or the JSON text of one.
            partition_by: The partition columns.
            record_key: The columns that tell one row from another; `upsert` then replaces rows by them.
            merge_mode: What an upsert replaces: "record", the whole row, or "columns", only the columns given.
            properties: The table's own settings, kept in its log.
            name: A name for people.
            description: A description for people.
            options: Settings for everything done through this handle.
            storage_options: Credentials and endpoints of an object store.

        Returns:
            The table.

        Raises:
            TableExistsError: There is a table already.
            NotATableError: There is something else.
            SchemaError: The schema, the partition columns or the record key cannot be those of a table.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> schema = pa.schema({"day": pa.date32(), "km": pa.int64()})
            >>> it.Table.create("memory://create", schema, partition_by="day")
            Table('memory://create', version=0, files=0)
        """
        metadata = new_metadata(
            as_schema(schema),
            partition_by=names_of(partition_by),
            record_key=names_of(record_key),
            merge_mode=merge_mode,
            properties=settings_of(properties),
            name=name,
            description=description,
        )
        store = store_of(path, storage_options)
        create(TransactionLog(store, Config.of(session=settings_of(options))), metadata)
        return cls(store, options=options)

    @classmethod
    def convert(
        cls,
        path: Location,
        *,
        partition_schema: object | None = None,
        properties: Mapping[str, object] | None = None,
        options: Mapping[str, object] | None = None,
        storage_options: Mapping[str, object] | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """Makes a table of a directory of Parquet files: adds a log and leaves the files as they are.

        Args:
            path: The directory: a path, a URI or a store.
            partition_schema: The types of the partition columns; without it they are found from the values.
            properties: The table's own settings, kept in its log.
            options: Settings for everything done through this handle.
            storage_options: Credentials and endpoints of an object store.
            progress: Called with the number of files read and of all files.

        Returns:
            The table.

        Raises:
            TableExistsError: The directory is a table already.
            TableNotFoundError: There is nothing at this path.
            NotATableError: What is there cannot be made a table.
            SchemaMismatchError: The files cannot be those of one table; the error says why.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> with tempfile.TemporaryDirectory() as directory:
            ...     pq.write_table(pa.table({"n": [1, 2]}), f"{directory}/rows.parquet")
            ...     it.Table.convert(directory).scan("n > 1").count()
            1
        """
        store = store_of(path, storage_options)
        log = TransactionLog(store, Config.of(session=settings_of(options)))
        plan = plan_convert(
            store,
            partition_schema=partition_schema,
            properties=settings_of(properties),
            progress=progress,
        )
        _convert(log, plan)
        return cls(store, options=options)

    # -- what the table is ---------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Returns where the table is."""
        return self._store.uri

    @property
    def version(self) -> int:
        """Returns the newest version."""
        return self._log.snapshot().version

    @property
    def schema(self) -> StructType:
        """Returns the columns, partition columns included."""
        return self._log.snapshot().schema

    @property
    def properties(self) -> Mapping[str, str]:
        """Returns the table's own settings."""
        return self._log.snapshot().properties

    def snapshot(self, version: int | None = None, timestamp: Moment | None = None) -> Snapshot:
        """Opens one version of the table.

        Args:
            version: The version; the newest without it.
            timestamp: A moment instead: milliseconds since 1970, ISO text or an aware datetime.

        Returns:
            The version that was the newest then.

        Raises:
            VersionNotFoundError: The log does not have that version.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://snapshot", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1]}))
            >>> table.snapshot(version=0).num_files
            0
        """
        return self._log.snapshot(*point_in_time(version, timestamp))

    def history(self, limit: int | None = None) -> History:
        """Lists the commits that the log still has, newest first.

        Args:
            limit: The largest number to return; None returns all.

        Returns:
            The commits, each with its time, operation and metrics.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://history", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1]}))
            >>> [entry.operation for entry in table.history()]
            ['APPEND', 'CREATE TABLE']
        """
        return self._log.history(count_of(limit))

    def describe_log(self, *, include_all: bool = False) -> pa.Table:
        """Lists the actions of the log.

        Args:
            include_all: Read every file of the log instead of the newest checkpoint and what follows it.

        Returns:
            One row for each action, with its version, file, line and content.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://table.describe_log", pa.schema({"n": pa.int64()}))
            >>> table.describe_log()["action"].to_pylist()
            ['protocol', 'metaData', 'commitInfo']
        """
        return describe_log(self._store, include_all=include_all)

    def __repr__(self) -> str:
        now = self._log.snapshot()
        return f"Table({self.uri!r}, version={now.version}, files={now.num_files})"

    def _repr_html_(self) -> str:
        return self._log.snapshot()._repr_html_()

    # -- reading -------------------------------------------------------------------------------

    def plan(
        self,
        where: Where = None,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
        read_optimized: bool = False,
    ) -> TablePlan:
        """Finds the files a condition needs, without opening them.

        Args:
            where: SQL text, a predicate such as `it.col("km") > 5`, or a ColumnDomain; None needs all files.
            version: The version to read; the newest without it.
            timestamp: A moment instead of a version.
            timezone: The time zone of timestamps in `where`.
            read_optimized: Leave delta files out: the rows are those of the last compaction.

        Returns:
            The files, and a report of what was skipped and why.

        Raises:
            PredicateError: The condition cannot be understood.
            UnknownColumnError: It names a column the table does not have.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://table.plan", pa.schema({"n": pa.int64()}))
            >>> for n in range(3):
            ...     _ = table.append(pa.table({"n": [n]}))
            >>> len(table.plan("n = 2").files)
            1
        """
        condition = condition_of(where, timezone)
        snapshot = self.snapshot(version, timestamp)
        plan = plan_files(snapshot, condition, timezone, read_optimized=read_optimized)
        return TablePlan(plan, self._store)

    def scan(
        self,
        where: Where = None,
        columns: Names | None = None,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
        read_optimized: bool = False,
    ) -> Scan:
        """Returns the rows for which a condition is TRUE, read only from the files that may hold any.

        Args:
            where: SQL text, a predicate such as `it.col("km") > 5`, or a ColumnDomain; None means all rows.
            columns: The columns to read; all without it.
            version: The version to read; the newest without it.
            timestamp: A moment instead of a version.
            timezone: The time zone of timestamps in `where`.
            read_optimized: Leave delta files out: the rows are those of the last compaction.

        Returns:
            A scan, read when one of its `to_…` methods is called.

        Raises:
            PredicateError: The condition cannot be understood, or not be computed from rows.
            UnknownColumnError: A column is not in the table.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://scan", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2, 3]}))
            >>> table.scan("n > 1").to_arrow()["n"].to_pylist()
            [2, 3]
        """
        plan = self.plan(
            where,
            version=version,
            timestamp=timestamp,
            timezone=timezone,
            read_optimized=read_optimized,
        )
        return plan.scan(None if columns is None else names_of(columns))

    def head(self, limit: int | None = 10) -> pa.Table:
        """Reads the first rows, from no more files than it takes.

        Args:
            limit: The number of rows; None for all.

        Returns:
            The rows, fewer if the table has fewer.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://head", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2, 3]}))
            >>> table.head(2)["n"].to_pylist()
            [1, 2]
        """
        return self.scan().head(count_of(limit))

    def count(self, where: Where = None, *, timezone: str = "UTC") -> int:
        """Counts rows; a file of which all rows or none match is not opened.

        Args:
            where: SQL text, a predicate such as `it.col("km") > 5`, or a ColumnDomain; None counts all rows.
            timezone: The time zone of timestamps in `where`.

        Returns:
            The number of rows for which the condition is TRUE.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://count", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2, 3]}))
            >>> table.count(), table.count("n > 1")
            (3, 2)
        """
        return self.scan(where, timezone=timezone).count()

    def to_arrow(self) -> pa.Table:
        """Reads all rows of the newest version.

        Returns:
            The rows as an Arrow table.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://to_arrow", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> table.to_arrow()["n"].to_pylist()
            [1, 2]
        """
        return self.scan().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Reads all rows of the newest version.

        Returns:
            The rows as a pandas DataFrame.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://to_pandas", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> table.to_pandas()["n"].tolist()
            [1, 2]
        """
        return self.scan().to_pandas()

    def to_polars(self) -> Any:
        """Reads all rows of the newest version.

        Returns:
            The rows as a Polars DataFrame.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://to_polars", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> table.to_polars()["n"].to_list()
            [1, 2]
        """
        return self.scan().to_polars()

    def read(
        self,
        query_builder: Query,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
        read_optimized: bool = False,
    ) -> QueryResult:
        """Runs a QueryBuilder and opens only the files that its leading filters do not exclude.

        Args:
            query_builder: The query. `date_range` filters the column named by the table's property `index_column`.
            version: The version to read; the newest without it.
            timestamp: A moment instead of a version.
            timezone: The time zone of timestamps in the query.
            read_optimized: Leave delta files out: the rows are those of the last compaction.

        Returns:
            The result, computed when one of its `to_…` methods is called.

        Raises:
            PredicateError: The query cannot be run over this table.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://read", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2, 3]}))
            >>> q = it.QueryBuilder()
            >>> table.read(q[q["n"] > 1]).to_arrow()["n"].to_pylist()
            [2, 3]
        """
        snapshot = self.snapshot(version, timestamp)
        index_column = snapshot.properties.get("index_column")
        predicate = query_builder.pruning_predicate(snapshot.schema, index_column)
        plan = plan_files(snapshot, predicate, timezone, read_optimized=read_optimized)
        return QueryResult(TablePlan(plan, self._store), query_builder, index_column, timezone)

    def to_dataset(
        self,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        rules: Rules = Rules.SQL,
        read_optimized: bool = False,
    ) -> TableDataset:
        """Returns one version as a `pyarrow.dataset.Dataset`; whatever scans it opens only the files it needs.

        Args:
            version: The version to read; the newest without it.
            timestamp: A moment instead of a version.
            rules: How filters treat NULL and NaN: as SQL does, like the engines that read datasets, or as
                PyArrow does with `Rules.ARROW`.
            read_optimized: Leave delta files out: the rows are those of the last compaction.

        Returns:
            The dataset.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa, pyarrow.compute as pc
            >>> table = it.Table.create("memory://to_dataset", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2, 3]}))
            >>> table.to_dataset().count_rows(filter=pc.field("n") > 1)
            2
        """
        # pyarrow.dataset takes 100 ms to load, and pandas with it
        from indextables.engines.arrow.dataset import TableDataset  # noqa: PLC0415

        snapshot = self.snapshot(version, timestamp)
        return TableDataset(Planner(self._log, snapshot, read_optimized=read_optimized), rules=rules)

    # -- writing -------------------------------------------------------------------------------

    def append(
        self, data: object, *, merge_schema: bool = False, options: Mapping[str, object] | None = None
    ) -> CommitResult:
        """Adds rows. In a table with a record key, rows replace those that have their keys, as `upsert` does.

        Args:
            data: Arrow, pandas or Polars data; on a Spark session, its DataFrame.
            merge_schema: Add new columns to the table and widen types as the data needs; a nullable column
                the data leaves out is NULL.
            options: Settings for this call.

        Returns:
            The commit; nothing is committed if there are no rows.

        Raises:
            SchemaMismatchError: The data does not fit the table.
            CommitConflictError: Another writer changed the table in a way that does not fit the data.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://append", pa.schema({"n": pa.int64()}))
            >>> table.append(pa.table({"n": [1, 2]})).metrics["numOutputRows"]
            2
        """
        return append(
            self._log, self._executor, data, merge_schema=merge_schema, options=self._options(options)
        )

    def upsert(
        self, data: object, *, merge_schema: bool = False, options: Mapping[str, object] | None = None
    ) -> CommitResult:
        """Replaces the rows that have the keys of new rows, and adds the other new rows.

        Args:
            data: Arrow, pandas or Polars data. If the merge mode is "columns", it may leave columns out, and
                rows that are there keep what they have in them.
            merge_schema: Add new columns to the table and widen types as the data needs.
            options: Settings for this call.

        Returns:
            The commit; nothing is committed if there are no rows.

        Raises:
            SchemaMismatchError: The data does not fit the table.
            SchemaError: The table has no record key.
            CommitConflictError: Another writer changed the same rows.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string())])
            >>> table = it.Table.create("memory://upsert", schema, record_key="id")
            >>> _ = table.upsert(pa.table({"id": [1, 2], "city": ["Oslo", "Bonn"]}))
            >>> _ = table.upsert(pa.table({"id": [2], "city": ["Rome"]}))
            >>> sorted(table.scan().to_arrow()["city"].to_pylist())
            ['Oslo', 'Rome']
        """
        return upsert(
            self._log, self._executor, data, merge_schema=merge_schema, options=self._options(options)
        )

    def overwrite(
        self,
        data: object,
        where: Where = None,
        *,
        merge_schema: bool = False,
        options: Mapping[str, object] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """Replaces the rows for which a condition is TRUE, or all rows.

        Args:
            data: Arrow, pandas or Polars data; on a Spark session, its DataFrame.
            where: The rows to replace; None replaces all. The condition must be TRUE for every new row.
            merge_schema: Add new columns to the table and widen types as the data needs.
            options: Settings for this call.
            timezone: The time zone of timestamps in `where`.

        Returns:
            The commit.

        Raises:
            PredicateError: The condition cannot be understood, or is not TRUE for a new row.
            SchemaMismatchError: The data does not fit the table.
            CommitConflictError: Another writer changed rows that `where` covers.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://overwrite", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> _ = table.overwrite(pa.table({"n": [9]}), "n > 1")
            >>> sorted(table.scan().to_arrow()["n"].to_pylist())
            [1, 9]
        """
        return overwrite(
            self._log,
            self._executor,
            data,
            Condition(predicate_of(where, timezone), timezone),
            merge_schema=merge_schema,
            options=self._options(options),
        )

    def delete(
        self, where: Where, *, options: Mapping[str, object] | None = None, timezone: str = "UTC"
    ) -> CommitResult:
        """Removes the rows for which a condition is TRUE.

        Args:
            where: The rows to remove: SQL text, a predicate or a ColumnDomain; "true" removes all.
            options: Settings for this call.
            timezone: The time zone of timestamps in `where`.

        Returns:
            The commit; nothing is committed if there is no such row.

        Raises:
            PredicateError: There is no condition, or it cannot be understood.
            CommitConflictError: Another writer changed the same rows.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://delete", pa.schema({"n": pa.int64()}))
            >>> _ = table.append(pa.table({"n": [1, 2]}))
            >>> table.delete("n > 1").metrics["numDeletedRows"]
            1
        """
        if where is None:
            raise PredicateError("delete needs a condition", hint='delete("true") removes every row')
        condition = Condition(predicate_of(where, timezone), timezone)
        return delete(self._log, self._executor, condition, options=self._options(options))

    def evolve(self, schema: object) -> CommitResult:
        """Changes the schema: adds columns and widens types. No data is rewritten.

        Args:
            schema: The whole new schema: a `pyarrow.Schema`, a Spark `StructType`, or the JSON text of one.

        Returns:
            The commit; nothing is committed if the schema is the same.

        Raises:
            SchemaEvolutionError: The change would lose or hide data; the error lists each difference.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://evolve", pa.schema({"n": pa.int32()}))
            >>> _ = table.evolve(pa.schema({"n": pa.int64(), "city": pa.string()}))
            >>> table.schema.names
            ('n', 'city')
        """
        return evolve(self._log, as_schema(schema))

    def set_properties(
        self, properties: Mapping[str, object] | None = None, *, remove: Names = ()
    ) -> CommitResult:
        """Changes what the table's properties say, for every writer and reader from now on.

        Args:
            properties: The properties to set; others stay as they are.
            remove: The names of properties to take away; one that is not there is left out.

        Returns:
            The commit; nothing is committed if the table has these properties already.

        Raises:
            ConfigError: A property cannot have that value, or is one that is said once, when a table is created.

        Example:
            >>> import indextables as it
            >>> import pyarrow as pa
            >>> table = it.Table.create("memory://properties", pa.schema({"n": pa.int64()}))
            >>> _ = table.set_properties({"owner": "shop"})
            >>> dict(table.properties)
            {'owner': 'shop'}
        """
        return set_properties(self._log, settings_of(properties), names_of(remove))


def convert(path: Location, **options: Any) -> Table:
    """Makes a table of a directory of Parquet files: adds a log and leaves the files as they are.

    Args:
        path: The directory: a path, a URI or a store.
        **options: The keyword arguments of `Table.convert`.

    Returns:
        The table.

    Raises:
        TableExistsError: The directory is a table already.
            TableNotFoundError: There is nothing at this path.
            NotATableError: What is there cannot be made a table.
        SchemaMismatchError: The files cannot be those of one table; the error says why.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     pq.write_table(pa.table({"n": [1, 2]}), f"{directory}/rows.parquet")
        ...     it.convert(directory).scan().count()
        2
    """
    return Table.convert(path, **options)
