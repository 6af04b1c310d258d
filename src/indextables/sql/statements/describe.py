"""DESCRIBE: a table, its history and its columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import pyarrow as pa

from indextables.core.types import Field, StructType, parse_path, resolve, type_name
from indextables.log.open.history import HistoryEntry
from indextables.log.state.snapshot import Snapshot
from indextables.sql.statements.grammar import Arguments, Command, Context

Row: TypeAlias = dict[str, object]

_INSTANT: Final = pa.timestamp("us", "UTC")
_TEXTS: Final = pa.map_(pa.string(), pa.string())

_HISTORY: Final = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _INSTANT),
        ("operation", pa.string()),
        ("operationParameters", _TEXTS),
        ("operationMetrics", _TEXTS),
        ("commitId", pa.string()),
        ("readVersion", pa.int64()),
        ("numFiles", pa.int64()),
        ("logBytes", pa.int64()),
        ("verified", pa.bool_()),
    ]
)
_DETAIL: Final = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", _INSTANT),
        ("lastModified", _INSTANT),
        ("partitionColumns", pa.list_(pa.string())),
        ("version", pa.int64()),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", _TEXTS),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", pa.list_(pa.string())),
    ]
)
_COLUMN: Final = pa.schema([(n, pa.string()) for n in ("info_name", "info_value")])
_COLUMNS: Final = pa.schema([(n, pa.string()) for n in ("col_name", "data_type", "comment")])


def describe_history(context: Context, arguments: Arguments) -> pa.Table:
    """Returns the commits that the log still has, newest first."""
    limit = int(arguments["limit"]) if "limit" in arguments else None
    entries = context.open_log(arguments["table"]).history(limit)
    return pa.Table.from_pylist([_history_row(entry) for entry in entries], _HISTORY)


def _history_row(entry: HistoryEntry) -> Row:
    return {
        "version": entry.version,
        "timestamp": _micros(entry.timestamp_ms),
        "operation": entry.operation,
        "operationParameters": _texts(entry.parameters),
        "operationMetrics": _texts(entry.metrics),
        "commitId": entry.commit_id,
        "readVersion": entry.read_version,
        "numFiles": entry.num_files,
        "logBytes": entry.size_in_bytes,
        "verified": entry.verified,
    }


def describe_detail(context: Context, arguments: Arguments) -> pa.Table:
    """Returns one row about the newest version of the table."""
    log = context.open_log(arguments["table"])
    return pa.Table.from_pylist([_detail_row(log.snapshot(), log.store.uri)], _DETAIL)


def _detail_row(snapshot: Snapshot, location: str) -> Row:
    metadata, protocol = snapshot.metadata, snapshot.protocol
    return {
        "format": "indextables",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": location,
        "createdAt": _micros(metadata.created_time),
        "lastModified": _micros(snapshot.timestamp_ms),
        "partitionColumns": list(metadata.partition_columns),
        "version": snapshot.version,
        "numFiles": snapshot.num_files,
        "sizeInBytes": snapshot.total_bytes,
        "properties": list(metadata.properties.items()),
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "tableFeatures": sorted({*protocol.reader_features, *protocol.writer_features}),
    }


def describe_table(context: Context, arguments: Arguments) -> pa.Table:
    """Returns the columns and then the partition columns, in the form in which Spark describes its own tables."""
    return columns_of(context.open_log(arguments["table"]).snapshot())


def columns_of(snapshot: Snapshot) -> pa.Table:
    """Returns what `describe_table` shows of this version."""
    rows = [_column_row(field) for field in snapshot.schema]
    if snapshot.partition_columns:
        rows += [_row("# Partition Information"), _row("# col_name", "data_type", "comment")]
        rows += [_column_row(field) for field in _partition_fields(snapshot.schema, snapshot)]
    return pa.Table.from_pylist(rows, _COLUMNS)


def describe_column(context: Context, arguments: Arguments) -> pa.Table:
    """Returns name, type and comment of a column or a field of one, in the form that Spark has for it."""
    schema = context.open_log(arguments["table"]).snapshot().schema
    path, kind = resolve(schema, parse_path(arguments["column"]))
    comment = next(field for field in schema if field.name == path[0]).metadata.get("comment")
    rows = [
        {"info_name": "col_name", "info_value": path[-1]},
        {"info_name": "data_type", "info_value": type_name(kind)},
        {"info_name": "comment", "info_value": str(comment) if comment and len(path) == 1 else "NULL"},
    ]
    return pa.Table.from_pylist(rows, _COLUMN)


def _partition_fields(schema: StructType, snapshot: Snapshot) -> Iterator[Field]:
    by_name = {field.name: field for field in schema}
    return (by_name[name] for name in snapshot.partition_columns)


def _column_row(field: Field) -> Row:
    return _row(field.name, type_name(field.type), field.metadata.get("comment"))


def _row(name: str, kind: str = "", comment: str | None = "") -> Row:
    return {"col_name": name, "data_type": kind, "comment": comment}


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000


def _texts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    return [
        (key, value if isinstance(value, str) else json.dumps(value)) for key, value in values.items()
    ]


COMMANDS: Final = (
    Command("DESCRIBE|DESC HISTORY <table> [LIMIT <limit:count>]", describe_history),
    Command("DESCRIBE|DESC DETAIL <table>", describe_detail),
    Command("DESCRIBE|DESC [TABLE] [EXTENDED] <table>", describe_table),
    Command("DESCRIBE|DESC [TABLE] [EXTENDED] <table> <column>", describe_column),
)
