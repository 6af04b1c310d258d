"""A table against a plain list of rows: whatever is done to both, they stay the same."""

from collections import Counter
from uuid import uuid4

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import indextables as it
from indextables.core.types import (
    PrimitiveType,
    StructType,
    is_orderable,
    schema_to_arrow,
    type_to_arrow,
)
from support.strategies import schemas, tables, values_of

quick = settings(
    max_examples=max(60, settings().max_examples // 2),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def exactly(table):
    """Rows as texts: NaN equals itself, -0.0 is not 0.0, and a NULL struct is not a struct of NULLs."""
    return [repr(row) for row in table.to_pylist()]


@quick
@given(tables(), st.data())
def test_property_every_type_and_name_survives_writing_and_reading(found, data):
    """Arbitrary nested schemas, names that need quoting, any number of splits, memory as the store."""
    schema, rows = found
    table = it.Table.create(f"memory://{uuid4()}", schema)
    start = 0
    while start < rows.num_rows:
        step = data.draw(st.integers(1, rows.num_rows))
        table.append(rows.slice(start, step))
        start += step
    assert exactly(table.scan().to_arrow()) == exactly(rows)
    assert table.scan().to_arrow().schema == rows.schema
    assert table.check(deep=True).ok


def _can_partition(field):
    return is_orderable(field.type)


partitioned = schemas.filter(lambda s: len(s.fields) > 1 and any(map(_can_partition, s)))


@quick
@given(tables(partitioned), st.data())
def test_property_every_partition_value_survives(found, data):
    """As a typed column again, the empty text as NULL, and never outside its own partition."""
    schema, rows = found
    by = data.draw(st.sampled_from([f.name for f in schema if _can_partition(f)]))
    table = it.Table.create(f"memory://{uuid4()}", schema, partition_by=[by])
    table.append(rows)
    position = rows.schema.names.index(by)
    column = rows.column(position)
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        column = pa.chunked_array([[value or None for value in column.to_pylist()]], column.type)
    if pa.types.is_floating(column.type):
        zero = [0.0 if value == 0 else value for value in column.to_pylist()]
        column = pa.chunked_array([zero], column.type)
    expected = rows.set_column(position, rows.schema.field(position), column)
    assert Counter(exactly(table.scan().to_arrow())) == Counter(exactly(expected))
    distinct = {repr(value) for value in column.to_pylist()}
    assert table.snapshot().num_files == len(distinct)


class TableMachine(RuleBasedStateMachine):
    """Appends, overwrites, deletes, schema changes and upkeep in any order."""

    @initialize(
        kinds=st.lists(
            st.sampled_from(
                [PrimitiveType(n) for n in ("long", "double", "string", "boolean", "date")]
            ),
            min_size=1,
            max_size=3,
        ),
        partitioned=st.booleans(),
    )
    def create(self, kinds, partitioned):
        self.uri = f"memory://{uuid4()}"
        self.kinds = {f"c{i}": kind for i, kind in enumerate(kinds)}
        fields = [pa.field("k", pa.int32()), *(pa.field(n, _arrow(k)) for n, k in self.kinds.items())]
        self.table = it.Table.create(
            self.uri,
            pa.schema(fields),
            partition_by=["k"] if partitioned else [],
            properties={"spark.indextables.checkpoint.interval": 3},
        )
        self.rows = []
        self.versions = {0: []}

    def _draw(self, data, size):
        cells = {"k": st.integers(0, 4), **{n: st.none() | values_of(k) for n, k in self.kinds.items()}}
        return [data.draw(st.fixed_dictionaries(cells)) for _ in range(size)]

    def _arrow(self, rows):
        schema = {"k": pa.int32(), **{n: _arrow(k) for n, k in self.kinds.items()}}
        return pa.table({n: pa.array([r[n] for r in rows], t) for n, t in schema.items()})

    def _done(self, rows):
        self.rows = rows
        self.versions[self.table.version] = list(rows)

    @rule(data=st.data(), size=st.integers(0, 5))
    def append(self, data, size):
        new = self._draw(data, size)
        self.table.append(self._arrow(new))
        self._done(self.rows + new)

    @rule(data=st.data(), k=st.integers(0, 4))
    def overwrite_part(self, data, k):
        new = [{**row, "k": k} for row in self._draw(data, 2)]
        self.table.overwrite(self._arrow(new), where=it.col("k") == k)
        self._done([row for row in self.rows if row["k"] != k] + new)

    @precondition(lambda self: len(self.rows) > 8)
    @rule(data=st.data())
    def overwrite_all(self, data):
        new = self._draw(data, 2)
        self.table.overwrite(self._arrow(new))
        self._done(new)

    @rule(k=st.integers(0, 4), op=st.sampled_from(["<", "=", ">="]))
    def delete(self, k, op):
        matches = {"<": lambda v: v < k, "=": lambda v: v == k, ">=": lambda v: v >= k}[op]
        self.table.delete(f"k {op} {k}")
        self._done([row for row in self.rows if not matches(row["k"])])

    @rule(data=st.data())
    def delete_a_value(self, data):
        name = data.draw(st.sampled_from(sorted(self.kinds)))
        self.table.delete(f"{name} is null")
        self._done([row for row in self.rows if row[name] is not None])

    @precondition(lambda self: len(self.kinds) < 5)
    @rule(kind=st.sampled_from([PrimitiveType(n) for n in ("long", "string", "float")]))
    def add_a_column(self, kind):
        name = f"c{len(self.kinds)}"
        schema = [*_fields(self.table.schema), pa.field(name, _arrow(kind))]
        self.table.evolve(pa.schema(schema))
        self.kinds[name] = kind
        self._done([{**row, name: None} for row in self.rows])

    @rule()
    def reopen(self):
        self.table = it.Table(self.uri)

    @rule(what=st.sampled_from(["checkpoint", "analyze", "drop", "vacuum"]))
    def upkeep(self, what):
        match what:
            case "checkpoint":
                self.table.checkpoint()
            case "analyze":
                self.table.analyze()
            case "drop":
                self.table.drop_statistics(["c0"])
            case "vacuum":
                self.table.vacuum(apply=True)
        self._done(self.rows)

    @rule(data=st.data())
    def travel(self, data):
        version = data.draw(st.sampled_from(sorted(self.versions)))
        found = self.table.scan(version=version).to_arrow()
        assert _bag(found.to_pylist()) == _bag(self.versions[version])

    @invariant()
    def the_rows_are_the_same(self):
        if hasattr(self, "table"):
            assert _bag(self.table.scan().to_arrow().to_pylist()) == _bag(self.rows)
            assert self.table.scan().count() == len(self.rows)

    def teardown(self):
        if hasattr(self, "table"):
            assert self.table.check(deep=True).problems == ()


def _bag(rows):
    return Counter(repr(sorted(row.items())) for row in rows)


def _arrow(kind):
    return type_to_arrow(kind)


def _fields(schema: StructType):
    return list(schema_to_arrow(schema))


TestPropertyOfATable = TableMachine.TestCase
TestPropertyOfATable.settings = settings(
    max_examples=max(15, settings().max_examples // 10),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
