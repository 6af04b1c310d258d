"""The promise of the product: skipping files never changes an answer, and DuckDB agrees with it."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it
from indextables.parquet.read.row_filter import to_row_mask, truth_of
from indextables.parquet.read.read import ReadRequest, read_batches
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import must_match
from indextables.core.predicate.to_sql import to_sql
from indextables.core.types import (
    DecimalType,
    Field,
    PrimitiveType,
    StructType,
    leaves,
    schema_to_arrow,
    type_to_arrow,
)
from indextables.storage.open import open_store
from support.conditions import conditions
from support.strategies import values_of

# 200 tables in CI, ten conditions each: 2,000 examples. `make fuzz` multiplies the tables.
TABLES = max(200, settings().max_examples)
CONDITIONS = 10
DUCKDB = duckdb.connect()

_names = ("boolean", "byte", "short", "integer", "long", "float", "double")
_types = st.sampled_from(
    [
        *(
            PrimitiveType(name)
            for name in (*_names, "date", "timestamp", "timestamp_ntz", "string", "binary")
        ),
        DecimalType(5, 2),
        DecimalType(38, 10),
    ]
)
PREFIX = "spark.indextables."
_options = st.fixed_dictionaries(
    {},
    optional={
        f"{PREFIX}stats.truncation.enabled": st.booleans(),
        f"{PREFIX}stats.truncation.strategy": st.sampled_from(["drop", "bound"]),
        f"{PREFIX}stats.truncation.maxLength": st.integers(0, 8),
        f"{PREFIX}dataSkippingNumIndexedCols": st.sampled_from([-1, 0, 1, 2]),
    },
)
_marked = st.just(
    {f"{PREFIX}stats.truncation.strategy": "truncate", f"{PREFIX}stats.truncation.maxLength": 14}
)


@dataclass
class Example:
    """A schema, some splits with the options they are written with, and conditions on the whole."""

    schema: StructType
    partition_by: list[str]
    splits: list[tuple[pa.Table, dict[str, Any]]]
    conditions: list[Predicate]


@st.composite
def examples(draw):
    kinds = draw(st.lists(_types, min_size=1, max_size=3))
    kinds += draw(st.sampled_from([[], [], [kinds[0]]]))  # two columns of one type can be compared
    fields = [Field(name, kind) for name, kind in zip("abcd", kinds, strict=False)]
    if draw(st.booleans()):
        inner = draw(_types)
        fields.append(Field("s", StructType((Field("x", inner),))))
    partition_by = [fields[0].name] if len(fields) > 1 and draw(st.integers(0, 3)) == 0 else []
    schema = StructType(tuple(fields))
    pool = {
        f.name: draw(st.lists(st.none() | values_of(f.type), min_size=1, max_size=5)) for f in schema
    }
    splits = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(0, 4))
        columns = [
            pa.array([draw(st.sampled_from(pool[f.name])) for _ in range(rows)], type_to_arrow(f.type))
            for f in schema
        ]
        splits.append((pa.table(columns, schema_to_arrow(schema)), draw(st.one_of(_options, _marked))))
    present = {
        leaf.path: [
            v for value in pool[leaf.path[0]] if (v := _below(value, leaf.path[1:])) is not None
        ]
        for leaf in leaves(schema)
    }
    found = draw(st.lists(conditions(schema, present), min_size=CONDITIONS, max_size=CONDITIONS))
    return Example(schema, partition_by, splits, found)


def _below(value, path):
    for name in path:
        value = None if value is None else value[name]
    return value


def written(example):
    table = it.Table.create(f"memory://{uuid4()}", example.schema, partition_by=example.partition_by)
    for data, options in example.splits:
        table.append(data, options=options)
    return table


def duckdb_truth(data, found):
    """TRUE, FALSE or NULL per row and condition, by DuckDB."""
    DUCKDB.register("t", data)
    columns = ", ".join(f"({to_sql(p, 'duckdb')})::BOOLEAN" for p in found)
    return DUCKDB.sql(f"SELECT {columns} FROM t").fetchall()


@settings(max_examples=TABLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples())
def test_property_a_pruned_scan_is_an_unpruned_scan_is_duckdb(example):
    """Random schema, rows from nasty values, splits, truncation, partitions and trees of conditions.

    And a split that must match has no other rows.
    """
    table = written(example)
    snapshot = table.snapshot()
    store = open_store(table.uri)
    everything = ReadRequest(store, snapshot.schema, snapshot.schema.names)
    data = pa.Table.from_batches(
        read_batches(everything, snapshot.splits()), schema_to_arrow(snapshot.schema)
    )
    assert data.num_rows == sum(part.num_rows for part, _ in example.splits)
    duck = duckdb_truth(data, example.conditions) if data.num_rows else []
    for position, condition in enumerate(example.conditions):
        bound = bind(condition, snapshot.schema)
        assert truth_of(bound, data).to_pylist() == [row[position] for row in duck], to_sql(condition)
        expected = data.filter(to_row_mask(bound, data))
        found = table.scan(condition).to_arrow()
        assert repr(found.to_pylist()) == repr(expected.to_pylist()), to_sql(condition)
        for split in snapshot.splits(must_match(bound, snapshot.index())):
            # every row matches, so a delete may drop it unread
            rows = pa.Table.from_batches(read_batches(everything, [split]))
            assert pc.all(to_row_mask(bound, rows)).as_py(), to_sql(condition)
