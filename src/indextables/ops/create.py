"""Create a table: its schema, partitions, keys and properties, checked before anything is written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

from indextables.arrow.conform import source_schema
from indextables.core.types import (
    DataType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    resolve,
    schema_from_json,
    type_name,
)
from indextables.errors import ConfigError, NotATableError, SchemaError, TableExistsError
from indextables.log.actions import COMMIT_TRAILER, MERGE_ON_READ, Metadata, Protocol
from indextables.log.plan import ChangeSchema, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.ops.foreign import foreign_format
from indextables.ops.result import CommitResult
from indextables.ops.target import config_for
from indextables.scan.merge import MERGE_MODE, RECORD_KEY, MergeMode


def new_metadata(
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    record_key: Sequence[str] = (),
    merge_mode: str | None = None,
    properties: Mapping[str, Any] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Metadata:
    """The metadata of a new table; SchemaError or ConfigError if it could not be written or read."""
    _check_names(schema, "")
    texts = {key: _property_text(value) for key, value in (properties or {}).items()}
    partitions = _partition_columns(schema, partition_by)
    texts |= _key_properties(texts, _key_columns(schema, record_key, partitions), merge_mode)
    config_for(texts, None)
    return Metadata(
        id=str(uuid4()),
        schema=schema,
        partition_columns=partitions,
        name=name,
        description=description,
        properties=texts,
        created_time=time.time_ns() // 1_000_000,
    )


def create(log: TransactionLog, metadata: Metadata) -> CommitResult:
    """Version 0 of a table without rows; TableExistsError if there is one, NotATableError if there is data."""
    check_vacant(log)
    plan = CommitPlan(ChangeSchema(), "CREATE TABLE", (protocol_for(metadata), metadata))
    return CommitResult(log.create(plan).version, plan.operation)


def protocol_for(metadata: Metadata) -> Protocol:
    """What a table with this metadata asks of its readers and writers."""
    if RECORD_KEY not in metadata.properties:
        return Protocol()
    return Protocol(reader_features=(MERGE_ON_READ,), writer_features=(COMMIT_TRAILER, MERGE_ON_READ))


def check_vacant(log: TransactionLog) -> None:
    """TableExistsError if there is a table, NotATableError if there is anything else."""
    if log.exists():
        raise TableExistsError(
            f"there is a table at {log.store.uri} already",
            hint="open it with Table(path), or choose another path",
            uri=log.store.uri,
        )
    found = foreign_format(log.store)
    if found is not None:
        raise NotATableError(
            f"{log.store.uri} is {found.what}: a table cannot be created there", hint=found.hint
        )


def as_schema(schema: Any) -> StructType:
    """A schema of ours from one of Arrow's, of Spark's, or from the JSON text of one."""
    match schema:
        case StructType():
            return schema
        case pa.Schema():
            return source_schema(schema)
        case str():
            return schema_from_json(schema)
        case _ if callable(getattr(schema, "json", None)):  # pyspark's StructType, without importing it
            return schema_from_json(schema.json())
        case _:
            raise SchemaError(
                f"a {type(schema).__name__} is not a schema",
                hint="pass a pyarrow.Schema, a Spark StructType or its JSON text",
            )


def _property_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_names(struct: StructType, path: str) -> None:
    if not struct.fields:
        raise SchemaError(f"{path or 'the table'} has no columns", hint="give it at least one")
    seen: dict[str, str] = {}
    for field in struct:
        if not field.name:
            raise SchemaError(f"a column of {path or 'the table'} has no name")
        if (other := seen.setdefault(field.name.lower(), field.name)) is not field.name:
            raise SchemaError(
                f"columns {other!r} and {field.name!r} have the same name",
                hint="names are compared without regard to case: rename one of them",
                column=f"{path}{field.name}",
            )
        for below in _structs(field.type):
            _check_names(below, f"{path}{field.name}.")


def _structs(kind: DataType) -> Iterator[StructType]:
    match kind:
        case StructType():
            yield kind
        case ListType(element=element):
            yield from _structs(element)
        case MapType(key=key, value=value):
            yield from _structs(key)
            yield from _structs(value)
        case _:
            return


def _partition_columns(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    found = [_top_level(schema, name, "partition") for name in names]
    for name, kind in found:
        if not is_orderable(kind) or isinstance(kind, StructType):
            raise SchemaError(
                f"column {name!r} is {type_name(kind)} and cannot be a partition",
                hint="partition by a column with simple values: numbers, dates, texts",
                column=name,
            )
    columns = tuple(name for name, _ in found)
    if len(set(columns)) < len(columns):
        raise SchemaError(f"partition columns {list(names)} repeat a column")
    if len(columns) == len(schema.fields):
        raise SchemaError(
            "every column is a partition column, so the files would have none",
            hint="leave at least one column out of partition_by",
        )
    return columns


def _key_properties(
    given: Mapping[str, str], key: Sequence[str], merge_mode: str | None
) -> dict[str, str]:
    """The properties of a table with this key, none without one; ConfigError if they contradict."""
    for name, argument in ((RECORD_KEY, "record_key"), (MERGE_MODE, "merge_mode")):
        if name in given:
            raise ConfigError(
                f"the property {name!r} is not set by hand", hint=f"pass {argument}=… instead", key=name
            )
    if merge_mode not in (None, MergeMode.RECORD, MergeMode.COLUMNS):
        raise ConfigError(
            f"there is no merge mode {merge_mode!r}",
            hint="choose 'record' or 'columns'",
            value=merge_mode,
        )
    if not key:
        if merge_mode is not None:
            raise ConfigError(
                "merge_mode says how rows with one key are merged, and there is no key",
                hint="pass record_key=[…] too, or leave merge_mode out",
            )
        return {}
    return {RECORD_KEY: json.dumps(key), MERGE_MODE: merge_mode or MergeMode.RECORD.value}


def _key_columns(
    schema: StructType, names: Sequence[str], partition_columns: Sequence[str]
) -> list[str]:
    found = [_top_level(schema, name, "key") for name in names]
    fields = {field.name: field for field in schema}
    for name, _ in found:
        if reason := key_problem(fields[name]):
            raise SchemaError(
                f"column {name!r} {reason}, so it cannot identify a row",
                hint="use NOT NULL columns of integers, decimals, dates, timestamps, texts or bytes",
                column=name,
            )
    columns = [name for name, _ in found]
    if len(set(columns)) < len(columns):
        raise SchemaError(f"record key {list(names)} repeats a column")
    if columns and set(columns) <= set(partition_columns):
        raise SchemaError(
            "every column of the record key is a partition column, so a partition could hold one row",
            hint="add the column that tells the rows of a partition apart",
        )
    return columns


def key_problem(field: Field) -> str | None:
    """Why this column cannot be part of a record key; None if it can."""
    if field.nullable:
        return "may be NULL"
    if is_float(field.type):
        return "is a float, and NaN has no identity"
    if not is_orderable(field.type, field.metadata):
        return f"is {type_name(field.type)}, which has no order of its own"
    return None


def _top_level(schema: StructType, name: str, role: str) -> tuple[str, DataType]:
    (*_, spelled), kind = resolve(schema, (name,))
    if isinstance(kind, PrimitiveType) and kind.name == "variant":
        raise SchemaError(f"column {name!r} is a variant and cannot be a {role} column", column=name)
    return spelled, kind
