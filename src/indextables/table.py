"""The handle users hold: each call sees the newest version of the table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from indextables.arrow.executor import ArrowExecutor
from indextables.arrow.expressions import Rules
from indextables.config import Config
from indextables.core.conditions.column import Column
from indextables.core.conditions.predicate import BoolRef, Node, Predicate, Ref
from indextables.core.curves import Curve
from indextables.core.sets.column_domain import ColumnDomain
from indextables.core.types import StructType
from indextables.errors import ConfigError, NotATableError, PredicateError, TableNotFoundError
from indextables.log.history import HistoryEntry
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops import analyze as _analyze
from indextables.ops.append import append
from indextables.ops.check import CheckReport, check
from indextables.ops.convert import convert as _convert
from indextables.ops.convert import plan_convert
from indextables.ops.create import as_schema, create, new_metadata
from indextables.ops.evolve import evolve
from indextables.ops.foreign import foreign_format
from indextables.ops.optimize import Clustering, optimize
from indextables.ops.result import CommitResult
from indextables.ops.rewrite import Condition, delete, overwrite
from indextables.ops.vacuum import VacuumPlan, vacuum
from indextables.scan.plan import plan_files
from indextables.scan.planner import Planner
from indextables.scans import Query, QueryResult, Scan, TablePlan
from indextables.sql.predicate import parse_predicate
from indextables.storage.base import LogStore
from indextables.storage.open import open_store

if TYPE_CHECKING:
    from indextables.arrow.dataset import TableDataset

Location: TypeAlias = str | Path | LogStore
Moment: TypeAlias = int | str | dt.datetime
Progress: TypeAlias = Callable[[int, int], None]


class Table:
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
        self._open(_store(path, storage_options), options)
        try:
            self._log.snapshot()
        except (TableNotFoundError, NotATableError) as error:
            raise _not_a_table(self._store, error) from None

    @classmethod
    def create(
        cls,
        path: Location,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        record_key: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        name: str | None = None,
        description: str | None = None,
        options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Table:
        """A new, empty table; TableExistsError if there is one.

        `schema` is a `pyarrow.Schema`, a Spark `StructType`, or the JSON text of one.
        """
        metadata = new_metadata(
            as_schema(schema),
            partition_by=partition_by,
            record_key=record_key,
            properties=properties,
            name=name,
            description=description,
        )
        store = _store(path, storage_options)
        create(TransactionLog(store, Config.of(session=options)), metadata)
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
        store = _store(path, storage_options)
        log = TransactionLog(store, Config.of(session=options))
        plan = plan_convert(
            store, partition_schema=partition_schema, properties=properties, progress=progress
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
        moment = _moment(timestamp) if isinstance(timestamp, str) else timestamp
        return self._log.snapshot(version, moment)

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits that are kept, newest first."""
        return self._log.history(limit)

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
    ) -> TablePlan:
        """The files a condition needs: SQL text, a predicate, or a ColumnDomain."""
        condition = _condition(where, timezone)
        snapshot = self.snapshot(version, timestamp)
        return TablePlan(plan_files(snapshot, condition, timezone), self._store)

    def scan(
        self,
        where: Any = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
    ) -> Scan:
        """The rows for which the condition is TRUE, read only from the files that may hold any."""
        plan = self.plan(where, version=version, timestamp=timestamp, timezone=timezone)
        return plan.scan(columns)

    def read(
        self,
        query_builder: Query,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        timezone: str = "UTC",
    ) -> QueryResult:
        """Runs a QueryBuilder, opening only files that its leading filters do not exclude.

        `date_range` acts on the column that the table's property `index_column` names.
        """
        snapshot = self.snapshot(version, timestamp)
        index_column = snapshot.properties.get("index_column")
        predicate = query_builder.pruning_predicate(snapshot.schema, index_column)
        plan = TablePlan(plan_files(snapshot, predicate, timezone), self._store)
        return QueryResult(plan, query_builder, index_column, timezone)

    def to_dataset(
        self,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
        rules: Rules = Rules.SQL,
    ) -> TableDataset:
        """One version as a `pyarrow.dataset.Dataset`: what scans it opens only the files it needs.

        Filters follow SQL's rules for NULL and NaN, as those of the engines that read datasets do;
        with `rules=Rules.ARROW` they follow PyArrow's.
        """
        # pyarrow.dataset takes 100 ms to load, and pandas with it
        from indextables.arrow.dataset import TableDataset  # noqa: PLC0415

        return TableDataset(Planner(self._log, self.snapshot(version, timestamp)), rules=rules)

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
            Condition(_predicate(where, timezone), timezone),
            merge_schema=merge_schema,
            options=self._options(options),
        )

    def delete(
        self, where: Any, *, options: Mapping[str, Any] | None = None, timezone: str = "UTC"
    ) -> CommitResult:
        """Removes the rows `where` is TRUE for; "true" removes all."""
        if where is None:
            raise PredicateError("delete needs a condition", hint='delete("true") removes every row')
        condition = Condition(_predicate(where, timezone), timezone)
        return delete(self._log, self._executor, condition, options=self._options(options))

    def evolve(self, schema: Any) -> CommitResult:
        """Makes this the schema: columns can be added and types widened."""
        return evolve(self._log, as_schema(schema))

    # -- upkeep --------------------------------------------------------------------------------

    def optimize(
        self,
        where: Any = None,
        *,
        z_order_by: Sequence[str] | None = None,
        hilbert_by: Sequence[str] | None = None,
        target_size: int | None = None,
        options: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
    ) -> CommitResult:
        """The same rows in better splits: small ones packed together, or all laid along a curve.

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
            Condition(_predicate(where, timezone), timezone),
            clustering=None if columns is None else Clustering(tuple(columns), curve),
            target_bytes=target_size,
            options=self._options(options),
        )

    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> CommitResult:
        """Builds the statistics that splits lack, from their rows; `rebuild` does all of them anew."""
        return _analyze.analyze(
            self._log,
            self._executor,
            columns,
            rebuild=rebuild,
            progress=progress,
            options=self._options(options),
        )

    def drop_statistics(self, columns: Sequence[str]) -> CommitResult:
        """Removes what the log says of the values of these columns; queries stay correct."""
        return _analyze.drop_statistics(self._log, columns)

    def statistics_info(self) -> list[_analyze.ColumnStatistics]:
        """Per column, how many splits have statistics."""
        return _analyze.statistics_info(self._log.snapshot())

    def checkpoint(self) -> int:
        """Writes a checkpoint of the newest version and returns that version."""
        return self._log.checkpoint().version

    def vacuum(
        self,
        *,
        apply: bool = False,
        progress: Progress | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> VacuumPlan:
        """The files no version within the retention needs; they are deleted only with `apply=True`."""
        return vacuum(self._log, apply=apply, progress=progress, options=self._options(options))

    def check(self, *, deep: bool = False, progress: Progress | None = None) -> CheckReport:
        """Every problem of the log and of the files it names; `deep` also reads the files."""
        return check(self._log, self._executor, deep=deep, progress=progress)

    # ------------------------------------------------------------------------------------------

    def _open(self, store: LogStore, options: Mapping[str, Any] | None) -> None:
        self._store = store
        self._session = dict(options or {})
        self._log = TransactionLog(store, Config.of(session=options))
        self._executor = ArrowExecutor(store)

    def _options(self, call: Mapping[str, Any] | None) -> Mapping[str, Any]:
        lowered = {key.lower() for key in call or {}}
        weaker = {key: value for key, value in self._session.items() if key.lower() not in lowered}
        return {**weaker, **(call or {})}


def check_table(
    path: Location,
    *,
    deep: bool = False,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> CheckReport:
    """What `Table.check` finds, also for a table whose log is too damaged to be opened."""
    store = _store(path, storage_options)
    log = TransactionLog(store, Config.of())
    if not log.exists():
        missing = TableNotFoundError(f"there is no table at {store.uri}", uri=store.uri)
        raise _not_a_table(store, missing)
    return check(log, ArrowExecutor(store), deep=deep, progress=progress)


def _store(path: Location, options: Mapping[str, Any] | None) -> LogStore:
    return open_store(path, options=options) if isinstance(path, str | Path) else path


def _condition(where: Any, timezone: str) -> Predicate | ColumnDomain | None:
    match where:
        case str():
            return parse_predicate(where, timezone)
        case Column():
            return BoolRef(Ref(where.path))
        case None | ColumnDomain() | Node():
            return where  # type: ignore[return-value] # every Node is part of the union
        case _:
            raise PredicateError(
                f"a {type(where).__name__} is not a condition",
                hint="pass SQL text, it.col(...) > 5, or a ColumnDomain",
            )


def _predicate(where: Any, timezone: str) -> Predicate | None:
    condition = _condition(where, timezone)
    return condition.to_predicate() if isinstance(condition, ColumnDomain) else condition


def _moment(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _not_a_table(
    store: LogStore, error: TableNotFoundError | NotATableError
) -> TableNotFoundError | NotATableError:
    found = foreign_format(store)
    if found is None:
        return error
    return NotATableError(
        f"{store.uri} is {found.what}, not a table of this library", hint=found.hint, uri=store.uri
    )


def convert(path: Location, **options: Any) -> Table:
    """Adopts a directory of Parquet files in place; see `Table.convert`."""
    return Table.convert(path, **options)
