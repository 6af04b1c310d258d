"""Reads one split: the row groups and columns that are needed, in the types of the table's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from indextables.core.predicate.nodes import And, Predicate
from indextables.core.predicate.tree import columns_of
from indextables.core.prune.evaluate import may_match
from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.prune.partitions import partition_scalar
from indextables.core.stats import SplitStats
from indextables.core.types import (
    DataType,
    DecimalType,
    Field,
    FieldPath,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    leaves,
    schema_to_arrow,
    type_to_arrow,
)
from indextables.errors import ObjectNotFoundError, StorageError
from indextables.log.state.rows import Split
from indextables.parquet.read.footers import stats_from_footer
from indextables.parquet.read.row_filter import to_row_mask
from indextables.plan.report import Recorder
from indextables.storage.base import LogStore, failure

# Arrays in the table's types.


def align(array: pa.Array, target: DataType) -> pa.Array:
    """Returns the values in the table's type: widened and decoded, with nested fields by name, NULL if absent."""
    wanted = type_to_arrow(target)
    if array.type == wanted:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if pa.types.is_dictionary(array.type):
        return align(array.dictionary_decode(), target)
    if pa.types.is_run_end_encoded(array.type):
        return align(pc.run_end_decode(array), target)
    if isinstance(array, pa.ExtensionArray):
        return align(array.storage, target)
    match target:
        case StructType():
            return _align_struct(array, target)
        case ListType():
            return _align_list(array, target)
        case MapType():
            return _align_map(array, target)
        case PrimitiveType() | DecimalType():
            return array.cast(wanted)
        case _:
            assert_never(target)


def _align_struct(array: pa.Array, target: StructType) -> pa.Array:
    theirs = {array.type.field(i).name.lower(): i for i in range(array.type.num_fields)}
    children = []
    for field in target:
        found = theirs.get(field.name.lower())
        # struct_field respects the parent's offset and hides values under a NULL parent; .field() does not.
        child = pa.nulls(len(array)) if found is None else pc.struct_field(array, [found])
        children.append(align(child, field.type))
    fields = [type_to_arrow(target).field(i) for i in range(len(target.fields))]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _align_list(array: pa.Array, target: ListType) -> pa.Array:
    # The offsets are rebuilt from lengths, which works for lists of every kind, sliced or not.
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = align(array.flatten(), target.element)
    kind = type_to_arrow(target)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind, mask=array.is_null())


def _align_map(array: pa.Array, target: MapType) -> pa.Array:
    return pa.MapArray.from_arrays(
        _offsets(array),
        align(array.keys, target.key),
        align(array.items, target.value),
        type=type_to_arrow(target),
        mask=array.is_null(),
    )


def _offsets(array: pa.Array) -> pa.Array:
    # A copy, because Arrow refuses a mask together with sliced offsets.
    return pa.array(array.offsets.to_numpy(zero_copy_only=False).copy(), pa.int32())


# Row groups are skipped by the same rules as splits.


def row_groups_to_read(
    footer: pq.FileMetaData, split: Split, schema: StructType, predicate: Predicate | None
) -> list[int]:
    """Returns the row groups that may have a row for which the bound predicate is TRUE.

    Arrow's own filter is not used: to Arrow, bounds of a float column prove that there is no NaN, but other
    writers write bounds of columns that have a NaN.
    """
    everything = list(range(footer.num_row_groups))
    if predicate is None or len(everything) < 2:
        return everything  # the log has said everything about a single row group
    tops = {path[0] for path in columns_of(predicate)}
    columns = [leaf.path for leaf in leaves(schema) if leaf.path[0] in tops]
    clean = _without_nan(split)
    stats = [
        _trust_log(stats_from_footer(_OneRowGroup(footer, i), schema, columns, trusted=False), clean)
        for i in everything
    ]
    partitions = tuple(split.partition_values)
    source = source_of(
        stats,
        schema,
        partition_columns=partitions,
        partition_values=[split.partition_values] * len(stats),
    )
    mask = may_match(predicate, ColumnStatsIndex(source))
    return [i for i in everything if mask[i]]


@dataclass(frozen=True, slots=True)
class _OneRowGroup:
    """A footer with a single one of its row groups."""

    footer: pq.FileMetaData
    index: int

    @property
    def num_row_groups(self) -> int:
        return 1

    @property
    def num_rows(self) -> int:
        return int(self.footer.row_group(self.index).num_rows)

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        found: Mapping[bytes, bytes] | None = self.footer.metadata
        return found

    @property
    def schema(self) -> pq.ParquetSchema:
        return self.footer.schema

    @property
    def num_columns(self) -> int:
        return int(self.footer.num_columns)

    def row_group(self, _: int) -> pq.RowGroupMetaData:
        return self.footer.row_group(self.index)


def _without_nan(split: Split) -> frozenset[FieldPath]:
    """Returns the float fields in which, by the log, the whole split has no NaN."""
    counts = (split.wire_stats or {}).get("nanCount") or {}
    return frozenset(path for path, count in _flat(counts, ()) if count == 0)


def _flat(values: Mapping[str, object], path: FieldPath) -> Sequence[tuple[FieldPath, object]]:
    found: list[tuple[FieldPath, object]] = []
    for name, value in values.items():
        below = (*path, name)
        found += _flat(value, below) if isinstance(value, Mapping) else [(below, value)]
    return found


def _trust_log(stats: SplitStats, clean: frozenset[FieldPath]) -> SplitStats:
    return replace(stats, nan_count={**stats.nan_count, **dict.fromkeys(clean, 0)})


# The rows of one split.

_BATCH_BYTES: Final = 16 << 20
_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read of each split: some columns of the rows for which the predicate is TRUE."""

    store: LogStore
    schema: StructType
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    """Bound to the schema (see `core.bind`)."""
    whole: frozenset[str] = frozenset()
    """Files of which every row is known to satisfy the predicate."""
    in_arrow: bool = False
    """Whether threads of Arrow's own wait for the rows. All of them may, so reading must not need another one."""

    @property
    def result_schema(self) -> pa.Schema:
        """Returns the Arrow schema of the requested columns, in the requested order."""
        fields = {field.name: field for field in self.schema}
        return schema_to_arrow(StructType(tuple(fields[name] for name in self.columns)))

    @property
    def needed(self) -> tuple[Field, ...]:
        """Returns the requested columns and those that the predicate needs."""
        names = set(self.columns)
        if self.predicate is not None:
            names |= {path[0] for path in columns_of(self.predicate)}
        return tuple(field for field in self.schema if field.name in names)

    def of(self, split: Split) -> ReadRequest:
        """Returns what to read of this split, without a predicate if every row is known to satisfy it."""
        return replace(self, predicate=None) if split.path in self.whole else self

    def with_columns(self, *names: str) -> ReadRequest:
        """Returns the request with these columns, each once."""
        return replace(self, columns=tuple(dict.fromkeys(names)))

    def by_key(self, key: Sequence[str]) -> ReadRequest:
        """Returns the request with only those conditions of the predicate that need nothing but the key.

        All rows with one key satisfy them or none does, so they can be applied to each file of a slice.
        """
        whole = self.predicate
        every = whole.children if isinstance(whole, And) else () if whole is None else (whole,)
        chosen = [condition for condition in every if _looks_only_at(condition, frozenset(key))]
        return replace(self, predicate=And(tuple(chosen)) if chosen else None)


def _looks_only_at(condition: Predicate, columns: frozenset[str]) -> bool:
    tops = {path[0] for path in columns_of(condition)}
    return bool(tops) and tops <= columns


def open_split(
    filesystem: FileSystem, split: Split, recorder: Recorder, *, in_arrow: bool = False
) -> pq.ParquetFile:
    """Returns the split's Parquet file and counts it as opened.

    With `in_arrow`, its bytes are read by the thread that asks for them, and not ahead by another one.
    Raises ObjectNotFoundError or StorageError, with the name of the file, if it is missing or broken.
    """
    try:
        recorder.add(opened=1)
        opened = pq.ParquetFile(
            filesystem.open_input_file(split.path),
            coerce_int96_timestamp_unit="us",
            arrow_extensions_enabled=False,
            page_checksum_verification=True,  # a flipped bit is an error, not a wrong row
            pre_buffer=not in_arrow,
        )
        recorder.add(read=opened.metadata.serialized_size + 8)
    except FileNotFoundError as error:
        raise ObjectNotFoundError(
            f"the data file {split.path!r} is in the log, but not in the store",
            hint="Table.check() lists all missing files; a version older than the last vacuum cannot be read",
            key=split.path,
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(split, error) from error
    return opened


def _unreadable(split: Split, error: Exception) -> StorageError:
    hint = "Table.check(deep=True) names every file that is damaged"
    return failure(f"the data file {split.path!r} cannot be read: {error}", error, split.path, hint)


def read_split(
    request: ReadRequest, split: Split, filesystem: FileSystem, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Yields the rows in one file, in their order, without regard to other files of its slice."""
    opened = open_split(filesystem, split, recorder, in_arrow=request.in_arrow)
    footer = opened.metadata
    row_groups = row_groups_to_read(footer, split, request.schema, request.predicate)
    fields = request.needed
    stored = [f for f in fields if f.name not in split.partition_values]
    here = _names_in_file([f.name for f in stored], opened.schema_arrow.names)
    recorder.add(read=_bytes_of(footer, row_groups, set(here.values())))
    batches = opened.iter_batches(
        batch_size=_batch_rows(footer, row_groups),
        row_groups=row_groups,
        columns=list(here.values()),
        use_threads=not request.in_arrow,
    )
    for batch in _checked(batches, split):
        yield _assemble(request, split, batch, fields, here)


def _checked(batches: Iterator[pa.RecordBatch], split: Split) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(split, error) from error


def _assemble(
    request: ReadRequest,
    split: Split,
    batch: pa.RecordBatch,
    fields: Sequence[Field],
    here: Mapping[str, str],
) -> pa.RecordBatch:
    """Returns rows of the table: with partition values, NULL for absent columns, and the table's types."""
    columns = []
    for field in fields:
        if field.name in split.partition_values:
            value = partition_scalar(split.partition_values[field.name], field.type)
            columns.append(pa.repeat(value, batch.num_rows))
        elif field.name in here:
            columns.append(align(batch.column(here[field.name]), field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, type_to_arrow(field.type)))
    # One more column, because a batch without columns would not know how many rows it has.
    schema = schema_to_arrow(StructType(tuple(fields))).append(pa.field("", pa.null()))
    rows = pa.RecordBatch.from_arrays([*columns, pa.nulls(batch.num_rows)], schema=schema)
    if request.predicate is not None:
        rows = rows.filter(to_row_mask(request.predicate, rows))
    return rows.select(list(request.columns))


def _names_in_file(wanted: Sequence[str], stored: Sequence[str]) -> dict[str, str]:
    """Returns the file's name of each column that it has: the same name, or one that differs in case only."""
    exact = set(stored)
    similar = {name.lower(): name for name in reversed(stored)}
    names = {name: name if name in exact else similar.get(name.lower()) for name in wanted}
    return {name: found for name, found in names.items() if found is not None}


def _bytes_of(footer: pq.FileMetaData, row_groups: Sequence[int], columns: set[str]) -> int:
    total: int = 0
    for number in row_groups:
        row_group = footer.row_group(number)
        for i in range(row_group.num_columns):
            chunk = row_group.column(i)
            if chunk.path_in_schema in columns or chunk.path_in_schema.split(".")[0] in columns:
                total += chunk.total_compressed_size
    return total


def _batch_rows(footer: pq.FileMetaData, row_groups: Sequence[int]) -> int:
    """Returns the number of rows in a few megabytes, so that batches of long texts are short."""
    rows = sum(footer.row_group(number).num_rows for number in row_groups)
    size = sum(footer.row_group(number).total_byte_size for number in row_groups)
    fit = _BATCH_BYTES * rows // max(size, 1)
    return int(max(min(fit, _BATCH_ROWS), 256))
