"""The table as a source of DuckDB's Arrow scan, which takes every filter that the reader evaluates as DuckDB does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from duckdb._sources import ArrowScanSource

from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    IsIn,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
)
from indextables.core.types import PrimitiveType, schema_to_arrow
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


# The filters that DuckDB offers to a scan: comparisons of a column with a constant of its type, under AND, OR and NOT.
# The classes are private to DuckDB, so they are read by name and shape.


_COMPARISONS: Final[dict[str, CompareOp]] = {
    "=": "=",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_DEEPEST: Final = 200


def predicate_of(node: Any, depth: int = 0) -> Predicate:
    """Returns the condition a filter is; Opaque for a form that is not known."""
    match type(node).__name__:
        case _ if depth > _DEEPEST:
            return Opaque("a deep condition", (), "it is too deep")
        case "Binary" if node.op in {"AND", "OR"}:
            sides = (predicate_of(node.left, depth + 1), predicate_of(node.right, depth + 1))
            return And(sides) if node.op == "AND" else Or(sides)
        case "Binary" if node.op in _COMPARISONS and _is_column(node.left) and _is_value(node.right):
            return Compare(_COMPARISONS[node.op], Ref(tuple(node.left.parts)), _literal(node.right))
        case "Unary" if node.op == "NOT":
            return Not(predicate_of(node.operand, depth + 1))
        case "Postfix" if _is_column(node.operand) and node.op in {"IS NULL", "IS NOT NULL"}:
            found = IsNull(Ref(tuple(node.operand.parts)))
            return found if node.op == "IS NULL" else Not(found)
        case "In" if _is_column(node.operand) and node.values and all(map(_is_value, node.values)):
            return IsIn(Ref(tuple(node.operand.parts)), tuple(map(_literal, node.values)))
        case _:
            return Opaque(node.fragment(), (), "DuckDB's form of it is not known")


def _is_column(node: Any) -> bool:
    return type(node).__name__ == "Col"


def _is_value(node: Any) -> bool:
    return type(node).__name__ == "Lit"


def _literal(node: Any) -> Literal:
    # an instant comes as microseconds
    zoned = node.type == "TIMESTAMP WITH TIME ZONE"
    return Literal(node.value, PrimitiveType("timestamp") if zoned else None)
