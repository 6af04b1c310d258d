"""The table as a source of DuckDB's Arrow scan, which takes every filter that the reader evaluates as DuckDB does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from duckdb._sources import ArrowScanSource

from indextables.core.predicate.nodes import And, Predicate
from indextables.core.types import schema_to_arrow
from indextables.engines.duckdb.conditions import predicate_of
from indextables.parquet.read.read import ReadRequest, read_batches, units_of
from indextables.parquet.read.row_filter import is_evaluable
from indextables.plan.planner import Planner
from indextables.plan.report import Recorder

REFERENCE: Final = "__indextables_reference"
"""A column that tells which table a scan in a query's plan reads."""


class FilterSource(ArrowScanSource):
    """Columns without rows; remembers each filter it was offered, by the text that EXPLAIN shows."""

    schema_is_stable = True

    def __init__(self, schema: pa.Schema, bind: Callable[[Predicate], Predicate]) -> None:
        super().__init__(None)
        self.offered: dict[str, Predicate] = {}
        self._schema, self._bind = schema, bind

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def rows(self) -> int | None:
        """Returns the number of rows; None if it is unknown."""
        return None

    def accepts(self, node: Any) -> bool:
        """Returns True if the stream will hold only rows the filter is TRUE for."""
        bound = self._bind(predicate_of(node))
        if not is_evaluable(bound):
            return False
        self.offered[node.fragment()] = bound
        return True


class TableSource(FilterSource):
    """A table that plans when DuckDB opens a stream."""

    def __init__(self, planner: Planner, reference: int) -> None:
        schema = schema_to_arrow(planner.schema).append(pa.field(REFERENCE, pa.int32()))
        super().__init__(schema, planner.bind)
        self.planner, self.reference = planner, reference

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
        return self._is_reference(node) or super().accepts(node)

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """Returns the rows of the splits that the filters need, filtered."""
        parts = tuple(predicate_of(node) for node in filters if not self._is_reference(node))
        plan = self.planner.plan(And(parts) if parts else None)
        names = self._schema.names if columns is None else [self._schema.names[i] for i in columns]
        stored = tuple(dict.fromkeys(name for name in names if name != REFERENCE))
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
        reader = pa.RecordBatchReader.from_batches(wanted, (self._batch(b, wanted) for b in rows))
        return reader.__arrow_c_stream__(), columns is not None

    def _batch(self, batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
        reference = pa.array(np.full(batch.num_rows, self.reference, np.int32))
        arrays = [reference if f.name == REFERENCE else batch.column(f.name) for f in wanted]
        return pa.RecordBatch.from_arrays(arrays, schema=wanted)

    @property
    def reference_filter(self) -> str:
        """Returns the filter of the table's view as EXPLAIN shows it."""
        return f'("{REFERENCE}" = {self.reference})'

    def _is_reference(self, node: Any) -> bool:
        return bool(node.fragment() == self.reference_filter)
