"""The handle users hold: each call sees the newest version of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from indextables.config import Config
from indextables.core.types import StructType
from indextables.engines.arrow.conditions import Rules
from indextables.errors import NotATableError, PredicateError, TableNotFoundError
from indextables.log.open.history import HistoryEntry
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.append import append
from indextables.ops.convert.convert import convert as _convert
from indextables.ops.convert.convert import plan_convert
from indextables.ops.create import as_schema, create, new_metadata
from indextables.ops.delete_overwrite import delete, overwrite
from indextables.ops.evolve import evolve
from indextables.ops.keyed.upsert import upsert
from indextables.ops.shared.commit import CommitResult, Condition
from indextables.plan.planner import Planner, plan_files
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
from indextables.table.upkeep import Upkeep

if TYPE_CHECKING:
    from indextables.engines.arrow.dataset import TableDataset


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
        """A new, empty table; TableExistsError if there is one.

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
        """Where the table is."""
        return self._store.uri

    @property
    def version(self) -> int:
        """The newest version."""
        return self._log.snapshot().version

    @property
    def schema(self) -> StructType:
        """The columns, partition columns included."""
        return self._log.snapshot().schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's own settings."""
        return self._log.snapshot().properties

    def snapshot(self, version: int | None = None, timestamp: Moment | None = None) -> Snapshot:
        """The table now, at a version, or at a moment (milliseconds, ISO text or aware datetime)."""
        return self._log.snapshot(*point_in_time(version, timestamp))

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits that are kept, newest first."""
        return self._log.history(count_of(limit))

    def describe_log(self, *, include_all: bool = False) -> Any:
        """The actions of the log as an Arrow table: from the newest checkpoint on, or all that are kept."""
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
        """The files a condition needs: SQL text, a predicate, or a ColumnDomain.

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
        """The rows for which the condition is TRUE, read only from the files that may hold any."""
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
        """One version as a `pyarrow.dataset.Dataset`: what scans it opens only the files it needs.

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
        """Replaces the rows `where` is TRUE for (all without one); rows of `data` outside it are an error."""
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
