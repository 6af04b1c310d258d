"""Creates a table; its schema, partitions, key and properties are checked before anything is written."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa

from indextables.core.stats import stats_columns
from indextables.core.stats.truncation_options import TruncationOptions
from indextables.core.types import (
    StructType,
    is_orderable,
    schema_from_json,
    type_name,
)
from indextables.core.types.arrow import check_levels
from indextables.errors import NotATableError, SchemaError, TableExistsError
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import (
    MERGE_ON_READ,
    READER_VERSION,
    WRITER_VERSION,
    Metadata,
    Protocol,
)
from indextables.ops.shared.commit import CommitResult, config_for
from indextables.ops.shared.detect import foreign_format
from indextables.ops.shared.record_key import key_properties, top_level
from indextables.ops.shared.schema import check_names
from indextables.parquet.write.conform import source_schema
from indextables.plan.merge_rule import RECORD_KEY


def new_metadata(
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    record_key: Sequence[str] = (),
    merge_mode: str | None = None,
    properties: Mapping[str, object] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Metadata:
    """Returns the metadata of a new table; SchemaError or ConfigError if it could not be written or read."""
    check_names(schema)
    check_levels(schema)
    texts = {key: _property_text(value) for key, value in (properties or {}).items()}
    partitions = _partition_columns(schema, partition_by)
    texts |= key_properties(texts, schema, record_key, merge_mode, partitions)
    # properties that name a missing column would fail every write
    config = config_for(texts, None)
    TruncationOptions.from_config(config)
    stats_columns(schema, partitions, config)
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
    """Commits version 0 of a table without rows; TableExistsError or NotATableError if the place is taken."""
    check_vacant(log)
    plan = CommitPlan(ChangeSchema(), "CREATE TABLE", (protocol_for(metadata), metadata))
    return CommitResult(log.create(plan).version, plan.operation)


def protocol_for(metadata: Metadata) -> Protocol:
    """Returns the protocol that a table with this metadata needs."""
    return needed_for(metadata, Protocol())


def needed_for(metadata: Metadata, protocol: Protocol) -> Protocol:
    """Returns this protocol, extended by what a table with this metadata needs."""
    if RECORD_KEY not in metadata.properties:
        return protocol
    return replace(
        protocol,
        min_reader=max(protocol.min_reader, READER_VERSION),
        min_writer=max(protocol.min_writer, WRITER_VERSION),
        reader_features=tuple(dict.fromkeys((*protocol.reader_features, MERGE_ON_READ))),
        writer_features=tuple(dict.fromkeys((*protocol.writer_features, MERGE_ON_READ))),
    )


def check_vacant(log: TransactionLog) -> None:
    """Raises TableExistsError if there is a table, and NotATableError if there is anything else."""
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


def as_schema(schema: object) -> StructType:
    """Returns the schema of a table from Arrow's, from Spark's, or from the JSON text of one."""
    match schema:
        case StructType():
            return schema
        case pa.Schema():
            return source_schema(schema)
        case str():
            return schema_from_json(schema)
        case _ if callable(
            as_json := getattr(schema, "json", None)
        ):  # pyspark's StructType, without importing it
            return schema_from_json(as_json())
        case _:
            raise SchemaError(
                f"a {type(schema).__name__} is not a schema",
                hint="pass a pyarrow.Schema, a Spark StructType or its JSON text",
            )


def _property_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _partition_columns(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    found = [top_level(schema, name, "partition") for name in names]
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
