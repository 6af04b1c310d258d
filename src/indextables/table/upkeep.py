"""What keeps a table in shape: better files, statistics, history, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from indextables.config import TARGET_FILE_SIZE, Config
from indextables.errors import ConfigError
from indextables.log.transaction_log import TransactionLog
from indextables.ops import analyze as _analyze
from indextables.ops.check.check import CheckReport, check
from indextables.ops.compact import Threshold, compact
from indextables.ops.optimize import Clustering, optimize
from indextables.ops.restore import restore
from indextables.ops.rollback import rollback
from indextables.ops.shared.commit import CommitResult, Condition
from indextables.ops.shared.executor import Executor
from indextables.ops.truncate_history import TruncationPlan, truncate_time_travel
from indextables.ops.vacuum import VacuumPlan, vacuum
from indextables.parquet.write.curves import Curve
from indextables.parquet.write.executor import ArrowExecutor
from indextables.storage.base import LogStore
from indextables.table.arguments import (
    Moment,
    Names,
    Progress,
    names_of,
    point_in_time,
    predicate_of,
    settings_of,
)


class Upkeep:
    """The part of a table's handle that is about its files and its history; rows are written elsewhere."""

    def __init__(self, store: LogStore, options: Mapping[str, Any] | None) -> None:
        self._store = store
        self._session = dict(settings_of(options))
        self._log = TransactionLog(store, Config.of(session=self._session))
        self._executor: Executor = ArrowExecutor(store)

    def on(self, spark: Any) -> Self:
        """The same table with its work done as jobs of a Spark session: optimize, compact, analyze, delete.

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
        """The log files only older versions need; with `apply=True` the newest version is all there is."""
        return truncate_time_travel(self._log, apply=apply)

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

    def _options(self, call: Mapping[str, Any] | None) -> Mapping[str, Any]:
        given = settings_of(call)
        lowered = {key.lower() for key in given}
        weaker = {key: value for key, value in self._session.items() if key.lower() not in lowered}
        return {**weaker, **given}


def _size(size: int | str | None) -> int | None:
    """Bytes, or a text such as 128MB."""
    if size is None or isinstance(size, int):
        return size
    return Config.of(write={TARGET_FILE_SIZE.key: size}).get(TARGET_FILE_SIZE)
