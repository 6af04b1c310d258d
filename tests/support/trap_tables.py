"""The traps as real tables: by our own writer, or as another writer would have left them."""

import io
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

import indextables as it
from indextables.core.types import StructType, schema_to_arrow, schema_to_json
from indextables.storage import open_store
from support.logs import write_foreign
from support.traps import wire_statistics


def trap_table(trap):
    """A table with one file per split, in their order."""
    is_foreign = trap.is_foreign or any(split.data.num_rows == 0 for split in trap.splits)
    return _foreign(trap) if is_foreign else _own(trap)


def _own(trap):
    first = trap.splits[0]
    table = it.Table.create(
        f"memory://{uuid4()}",
        schema_to_json(first.schema),
        partition_by=[name for name in trap.partition_by if name in first.schema.names],
    )
    for split in trap.splits:
        if split.schema != table.schema:
            table.evolve(schema_to_json(split.schema))
        table.append(split.data, options=split.properties)
    if table.schema != trap.schema:
        table.evolve(schema_to_json(trap.schema))
    return table


def _foreign(trap):
    """Schema 0 is that of a split whose columns were dropped since, schema 1 the table's."""
    store = open_store(f"memory://{uuid4()}")
    dropped = {path[0] for split in trap.splits for path in split.dropped}
    past = StructType(tuple(field for field in trap.schema if field.name not in dropped))
    metadata = {
        "id": "trap",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_to_json(trap.schema),
        "partitionColumns": list(trap.partition_by),
        "configuration": {},
        "createdTime": 1,
        "schemaId": 1,
        "pastSchemas": [{"schemaId": 0, "schemaString": schema_to_json(past)}],
    }
    adds = [_add(store, number, split, trap) for number, split in enumerate(trap.splits)]
    write_foreign(store, {0: [{"metaData": metadata}], **{n + 1: [add] for n, add in enumerate(adds)}})
    return it.Table(store)


def _add(store, number, split, trap):
    assert not trap.partition_by, "no trap of another writer's has partitions yet"
    file = io.BytesIO()
    pq.write_table(split.data, file)
    path = f"part-{number:05}.parquet"
    store.put(path, file.getvalue())
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": len(file.getvalue()),
            "modificationTime": 1,
            "dataChange": True,
            "stats": wire_statistics(split, trap),
            "schemaId": 0 if split.dropped else 1,
            "seq": number + 1,
        }
    }


def matching_rows(trap):
    """The rows the condition is TRUE for, as the table shows them; None if only an engine can tell."""
    if trap.rows is None:
        return None
    return [str(_rows(trap.splits[split], trap)[row]) for split, row in trap.rows]


def _rows(split, trap):
    """The rows of a split in the table's columns and types."""
    names, schema = split.data.column_names, schema_to_arrow(trap.schema)
    columns = [
        split.data.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(split.data.num_rows, field.type)
        for field in schema
    ]
    rows = pa.table(columns, schema=schema).to_pylist()
    # Spark stores the empty text as NULL in a partition's name
    return [{k: None if k in trap.partition_by and v == "" else v for k, v in r.items()} for r in rows]
