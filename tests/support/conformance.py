"""One table with everything that engines read differently, two hundred conditions over it, and every engine."""

import datetime as dt
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)

UTC = dt.UTC
OLD = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("amount", pa.decimal128(8, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("on", pa.date32()),
        ("name", pa.string()),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("place", pa.struct([("city", pa.string()), ("code", pa.int32())])),
        ("tags", pa.list_(pa.int32())),
        ("day", pa.date32()),
        ("region", pa.string()),
    ]
)
# n is wider and amount has more digits than in older splits, which have no `added` either
NEW = pa.schema(
    [
        f.with_type(pa.int64())
        if f.name == "n"
        else f.with_type(pa.decimal128(12, 3))
        if f.name == "amount"
        else f
        for f in OLD
    ]
    + [pa.field("added", pa.string())]
)
REGIONS = ["north", "o'hara ü%", None]
WORDS = ["ada", "adb", "grace", "Grace", "zoë", "", "~", "ada lovelace"]


def make_table(path: Path) -> it.Table:
    """Twelve splits of 40 rows: six written before the schema changed, six after."""
    rng = random.Random(7)
    table = it.Table.create(path, OLD, partition_by=["day", "region"])
    for number in range(12):
        if number == 6:
            table.evolve(NEW)
        schema = OLD if number < 6 else NEW
        table.append(pa.Table.from_pylist(random_rows(rng, number, schema.names), schema))
    return table


def random_rows(rng: random.Random, number: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """Forty rows of one partition, around values that differ from number to number."""
    base = dt.datetime(2024, 1, 1) + dt.timedelta(days=number)
    day = None if number % 4 == 3 else dt.date(2024, 1, 1 + number % 4)
    rows = []
    for i in range(40):
        moment = base + dt.timedelta(minutes=rng.randrange(1440), microseconds=rng.randrange(1000))
        number_or_nan = float("nan") if rng.random() < 0.15 else number * 10 + rng.randrange(100) / 4
        row = {
            "id": number * 40 + i,
            "n": rng.randrange(number * 5, number * 5 + 8),
            "f": number_or_nan,
            "d": float("inf") if rng.random() < 0.03 else number_or_nan,
            "amount": Decimal(rng.randrange(number * 100, number * 100 + 500)).scaleb(-2),
            "at": moment.replace(tzinfo=UTC),
            "local": moment,
            "on": moment.date(),
            "name": rng.choice(WORDS) + (str(number) if number % 2 else ""),
            "flag": number % 3 == 0 or rng.random() < 0.5,
            "raw": bytes([number, rng.randrange(256)]),
            "place": {"city": rng.choice(WORDS), "code": number},
            "tags": [number, i],
            "day": day,
            "region": REGIONS[number % 3],
            "added": rng.choice(WORDS),
        }
        kept = ("id", "day", "region")
        nulled = {k: v if k in kept or rng.random() > 0.1 else None for k, v in row.items()}
        rows.append({name: nulled[name] for name in names})
    return rows


VALUES: dict[tuple[str, ...], Callable[[random.Random], Any]] = {
    ("id",): lambda r: r.randrange(-5, 500),
    ("n",): lambda r: r.randrange(-2, 70),
    ("f",): lambda r: r.choice([0.25, 50.5, 20.0, 119.75]),
    ("d",): lambda r: r.choice([0.0, 33.25, 75.5, 110.0, 1e300]),
    ("amount",): lambda r: Decimal(r.randrange(0, 1700)).scaleb(-2),
    ("at",): lambda r: dt.datetime(2024, 1, r.randrange(1, 14), r.randrange(24), tzinfo=UTC),
    ("local",): lambda r: dt.datetime(2024, 1, r.randrange(1, 14), r.randrange(24)),
    ("on",): lambda r: dt.date(2024, 1, r.randrange(1, 14)),
    ("name",): lambda r: r.choice([*WORDS, "ada7", "b"]),
    ("raw",): lambda r: bytes([r.randrange(12), r.randrange(256)]),
    ("place", "city"): lambda r: r.choice(WORDS),
    ("place", "code"): lambda r: r.randrange(-1, 13),
    ("day",): lambda r: dt.date(2024, 1, r.randrange(1, 6)),
    ("region",): lambda r: r.choice(["north", "o'hara ü%", "south"]),
    ("added",): lambda r: r.choice(WORDS),
}


def conditions(count: int, seed: int = 58) -> list[Predicate]:
    """Conditions of every kind, combined; the same ones each time."""
    rng = random.Random(seed)
    return [_condition(rng, depth=rng.randrange(4)) for _ in range(count)]


def _condition(rng: random.Random, depth: int) -> Predicate:
    if depth == 0:
        return _leaf(rng)
    match rng.randrange(5):
        case 0:
            return Not(_condition(rng, depth - 1))
        case 1 | 2:
            return And((_condition(rng, depth - 1), _condition(rng, depth - 1)))
        case _:
            return Or((_condition(rng, depth - 1), _condition(rng, depth - 1)))


def _leaf(rng: random.Random) -> Predicate:
    path = rng.choice(list(VALUES))
    ref, value = Ref(path), VALUES[path]
    match rng.randrange(12):
        case 0:
            return IsNull(ref)
        case 1:
            return Not(IsNull(ref))
        case 2:
            return IsIn(ref, tuple(Literal(value(rng)) for _ in range(rng.randrange(1, 5))))
        case 3:
            return StartsWith(Ref(("name",)), rng.choice(["ad", "ada l", "zo", "x"]))
        case 4:
            return BoolRef(Ref(("flag",)))
        case 5:
            # isnan(NULL) is FALSE for some engines and NULL for others
            return And((Not(IsNull(Ref(("d",)))), IsNan(Ref(("d",)))))
        case _:
            op = rng.choice(["=", "<>", "<", "<=", ">", ">="])
            return Compare(op, ref, Literal(value(rng)))


def to_sql(p: Predicate, dialect: str) -> str:
    """The condition in the SQL of DuckDB or DataFusion."""
    match p:
        case And(children):
            return "(" + " AND ".join(to_sql(c, dialect) for c in children) + ")"
        case Or(children):
            return "(" + " OR ".join(to_sql(c, dialect) for c in children) + ")"
        case Not(child):
            return f"(NOT {to_sql(child, dialect)})"
        case Compare(op, left, right):
            return f"({_sql_name(left, dialect)} {op} {_sql_value(right.value, dialect)})"
        case IsIn(ref, values):
            return f"({_sql_name(ref, dialect)} IN ({', '.join(_sql_value(v.value, dialect) for v in values)}))"
        case IsNull(ref):
            return f"({_sql_name(ref, dialect)} IS NULL)"
        case IsNan(ref):
            return f"isnan({_sql_name(ref, dialect)})"
        case BoolRef(ref):
            return _sql_name(ref, dialect)
        case StartsWith(ref, prefix):
            return f"({_sql_name(ref, dialect)} LIKE '{prefix}%')"
    raise AssertionError(p)


def _sql_name(ref: Ref, dialect: str) -> str:
    name, *rest = ref.path
    return f'"{name}"' + "".join(
        f'."{part}"' if dialect == "duckdb" else f"['{part}']" for part in rest
    )


def _sql_value(value: Any, dialect: str) -> str:
    match value:
        case bool() | int():
            return str(value)
        case float():
            return f"CAST({value!r} AS DOUBLE)"
        case Decimal():
            return f"CAST('{value}' AS DECIMAL(12,3))"
        case bytes():
            return (
                "'" + "".join(f"\\x{b:02x}" for b in value) + "'::BLOB"
                if dialect == "duckdb"
                else f"X'{value.hex()}'"
            )
        case dt.datetime(tzinfo=None):
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.datetime():
            text = value.isoformat()
            zoned = f"""arrow_cast('{text}', 'Timestamp(Microsecond, Some("UTC"))')"""
            return f"TIMESTAMPTZ '{text}'" if dialect == "duckdb" else zoned
        case dt.date():
            return f"DATE '{value}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
    raise AssertionError(value)


def to_polars(p: Predicate) -> Any:
    """The condition as a Polars expression."""
    import polars as pl

    match p:
        case And(children):
            return (
                pl.all_horizontal([to_polars(c) for c in children])
                if len(children) > 2
                else to_polars(children[0]) & to_polars(children[1])
            )
        case Or(children):
            return to_polars(children[0]) | to_polars(children[1])
        case Not(child):
            return ~to_polars(child)
        case Compare(op, left, right):
            column, value = _polars_name(left), right.value
            return {
                "=": column == value,
                "<>": column != value,
                "<": column < value,
                "<=": column <= value,
                ">": column > value,
                ">=": column >= value,
            }[op]
        case IsIn(ref, values):
            return _polars_name(ref).is_in([v.value for v in values])
        case IsNull(ref):
            return _polars_name(ref).is_null()
        case IsNan(ref):
            return _polars_name(ref).is_nan()
        case BoolRef(ref):
            return _polars_name(ref)
        case StartsWith(ref, prefix):
            return _polars_name(ref).str.starts_with(prefix)
    raise AssertionError(p)


def _polars_name(ref: Ref) -> Any:
    import polars as pl

    column = pl.col(ref.path[0])
    for part in ref.path[1:]:
        column = column.struct.field(part)
    return column


def to_pyarrow(p: Predicate, schema: pa.Schema) -> Any:
    """The condition as a PyArrow expression."""
    import pyarrow.compute as pc

    match p:
        case And(children):
            return to_pyarrow(children[0], schema) & to_pyarrow(children[1], schema)
        case Or(children):
            return to_pyarrow(children[0], schema) | to_pyarrow(children[1], schema)
        case Not(child):
            return ~to_pyarrow(child, schema)
        case Compare(op, left, right):
            column, value = pc.field(*left.path), pc.scalar(_scalar(left, right.value, schema))
            return {
                "=": column == value,
                "<>": column != value,
                "<": column < value,
                "<=": column <= value,
                ">": column > value,
                ">=": column >= value,
            }[op]
        case IsIn(ref, values):
            column = pc.field(*ref.path)
            listed = pa.array([v.value for v in values], _type(ref, schema))
            # SQL's IN is NULL for NULL
            return pc.if_else(column.is_valid(), column.isin(listed), pa.scalar(None, pa.bool_()))
        case IsNull(ref):
            return pc.field(*ref.path).is_null()
        case IsNan(ref):
            return pc.is_nan(pc.field(*ref.path))
        case BoolRef(ref):
            return pc.field(*ref.path)
        case StartsWith(ref, prefix):
            return pc.starts_with(pc.field(*ref.path), prefix)
    raise AssertionError(p)


def _type(ref: Ref, schema: pa.Schema) -> pa.DataType:
    kind = schema.field(ref.path[0]).type
    return kind if len(ref.path) == 1 else kind.field(ref.path[1]).type


def _scalar(ref: Ref, value: Any, schema: pa.Schema) -> pa.Scalar:
    return pa.scalar(value, _type(ref, schema))


Query = Callable[[Predicate], pa.Table]


@dataclass(frozen=True)
class Engine:
    """A way for users to query a table, by its own idiom: whole rows, as an Arrow table."""

    name: str
    open: Callable[..., Query]
    """Of a path, and of `read_optimized=` where it is wanted."""
    asked: int = 200
    """How many of the conditions it is asked: all, unless it is the second road of an engine."""
    keeps: frozenset[str] = frozenset()
    """Conditions it does not hand over, so that no file can be skipped by them."""


def _dataset(path: str, **options: Any) -> Query:
    dataset = it.Table(path).to_dataset(**options)
    return lambda p: dataset.to_table(filter=to_pyarrow(p, dataset.schema))


def _datafusion(path: str, **options: Any) -> Query:
    import datafusion

    context = datafusion.SessionContext()
    context.register_dataset("t", it.Table(path).to_dataset(**options))
    return lambda p: context.sql(f"SELECT * FROM t WHERE {to_sql(p, 'datafusion')}").to_arrow_table()


def _polars(path: str, **options: Any) -> Query:
    frame = it.scan_polars(path, **options)
    return lambda p: frame.filter(to_polars(p)).collect().to_arrow()


def _polars_source(path: str, **options: Any) -> Query:
    from indextables.engines.polars.frames import planning_source
    from indextables.plan.planner import Planner

    frame = planning_source(Planner.open(path, **options))
    return lambda p: frame.filter(to_polars(p)).collect().to_arrow()


def _duckdb() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/Lima'; SET threads = 2")
    return connection


def _duckdb_register(path: str, **options: Any) -> Query:
    connection = _duckdb()
    it.duckdb.register(connection, "t", path, **options)
    return lambda p: connection.sql(f"SELECT * FROM t WHERE {to_sql(p, 'duckdb')}").to_arrow_table()


def _duckdb_sql(path: str, **options: Any) -> Query:
    connection = _duckdb()
    it.duckdb.register(connection, "t", path, **options)
    return lambda p: it.duckdb.sql(
        connection, f"SELECT * FROM t WHERE {to_sql(p, 'duckdb')}"
    ).to_arrow_table()


def _duckdb_dataset(path: str, **options: Any) -> Query:
    connection = _duckdb()
    connection.register("t", it.Table(path).to_dataset(**options))
    return lambda p: connection.sql(f"SELECT * FROM t WHERE {to_sql(p, 'duckdb')}").to_arrow_table()


ENGINES = (
    Engine("arrow-dataset", _dataset),
    Engine("datafusion", _datafusion, keeps=frozenset({"a nested field"})),
    Engine("polars", _polars),
    Engine("polars-io-source", _polars_source, asked=40),
    Engine("duckdb-register", _duckdb_register),
    Engine("duckdb-sql", _duckdb_sql),
    Engine("duckdb-dataset", _duckdb_dataset, asked=40),
)


def plain_rows(rows: pa.Table) -> dict[int, dict[str, Any]]:
    """By id, whole rows in which equal values are equal: NaN too, decimals of any scale, instants of any zone."""
    found = {row["id"]: plain_row(row) for row in rows.to_pylist()}
    assert len(found) == rows.num_rows, "a row was given twice"
    return found


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """One of them."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case Decimal():
            return value.normalize()
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value
