"""Conversion of actions to and from lines; keys are written in a fixed order, so equal actions are equal bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar, overload

from indextables.core.stats import to_wire
from indextables.core.types import StructType, schema_from_json, schema_to_json
from indextables.errors import LogCorruptedError, SchemaError
from indextables.log.wire.actions import (
    PARQUET_FORMAT,
    Action,
    Add,
    CommitInfo,
    Extra,
    Metadata,
    Protocol,
    Remove,
    StateAction,
    Txn,
    Unknown,
    Vacuum,
)
from indextables.log.wire.lines import LinePosition, dumps, is_clean
from indextables.storage.location import action_path


def encode_action(action: Action | CommitInfo, *, seq: int, schema: StructType) -> bytes:
    """Returns the line of an action, with its newline.

    An add without a `seq` gets this one. `schema` is the table's schema when the commit was planned, by
    which the statistics of its adds were made.
    """
    body: dict[str, object]
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


def _present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _add(add: Add, seq: int, schema: StructType) -> dict[str, object]:
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


def add_object(
    key: str, *, stats: Mapping[str, object] | None, extra: Mapping[str, object], **fields: object
) -> dict[str, object]:
    """Returns the body of an add; unknown statistics in `extra` are put back where they were found."""
    if isinstance(unread := extra.get("stats"), dict):
        stats = _merge(stats or {}, unread)
    body = _present(path=action_path(key), **fields)
    if stats is not None:
        body["stats"] = stats
    return {**body, **{name: value for name, value in extra.items() if name != "stats"}}


def _merge(known: Mapping[str, object], unread: Mapping[str, object]) -> dict[str, object]:
    merged = dict(known)
    for name, value in unread.items():
        below = merged.get(name)
        merged[name] = (
            _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return merged


def _remove(remove: Remove) -> dict[str, object]:
    return {
        **_present(
            path=action_path(remove.path),
            deletionTimestamp=remove.deletion_timestamp,
            dataChange=remove.data_change,
        ),
        **remove.extra,
    }


def _protocol(protocol: Protocol) -> dict[str, object]:
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "readerFeatures": list(protocol.reader_features),
        "writerFeatures": list(protocol.writer_features),
        **protocol.extra,
    }


def _metadata(metadata: Metadata) -> dict[str, object]:
    past = [  # a list and not an object by id, because JSON has no integer keys
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


def _txn(txn: Txn) -> dict[str, object]:
    return {
        **_present(appId=txn.app_id, version=txn.version, lastUpdated=txn.last_updated),
        **txn.extra,
    }


def _commit_info(info: CommitInfo) -> dict[str, object]:
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


# Lines to actions. An unknown field is kept; a field of the wrong type is an error with file and line.

FILE_ACTIONS = frozenset({"add", "remove"})
"""Actions that become rows of a segment and not objects."""


def decode_action(
    name: str, value: object, raw: bytes, position: LinePosition
) -> StateAction | CommitInfo:
    """Returns the action of a line that is not about a file; an unknown action keeps its line as it is."""
    decoder = _DECODERS.get(name)
    if decoder is None or (name == "vacuum" and not _is_vacuum(value)):
        return Unknown(name, raw)
    # Only an escape or a byte beyond ASCII can become a lone surrogate.
    plain = raw.isascii() and b"\\u" not in raw
    if not isinstance(value, dict) or not (plain or is_clean(value)):
        raise position.corrupted(f"{name!r} is not an object of valid text")
    return decoder(_Fields(value, name, position))


def _is_vacuum(value: object) -> bool:
    """Returns True for a vacuum of this library; other writers use the name for actions of their own."""
    return isinstance(value, dict) and type(value.get("minReadVersion")) is int


T = TypeVar("T")


class _Fields:
    """The fields of one action; taking one checks its type, and what is left in the end is unknown."""

    def __init__(self, value: Mapping[str, object], name: str, position: LinePosition) -> None:
        self._left: dict[str, Any] = dict(value)
        self._name = name
        self._position = position

    def wrong(self, field: str, what: str) -> LogCorruptedError:
        return self._position.corrupted(f"{self._name}.{field} {what}")

    @overload
    def take(self, field: str, kind: type[T], *, required: Literal[True]) -> T: ...
    @overload
    def take(self, field: str, kind: type[T], default: T) -> T: ...
    @overload
    def take(self, field: str, kind: type[T]) -> T | None: ...
    def take(
        self, field: str, kind: type[T], default: T | None = None, *, required: bool = False
    ) -> T | None:
        value: object = self._left.pop(field, None)
        if value is None:
            if required:
                raise self.wrong(field, "is missing")
            return default
        # A bool is an int in Python and never in JSON.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(field, f"is not {_JSON_NAMES[kind]}: {value!r:.80}")
        return value

    @overload
    def maybe(self, field: str, kind: type[T], default: T) -> T: ...
    @overload
    def maybe(self, field: str, kind: type[T]) -> T | None: ...
    def maybe(self, field: str, kind: type[T], default: T | None = None) -> T | None:
        """Returns the field if it has the type that this library writes; else it stays unknown."""
        value: object = self._left.get(field)
        if not isinstance(value, kind) or isinstance(value, bool):
            return default
        del self._left[field]
        return value

    def forget(self, field: str, default: object) -> None:
        """Drops a field whose value is the one that is written anyway."""
        if self._left.get(field) == default:
            del self._left[field]

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.take(field, list, [])
        if not all(isinstance(item, str) for item in value):
            raise self.wrong(field, "is not a list of texts")
        return tuple(value)

    def rest(self) -> Extra:
        return self._left


_JSON_NAMES = {
    int: "an integer",
    str: "a text",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}


def _to_protocol(fields: _Fields) -> Protocol:
    return Protocol(
        min_reader=fields.take("minReaderVersion", int, 1),
        min_writer=fields.take("minWriterVersion", int, 1),
        reader_features=fields.texts("readerFeatures"),
        writer_features=fields.texts("writerFeatures"),
        extra=fields.rest(),
    )


def _to_metadata(fields: _Fields) -> Metadata:
    schema = _to_schema(fields, fields.take("schemaString", str, required=True))
    past = fields.take("pastSchemas", list, [])
    partitions = _to_partitions(fields, schema)
    fields.forget("format", PARQUET_FORMAT)
    return Metadata(
        id=fields.take("id", str, required=True),
        name=fields.take("name", str),
        description=fields.take("description", str),
        schema=schema,
        partition_columns=partitions,
        properties=fields.take("configuration", dict, {}),
        created_time=fields.take("createdTime", int),
        schema_id=fields.take("schemaId", int, 0),
        past_schemas={
            _past_id(fields, item): _to_schema(fields, item["schemaString"]) for item in past
        },
        extra=fields.rest(),
    )


def _past_id(fields: _Fields, item: object) -> int:
    match item:
        case {"schemaId": int(schema_id), "schemaString": str()}:
            return schema_id
        case _:
            raise fields.wrong("pastSchemas", "has an entry without schemaId and schemaString")


def _to_schema(fields: _Fields, text: str) -> StructType:
    try:
        schema = _parsed(text)
    except (SchemaError, ValueError, KeyError, TypeError) as error:
        raise fields.wrong("schemaString", f"is not a schema: {error}") from error
    if (name := _repeated(schema)) is not None:
        raise fields.wrong("schemaString", f"is not a schema: it has the column {name!r} twice")
    return schema


@lru_cache(maxsize=64)
def _parsed(text: str) -> StructType:
    """Returns the schema of a JSON text, parsed once however often a table is opened."""
    return schema_from_json(text)


def _repeated(struct: StructType) -> str | None:
    """Returns a name that two fields of one struct have, so that it names neither; None if there is none."""
    names = struct.names
    if len(set(names)) < len(names):
        return next(name for i, name in enumerate(names) if name in names[:i])
    below = (_repeated(f.type) for f in struct if isinstance(f.type, StructType))
    return next((name for name in below if name is not None), None)


def _to_partitions(fields: _Fields, schema: StructType) -> tuple[str, ...]:
    columns = fields.texts("partitionColumns")
    known = frozenset(schema.names) if columns else frozenset[str]()
    for name in columns:
        if name not in known:
            raise fields.wrong("partitionColumns", f"names {name!r}, which is not a column")
    if len(set(columns)) < len(columns):
        raise fields.wrong("partitionColumns", f"names a column twice: {list(columns)}")
    return columns


def _to_txn(fields: _Fields) -> Txn:
    return Txn(
        app_id=fields.take("appId", str, required=True),
        version=fields.take("version", int, required=True),
        last_updated=fields.take("lastUpdated", int),
        extra=fields.rest(),
    )


def _to_vacuum(fields: _Fields) -> Vacuum:
    return Vacuum(fields.take("minReadVersion", int, required=True), extra=fields.rest())


def _to_commit_info(fields: _Fields) -> CommitInfo:
    return CommitInfo(
        commit_id=fields.maybe("commitId", str),
        parent=fields.maybe("parent", str),
        timestamp=fields.maybe("timestamp", int),
        operation=fields.maybe("operation", str),
        parameters=fields.maybe("operationParameters", dict, {}),
        metrics=fields.maybe("operationMetrics", dict, {}),
        read_version=fields.maybe("readVersion", int),
        actions=fields.maybe("actions", int),
        crc32=fields.maybe("crc32", int),
        num_files=fields.maybe("numFiles", int),
        extra=fields.rest(),
    )


_DECODERS: Mapping[str, Callable[[_Fields], StateAction | CommitInfo]] = {
    "protocol": _to_protocol,
    "metaData": _to_metadata,
    "txn": _to_txn,
    "vacuum": _to_vacuum,
    "commitInfo": _to_commit_info,
}
