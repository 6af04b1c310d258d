"""Actions to lines; the order of keys is fixed, so equal actions are equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indextables.core.stats import to_wire
from indextables.core.types import StructType, schema_to_json
from indextables.log.wire.actions import (
    PARQUET_FORMAT,
    Action,
    Add,
    CommitInfo,
    Metadata,
    Protocol,
    Remove,
    Txn,
    Unknown,
    Vacuum,
)
from indextables.log.wire.lenient import dumps
from indextables.storage.location import action_path


def encode_action(action: Action | CommitInfo, *, seq: int, schema: StructType) -> bytes:
    """One line, with its newline; `seq` is for an add that has none.

    `schema` is the one the statistics of adds were made by: the table's when the commit was planned.
    """
    match action:
        case Unknown():
            return action.raw.rstrip(b"\r\n") + b"\n"
        case Add():
            body = {"add": _add(action, seq, schema)}
        case Remove():
            body = {"remove": _remove(action)}
        case Protocol():
            body = {"protocol": _protocol(action)}
        case Metadata():
            body = {"metaData": _metadata(action)}
        case Txn():
            body = {"txn": _txn(action)}
        case Vacuum():
            body = {"vacuum": {"minReadVersion": action.min_read_version, **action.extra}}
        case CommitInfo():
            body = {"commitInfo": _commit_info(action)}
    return dumps(body) + b"\n"


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _add(add: Add, seq: int, schema: StructType) -> dict[str, Any]:
    return add_object(
        add.path,
        partitionValues=dict(add.partition_values),
        size=add.size,
        modificationTime=add.modification_time,
        dataChange=add.data_change,
        stats=to_wire(add.stats, schema) if add.stats is not None else None,
        schemaId=add.schema_id,
        seq=seq if add.seq is None else add.seq,
        fileGroup=add.file_group,
        kind=add.kind,
        block=add.block,
        extra={**({"tags": dict(add.tags)} if add.tags else {}), **add.extra},
    )


def add_object(key: str, *, stats: Any, extra: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The body of an add; unknown statistics in `extra` go back to where they were found."""
    if isinstance(unread := extra.get("stats"), dict):
        stats = _merge(stats or {}, unread)
    body = _present(path=action_path(key), **fields)
    if stats is not None:
        body["stats"] = stats
    return {**body, **{name: value for name, value in extra.items() if name != "stats"}}


def _merge(known: Mapping[str, Any], unread: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(known)
    for name, value in unread.items():
        below = merged.get(name)
        merged[name] = (
            _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return merged


def _remove(remove: Remove) -> dict[str, Any]:
    return {
        **_present(
            path=action_path(remove.path),
            deletionTimestamp=remove.deletion_timestamp,
            dataChange=remove.data_change,
        ),
        **remove.extra,
    }


def _protocol(protocol: Protocol) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "readerFeatures": list(protocol.reader_features),
        "writerFeatures": list(protocol.writer_features),
        **protocol.extra,
    }


def _metadata(metadata: Metadata) -> dict[str, Any]:
    past = [  # a list, not an object by id: JSON has no integer keys
        {"schemaId": schema_id, "schemaString": schema_to_json(schema)}
        for schema_id, schema in sorted(metadata.past_schemas.items())
    ]
    return {
        **_present(id=metadata.id, name=metadata.name, description=metadata.description),
        "format": PARQUET_FORMAT,
        "schemaString": schema_to_json(metadata.schema),
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.properties),
        **_present(createdTime=metadata.created_time, schemaId=metadata.schema_id),
        **({"pastSchemas": past} if past else {}),
        **metadata.extra,
    }


def _txn(txn: Txn) -> dict[str, Any]:
    return {
        **_present(appId=txn.app_id, version=txn.version, lastUpdated=txn.last_updated),
        **txn.extra,
    }


def _commit_info(info: CommitInfo) -> dict[str, Any]:
    return {
        **_present(
            commitId=info.commit_id,
            parent=info.parent,
            timestamp=info.timestamp,
            operation=info.operation,
        ),
        **({"operationParameters": dict(info.parameters)} if info.parameters else {}),
        "operationMetrics": dict(info.metrics),
        **_present(readVersion=info.read_version),
        **info.extra,
        **_present(actions=info.actions, numFiles=info.num_files, crc32=info.crc32),
    }
