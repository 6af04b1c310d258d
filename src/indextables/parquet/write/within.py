"""Rows of an overwrite held against its condition, before anything of them is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import Predicate
from indextables.errors import PredicateError
from indextables.parquet.read.row_filter import to_row_mask


def all_within(
    batches: Iterable[pa.RecordBatch], within: Predicate, partition_columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the batches; raises PredicateError at the first row for which the condition is not TRUE.

    Rows are judged as the table will show them, where a partition value '' is NULL.
    """
    start = 0
    for batch in batches:
        stored = _as_stored(batch, partition_columns)
        outside = pc.invert(to_row_mask(within, stored))
        if pc.any(outside).as_py():
            first = pc.index(outside, True).as_py()
            raise PredicateError(
                f"row {start + first} of the data does not satisfy the condition of the overwrite: "
                f"{stored.slice(first, 1).to_pylist()[0]}",
                hint="write rows that are not to be replaced with append(); nothing was written",
                row=start + first,
            )
        start += batch.num_rows
        yield batch


def _as_stored(batch: pa.RecordBatch, partition_columns: Sequence[str]) -> pa.RecordBatch:
    for name in partition_columns:
        values = batch.column(name)
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            is_empty = pc.equal(pc.binary_length(values), 0)
            stored = pc.if_else(pc.fill_null(is_empty, fill_value=False), None, values)
            batch = batch.set_column(batch.schema.get_field_index(name), name, stored)
    return batch
