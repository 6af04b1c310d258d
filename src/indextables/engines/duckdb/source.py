"""The table as a source of DuckDB's Arrow scan, which takes every filter that the reader evaluates as DuckDB does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from duckdb._sources import ArrowScanSource

from indextables.core.predicate.nodes import And
from indextables.core.types import schema_to_arrow
from indextables.engines.duckdb.conditions import predicate_of
from indextables.parquet.read.read import ReadRequest, read_batches, units_of
from indextables.parquet.read.row_filter import is_evaluable
from indextables.plan.planner import Planner
from indextables.plan.report import Recorder


class TableSource(ArrowScanSource):
    """A table that plans when DuckDB opens a stream."""

    schema_is_stable = True

    def __init__(self, planner: Planner) -> None:
        super().__init__(None)
        self.planner, self._schema = planner, schema_to_arrow(planner.schema)

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def rows(self) -> int | None:
        """Returns the table's number of rows, so that joins are ordered well; None if the log does not know it."""
        return self._rows

    @cached_property
    def _rows(self) -> int | None:
        known = self.planner.snapshot.stats_source().num_records()
        chosen = known if self.planner.within is None else known.filter(pa.array(self.planner.within))
        return None if chosen.null_count else int(pa.compute.sum(chosen).as_py() or 0)

    def accepts(self, node: Any) -> bool:
        """Returns True if the stream will hold only rows the filter is TRUE for."""
        return is_evaluable(self.planner.bind(predicate_of(node)))

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """Returns the rows of the splits that the filters need, filtered."""
        parts = tuple(map(predicate_of, filters))
        plan = self.planner.plan(And(parts) if parts else None)
        names = self._schema.names if columns is None else [self._schema.names[i] for i in columns]
        stored = tuple(dict.fromkeys(names))
        request = ReadRequest(
            self.planner.store,
            self.planner.schema,
            stored or self.planner.schema.names[:1],
            plan.predicate,
            plan.whole,
        )
        wanted = pa.schema([self._schema.field(name) for name in names])
        recorder = Recorder.of_engine()
        recorder.add(pruned=plan.report.total_files - plan.report.kept_files)
        rows = read_batches(request, units_of(plan), recorder=recorder)
        batches = (batch.select(names) for batch in rows)
        return (
            pa.RecordBatchReader.from_batches(wanted, batches).__arrow_c_stream__(),
            columns is not None,
        )
