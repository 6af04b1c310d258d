"""Plans and scans of a table: which files a query needs, and their rows in the form the user wants."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.to_sql import to_sql
from indextables.core.types import StructType, resolve
from indextables.display import html_facts
from indextables.engines.results import duckdb_relation, pandas_frame, polars_frame
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.read.read import ReadRequest, count_rows, read_batches, units_of
from indextables.parquet.read.row_filter import check_evaluable
from indextables.plan.planner import Plan
from indextables.plan.report import PruneReport, Recorder
from indextables.storage.base import LogStore


@dataclass(frozen=True)
class TablePlan:
    """The files a condition needs and why the others were left out; `scan` reads them."""

    plan: Plan
    store: LogStore

    @property
    def files(self) -> list[Split]:
        """Returns the splits that must be opened, in the table's order."""
        return self.plan.files

    @property
    def report(self) -> PruneReport:
        """Returns how many splits and bytes were skipped, and why."""
        return self.plan.report

    @property
    def snapshot(self) -> Snapshot:
        """Returns the version that was planned."""
        return self.plan.snapshot

    def scan(self, columns: Sequence[str] | None = None) -> Scan:
        """Returns the rows of these files that satisfy the condition, not read yet."""
        schema = self.snapshot.schema
        names = schema.names if columns is None else tuple(_top_level(schema, name) for name in columns)
        return Scan(self, names)

    def __repr__(self) -> str:
        return f"Plan({self.report})"

    def _repr_html_(self) -> str:
        where = "all rows" if self.plan.predicate is None else to_sql(self.plan.predicate)
        return html_facts(f"Plan: {where}", {}) + self.report._repr_html_()


def _top_level(schema: StructType, name: str) -> str:
    (found,), _ = resolve(schema, (name,))
    return found


@dataclass(frozen=True)
class Scan:
    """Rows to be read. Nothing is opened before a `to_…` method is called, and each call reads anew.

    Rows come in the order of their commits, then of their splits, then of their position. The rows of a
    slice with delta files all come where its oldest file stands.
    """

    plan: TablePlan
    columns: tuple[str, ...]
    filter_rows: bool = True
    """False leaves it to the caller to filter the rows; files are skipped either way."""

    @property
    def schema(self) -> pa.Schema:
        """Returns the Arrow schema of the result."""
        return self._request.result_schema

    def to_batches(self) -> pa.RecordBatchReader:
        """Returns the rows as a stream; memory stays bounded however large the table is."""
        self._count_pruned()
        return pa.RecordBatchReader.from_batches(
            self.schema, read_batches(self._request, units_of(self.plan.plan))
        )

    def to_arrow(self) -> pa.Table:
        """Returns all rows as an Arrow table."""
        return self.to_batches().read_all()

    def head(self, limit: int | None = 10) -> pa.Table:
        """Returns the first rows; once there are enough, no further file is opened."""
        self._count_pruned()
        batches, missing = [], sys.maxsize if limit is None else limit
        units = units_of(self.plan.plan) if missing > 0 else ()
        for batch in read_batches(self._request, units, threads=1):  # more would read ahead
            batches.append(batch.slice(0, missing))
            missing -= batches[-1].num_rows
            if missing <= 0:
                break
        return pa.Table.from_batches(batches, self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """Returns all rows as a pandas DataFrame."""
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> Any:
        """Returns all rows as a Polars DataFrame."""
        return polars_frame(self.to_arrow())

    def to_duckdb(self, connection: Any | None = None) -> Any:
        """Returns the rows as a relation of this connection, or of DuckDB's default one."""
        return duckdb_relation(self.to_batches(), connection)

    def count(self) -> int:
        """Returns the number of rows; without a condition, the log usually knows it."""
        self._count_pruned()
        return count_rows(replace(self._request, columns=()), units_of(self.plan.plan))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the rows as an Arrow stream, so that any library that reads such streams takes the scan itself."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Scan(columns={list(self.columns)}, {self.plan.report})"

    @property
    def _request(self) -> ReadRequest:
        snapshot = self.plan.snapshot
        plan = self.plan.plan
        if not self.filter_rows or plan.predicate is None:
            return ReadRequest(self.plan.store, snapshot.schema, self.columns)
        check_evaluable(plan.predicate)
        return ReadRequest(self.plan.store, snapshot.schema, self.columns, plan.predicate, plan.whole)

    def _count_pruned(self) -> None:
        report = self.plan.report
        Recorder.current().add(pruned=report.total_files - report.kept_files)


class Query(Protocol):
    """What a table needs of a query to run it; `indextables.QueryBuilder` provides it."""

    def pruning_predicate(self, schema: StructType, index_column: str | None = None) -> Predicate:
        """Returns a condition that every row seen by any later step satisfies."""
        ...

    def needed_columns(
        self, schema: StructType, index_column: str | None = None
    ) -> tuple[str, ...] | None:
        """Returns the columns to read; None means all of them."""
        ...

    def execute(
        self, data: pa.Table, *, index_column: str | None = None, timezone: str = "UTC"
    ) -> pa.Table:
        """Returns the result of the query over these rows."""
        ...


@dataclass(frozen=True)
class QueryResult:
    """A query over the files it needs; each `to_…` method, and `data`, runs it anew."""

    plan: TablePlan
    query: Query
    index_column: str | None
    timezone: str

    def to_arrow(self) -> pa.Table:
        """Returns the result as an Arrow table."""
        snapshot = self.plan.snapshot
        columns = self.query.needed_columns(snapshot.schema, self.index_column)
        # The query filters by its own rules, so rows are handed to it as they are.
        rows = replace(self.plan.scan(columns), filter_rows=False).to_arrow()
        return self.query.execute(rows, index_column=self.index_column, timezone=self.timezone)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the result as a pandas DataFrame."""
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> Any:
        """Returns the result as a Polars DataFrame."""
        return polars_frame(self.to_arrow())

    def to_duckdb(self, connection: Any | None = None) -> Any:
        """Returns the result as a relation of this connection, or of DuckDB's default one."""
        return duckdb_relation(self.to_arrow().to_reader(), connection)

    @property
    def data(self) -> pd.DataFrame:
        """Returns the result as a pandas DataFrame, under the name that ArcticDB's users know."""
        return self.to_pandas()

    def __repr__(self) -> str:
        return f"QueryResult({self.plan.report})"
