"""The handle users hold: each call sees the newest version of the table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from indextables.config import TARGET_FILE_SIZE, Config, layered
from indextables.core.types import StructType
from indextables.engines.arrow.conditions import Rules
from indextables.errors import ConfigError, NotATableError, PredicateError, TableNotFoundError
from indextables.log.open.history import HistoryEntry
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops import analyze as _analyze
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
    from indextables.engines.arrow.dataset import TableDataset


# What keeps a table in shape: better files, statistics, history, and the way back.


class Upkeep:
    """The part of a table's handle that is about its files and its history.

    Rows are written elsewhere.
    """

    def __init__(self, store: LogStore, options: Mapping[str, Any] | None) -> None:
        self._store = store
        self._session = dict(settings_of(options))
        self._log = TransactionLog(store, Config.of(session=self._session))
        self._executor: Executor = ArrowExecutor(store)

    def on(self, spark: Any) -> Self:
        """Returns the same table with its work done as jobs of a Spark session: optimize, compact, analyze, delete.

        What it appends or overwrites with are then Spark DataFrames.
        """
        from indextables.engines.spark.write.executor import (  # noqa: PLC0415 - loads pyspark
            spark_executor,
        )

        other = copy(self)
        other._executor = spark_executor(spark, self._store.uri)  # noqa: SLF001 - its own class
        return other

    def optimize(
        self,
        where: Any = None,
        *,
        z_order_by: Names | None = None,
        hilbert_by: Names | None = None,
        target_size: int | str | None = None,
        options: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """Returns the same rows in better splits: small ones packed together, or all laid along a curve.

        A curve through some columns lets a condition on any of them skip splits; Hilbert's keeps rows
        closer together than Z-order and takes a little longer. `where` chooses the splits to work on.
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
        where: Any = None,
        *,
        min_logs: int = 1,
        min_percent: float = 0,
        progress: Progress | None = None,
        options: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """Folds log files into new base files, so that reading needs no merging; no row changes.

        Of the slices that may show a row `where` is TRUE for, those with at least `min_logs` log files
        whose size is at least `min_percent` of the base's.
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
        options: Mapping[str, Any] | None = None,
    ) -> CommitResult:
        """Builds the statistics that splits lack, from their rows; `rebuild` does all of them anew."""
        return _analyze.analyze(
            self._log,
            self._executor,
            None if columns is None else names_of(columns),
            rebuild=rebuild,
            progress=progress,
            options=self._options(options),
        )

    def drop_statistics(self, columns: Names) -> CommitResult:
        """Removes what the log says of the values of these columns; queries stay correct."""
        return _analyze.drop_statistics(self._log, names_of(columns))

    def statistics_info(self) -> list[_analyze.ColumnStatistics]:
        """Per column, how many splits have statistics."""
        return _analyze.statistics_info(self._log.snapshot())

    def restore(self, version: int | None = None, *, timestamp: Moment | None = None) -> CommitResult:
        """Makes the table what it was at a version or a moment, in a new version.

        A schema that has only grown since stays; rows of that time have NULL in newer columns.
        """
        if (version is None) == (timestamp is None):
            raise ConfigError("restore needs a version or a timestamp", hint="restore(version=12)")
        return restore(self._log, self._log.snapshot(*point_in_time(version, timestamp)))

    def rollback(self, version: int) -> CommitResult:
        """Undoes what one version did; an error names the later version that builds on it."""
        return rollback(self._log, version)

    def checkpoint(self) -> int:
        """Writes a checkpoint of the newest version and returns that version."""
        return self._log.checkpoint().version

    def truncate_time_travel(self, *, apply: bool = False) -> TruncationPlan:
        """Returns the log files only older versions need.

        With `apply=True` the newest version is all there is.
        """
        return truncate_time_travel(self._log, apply=apply)

    def vacuum(
        self,
        *,
        apply: bool = False,
        allow_short_retention: bool = False,
        progress: Progress | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> VacuumPlan:
        """Returns the files no version within the retention needs; they are deleted only with `apply=True`.

        A retention below the table's own (7 days if it has none) must be allowed: writes that began earlier are
        refused then, and queries of older versions lose their files.
        """
        return vacuum(
            self._log,
            apply=apply,
            allow_short_retention=allow_short_retention,
            progress=progress,
            options=self._options(options),
        )

    def check(self, *, deep: bool = False, progress: Progress | None = None) -> CheckReport:
        """Returns every problem of the log and of the files it names; `deep` also reads the files."""
        return check(self._log, self._executor, deep=deep, progress=progress)

    def _options(self, call: Mapping[str, Any] | None) -> Mapping[str, Any]:
        return layered(settings_of(call), self._session)


def _size(size: int | str | None) -> int | None:
    """Returns bytes, or a text such as 128MB."""
    if size is None or isinstance(size, int):
        return size
    return Config.of(write={TARGET_FILE_SIZE.key: size}).get(TARGET_FILE_SIZE)


class Table(Upkeep):
    """A table at a path or URI; opening it reads the log, no data.

    `options` are settings for everything done through this handle (`spark.indextables.…`), weaker
    than those of a single call and stronger than the table's own properties. `storage_options` are
    credentials and endpoints for object stores.
    """

    def __init__(
        self,
        path: Location,
        *,
        options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
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
        schema: Any,
        *,
        partition_by: Names = (),
        record_key: Names = (),
        merge_mode: str | None = None,
        properties: Mapping[str, Any] | None = None,
        name: str | None = None,
        description: str | None = None,
        options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Table:
        """Returns a new, empty table; TableExistsError if there is one.

        `schema` is a `pyarrow.Schema`, a Spark `StructType`, or the JSON text of one. With a
        `record_key` rows are identified by these columns, and `upsert` replaces them: whole, or in
        the `merge_mode` "columns" only the columns it is given.
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
        partition_schema: Any | None = None,
        properties: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """Adopts a directory of Parquet files where it is: a log is added, no file is touched."""
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
        """Returns the table now, at a version, or at a moment (milliseconds, ISO text or aware datetime)."""
        return self._log.snapshot(*point_in_time(version, timestamp))

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """Returns the commits that are kept, newest first."""
        return self._log.history(count_of(limit))

    def describe_log(self, *, include_all: bool = False) -> Any:
        """Returns the actions of the log as an Arrow table: from the newest checkpoint on, or all that are kept."""
        return describe_log(self._store, include_all=include_all)

    def __repr__(self) -> str:
        now = self._log.snapshot()
        return f"Table({self.uri!r}, version={now.version}, files={now.num_files})"

    # -- reading -------------------------------------------------------------------------------

    def plan(
        self,
        where: Any = None,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
        read_optimized: bool = False,
    ) -> TablePlan:
        """Returns the files a condition needs: SQL text, a predicate, or a ColumnDomain.

        With `read_optimized` log files are left out: rows are those of the last compaction.
        """
        condition = condition_of(where, timezone)
        snapshot = self.snapshot(version, timestamp)
        plan = plan_files(snapshot, condition, timezone, read_optimized=read_optimized)
        return TablePlan(plan, self._store)

    def scan(
        self,
        where: Any = None,
        columns: Names | None = None,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
        read_optimized: bool = False,
    ) -> Scan:
        """Returns the rows for which the condition is TRUE, read only from the files that may hold any."""
        plan = self.plan(
            where,
            version=version,
            timestamp=timestamp,
            timezone=timezone,
            read_optimized=read_optimized,
        )
        return plan.scan(None if columns is None else names_of(columns))

    def read(
        self,
        query_builder: Query,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
        read_optimized: bool = False,
    ) -> QueryResult:
        """Runs a QueryBuilder, opening only files that its leading filters do not exclude.

        `date_range` acts on the column that the table's property `index_column` names.
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
        """Returns one version as a `pyarrow.dataset.Dataset`: what scans it opens only the files it needs.

        Filters follow SQL's rules for NULL and NaN, as those of the engines that read datasets do;
        with `rules=Rules.ARROW` they follow PyArrow's.
        """
        # pyarrow.dataset takes 100 ms to load, and pandas with it
        from indextables.engines.arrow.dataset import TableDataset  # noqa: PLC0415

        snapshot = self.snapshot(version, timestamp)
        return TableDataset(Planner(self._log, snapshot, read_optimized=read_optimized), rules=rules)

    # -- writing -------------------------------------------------------------------------------

    def append(
        self, data: Any, *, merge_schema: bool = False, options: Mapping[str, Any] | None = None
    ) -> CommitResult:
        """Adds rows: Arrow, pandas or Polars data.

        With `merge_schema` new columns are added to the table, types widened, and columns the data
        leaves out are NULL.
        """
        return append(
            self._log, self._executor, data, merge_schema=merge_schema, options=self._options(options)
        )

    def upsert(
        self, data: Any, *, merge_schema: bool = False, options: Mapping[str, Any] | None = None
    ) -> CommitResult:
        """Puts each row in the place of the row with its key, or adds it; the table has a record key.

        Where columns are merged, data may leave some out: rows that are there keep theirs.
        """
        return upsert(
            self._log, self._executor, data, merge_schema=merge_schema, options=self._options(options)
        )

    def overwrite(
        self,
        data: Any,
        where: Any = None,
        *,
        merge_schema: bool = False,
        options: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """Replaces the rows `where` is TRUE for (all without one).

        Rows of `data` outside it are an error.
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
        self, where: Any, *, options: Mapping[str, Any] | None = None, timezone: str = "UTC"
    ) -> CommitResult:
        """Removes the rows `where` is TRUE for; "true" removes all."""
        if where is None:
            raise PredicateError("delete needs a condition", hint='delete("true") removes every row')
        condition = Condition(predicate_of(where, timezone), timezone)
        return delete(self._log, self._executor, condition, options=self._options(options))

    def evolve(self, schema: Any) -> CommitResult:
        """Makes this the schema: columns can be added and types widened."""
        return evolve(self._log, as_schema(schema))


def convert(path: Location, **options: Any) -> Table:
    """Adopts a directory of Parquet files in place; see `Table.convert`."""
    return Table.convert(path, **options)
