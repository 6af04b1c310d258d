"""Makes a table of a directory of Parquet files: one commit names them, and no file is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow.parquet import FileMetaData

from indextables.core.stats import stats_columns
from indextables.core.stats.truncate import TruncationMetrics, log_truncation, truncate_stats
from indextables.core.types import (
    DataType,
    Field,
    StructType,
    can_widen,
    schema_from_arrow,
    type_name,
)
from indextables.errors import NotATableError, SchemaError, SchemaMismatchError, TableNotFoundError
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Add, Metadata, Protocol
from indextables.ops.convert.foreign_files import HiveColumn, arrow_schema_of, hive_columns, hive_values
from indextables.ops.create import new_metadata
from indextables.ops.shared.commit import CommitResult, config_for, truncation_for
from indextables.ops.shared.detect import (
    foreign_format,
    parquet_files,
    table_around,
    table_within,
    unnamable_files,
)
from indextables.ops.shared.schema import check_names
from indextables.parquet.read.footers import read_footers, stats_from_footer
from indextables.storage.base import LogStore, ObjectMeta


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """The table that the files would make: its metadata and one add for each file."""

    metadata: Metadata
    adds: tuple[Add, ...]
    metrics: Mapping[str, int]


def convert(log: TransactionLog, plan: ConvertPlan) -> CommitResult:
    """Commits the planned files as version 0 of a new table; TableExistsError if there is one already."""
    first = CommitPlan(
        ChangeSchema(), "CONVERT", (Protocol(), plan.metadata, *plan.adds), metrics=plan.metrics
    )
    return CommitResult(log.create(first).version, first.operation, plan.metrics)


def plan_convert(
    store: LogStore,
    *,
    partition_schema: pa.Schema | None = None,
    properties: Mapping[str, object] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ConvertPlan:
    """Returns what `convert` would commit; SchemaMismatchError if the files do not make one table.

    Directories such as `day=1` become partition columns. Their types are those of `partition_schema`, or
    the narrowest of int, bigint, date and string in which every value keeps its spelling.
    """
    files = _files(store)
    footers = read_footers(store.filesystem(), [meta.key for meta in files])
    if progress is not None:
        progress(len(files), len(files))
    partitions = hive_columns([meta.key for meta in files], partition_schema)
    schema = _unified(files, footers, partitions)
    metadata = new_metadata(schema, partition_by=[c.name for c in partitions], properties=properties)
    return _plan(files, footers, metadata, partitions)


def _files(store: LogStore) -> list[ObjectMeta]:
    found = foreign_format(store)
    if found is None:
        raise TableNotFoundError(
            f"there is nothing at {store.uri}",
            hint="check the path, or create a table with Table.create",
            uri=store.uri,
        )
    if not found.convertible:
        hint = found.hint if found.is_table else "name a directory with files called *.parquet"
        raise NotATableError(
            f"{store.uri} is {found.what}: it cannot be converted", hint=hint, uri=store.uri
        )
    _refuse_tables(store)
    for key, reason in unnamable_files(store):
        raise NotATableError(
            f"the table would lack the rows of {key!a}: {reason}",
            hint="rename the file, fix the link, or move it away",
            file=key,
        )
    return list(parquet_files(store))


def _refuse_tables(store: LogStore) -> None:
    """Raises NotATableError if a file may belong to another table.

    Its removed rows would be back, and a vacuum of it would delete files of the new table.
    """
    around = table_around(store)
    if around is not None:
        raise NotATableError(
            f"{store.uri} lies inside the table {around}: it cannot be converted",
            hint=f"open that table with Table({around!r})",
            uri=store.uri,
        )
    within = table_within(meta.key for meta in store.list(""))
    if within is not None:
        raise NotATableError(
            f"{store.uri} holds the table {within!r}: it cannot be converted",
            hint="convert the directories of plain Parquet files one by one",
            uri=store.uri,
        )


def _plan(
    files: Sequence[ObjectMeta],
    footers: Sequence[FileMetaData],
    metadata: Metadata,
    partitions: Sequence[HiveColumn],
) -> ConvertPlan:
    config = config_for(metadata.properties, None)
    columns = stats_columns(metadata.schema, metadata.partition_columns, config)
    truncation = truncation_for(metadata, config)
    total = TruncationMetrics()
    adds = []
    for meta, footer in zip(files, footers, strict=True):
        if footer.num_rows == 0:
            continue
        # another writer may have cut texts and ignored NaN in these statistics
        found = stats_from_footer(footer, metadata.schema, columns, trusted=False)
        stats, truncated = truncate_stats(
            found, metadata.schema, truncation, metadata.partition_columns
        )
        total += truncated
        adds.append(
            Add(
                path=meta.key,
                size=meta.size,
                partition_values=hive_values(meta.key, partitions),
                modification_time=meta.modified_ms,
                stats=stats,
                schema_id=metadata.schema_id,
            )
        )
    log_truncation(total)
    metrics = {
        "numConvertedFiles": len(adds),
        "numOutputRows": sum(footer.num_rows for footer in footers),
        "numTruncatedColumns": total.columns,
        "truncationBytesSaved": total.bytes_saved,
    }
    return ConvertPlan(metadata, tuple(adds), metrics)


def _unified(
    files: Sequence[ObjectMeta], footers: Sequence[FileMetaData], partitions: Sequence[HiveColumn]
) -> StructType:
    """Returns one schema for all files: columns in order of appearance, each of the widest type found."""
    merged: dict[str, tuple[Field, str]] = {}
    taken = {column.name.lower() for column in partitions}
    for meta, footer in zip(files, footers, strict=True):
        for field in _schema(meta.key, footer):
            key = field.name.lower()
            if key in taken:
                continue  # the directory decides, as in Spark
            if key in merged:
                mine, first = merged[key]
                kind = _common(mine, field, first, meta.key)
                merged[key] = replace(mine, type=kind), first
            else:
                merged[key] = replace(field, nullable=True), meta.key
    fields = tuple(field for field, _ in merged.values())
    return StructType((*fields, *(Field(c.name, c.type) for c in partitions)))


def _schema(key: str, footer: FileMetaData) -> StructType:
    """Returns the columns of one file; SchemaMismatchError if two names differ only in case.

    One column would hide the values of the other.
    """
    schema = schema_from_arrow(arrow_schema_of(footer))
    try:
        check_names(schema)
    except SchemaError as error:
        raise SchemaMismatchError(
            f"{key!r} cannot be read as part of a table: {error.message}",
            hint="rewrite the file with one name for each column, compared without regard to case",
            file=key,
        ) from error
    return schema


def _common(mine: Field, other: Field, first: str, second: str) -> DataType:
    if can_widen(mine.type, other.type):
        return other.type
    if can_widen(other.type, mine.type):
        return mine.type
    if isinstance(mine.type, StructType) and isinstance(other.type, StructType):
        return _common_struct(mine.type, other.type, first, second, mine.name)
    raise SchemaMismatchError(
        f"column {mine.name!r} is {type_name(mine.type)} in {first!r} and {type_name(other.type)} in {second!r}",
        hint="rewrite one of the files so that the types agree; integers and floats may differ in width",
        column=mine.name,
        files=(first, second),
    )


def _common_struct(
    mine: StructType, other: StructType, first: str, second: str, path: str
) -> StructType:
    fields = {field.name.lower(): field for field in mine}
    for field in other:
        known = fields.get(field.name.lower())
        if known is None:
            fields[field.name.lower()] = replace(field, nullable=True)
        else:
            named = replace(known, name=f"{path}.{known.name}")
            kind = _common(named, field, first, second)
            fields[field.name.lower()] = replace(known, type=kind, nullable=True)
    return StructType(tuple(fields.values()))
