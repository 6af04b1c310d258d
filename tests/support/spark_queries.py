"""Generated SQL over one table of all types: conditions that mean something, and queries around them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa

ROWS = 400
KINDS = 24
"""Of queries."""
_NAN = float("nan")
_INF = float("inf")

# Values that make trouble: limits, signs of zero, NaN, neighbours, text around surrogates and prefixes.
POOLS = {
    "b": [True, False],
    "i8": [-128, -1, 0, 1, 5, 127],
    "i16": [-32768, -7, 0, 3, 300, 32767],
    "i32": [-(2**31), -10, 0, 1, 2, 3, 10, 2**31 - 1],
    "i64": [-(2**63), -1, 0, 7, 2**53, 2**53 + 1, 2**63 - 1],
    "f32": [-_INF, -1.5, -0.0, 0.0, 0.1, 1.5, 3.4e38, _INF, _NAN],
    "f64": [-_INF, -2.5, -0.0, 0.0, 0.1, 2.5, 1e300, _INF, _NAN],
    "dec": [Decimal(x) for x in ("-99999999.99", "-1.50", "0.00", "0.01", "1.00", "1.50", "99999999.99")],
    "wide": [Decimal(x) for x in ("-1234567890123456.7890", "0.0000", "0.0001", "12345.6789")],
    "s": ["", "a", "ab", "abc", "abd", "b", "B", "é", "\ud7ff", "\ue000", "\U0001f600", "a%", "a_b", "zz", "10"],
    "bin": [b"", b"\x00", b"\x01\xff", b"a", b"\xff"],
    "d": [dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(9999, 12, 31)],
    "ts": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
        dt.datetime(2024, 2, 29, 12, 0, 0, 0, dt.UTC),
        dt.datetime(2024, 10, 27, 0, 30, 0, 0, dt.UTC),
        dt.datetime(2024, 10, 27, 1, 30, 0, 1, dt.UTC),
    ],
    "ntz": [dt.datetime(1969, 12, 31, 23, 59), dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 31, 2, 30, 0, 1)],
}  # fmt: skip
TYPES = {
    "b": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "wide": pa.decimal128(20, 4),
    "s": pa.string(),
    "bin": pa.binary(),
    "d": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
}
PARTITIONS = ("p", "q")


def rows(seed: int) -> pa.Table:
    """Rows whose values stay together in runs, so that there is something to skip; NULL and NaN in all."""
    rng = random.Random(seed)
    columns: dict[str, pa.Array] = {"id": pa.array(range(ROWS), pa.int64())}
    for name, pool in POOLS.items():
        columns[name] = pa.array([v for _ in range(ROWS // 20) for v in _run(rng, pool)], TYPES[name])
    structs = [
        None
        if rng.random() < 0.05
        else {"a": columns["i32"][i].as_py(), "in": {"z": columns["s"][i].as_py()}}
        for i in range(ROWS)
    ]
    columns["st"] = pa.array(
        structs, pa.struct([("a", pa.int32()), ("in", pa.struct([("z", pa.string())]))])
    )
    columns["arr"] = pa.array(
        [None if i % 9 == 0 else [i % 3, i % 5] for i in range(ROWS)], pa.list_(pa.int64())
    )
    columns["m"] = pa.array([[("k", i % 4)] for i in range(ROWS)], pa.map_(pa.string(), pa.int64()))
    columns["p"] = pa.array([[None, "x", "y z", "é%="][i // 50 % 4] for i in range(ROWS)])
    columns["q"] = pa.array(
        [[None, dt.date(2024, 1, 1), dt.date(2024, 1, 2)][i // 20 % 3] for i in range(ROWS)]
    )
    return pa.table(columns)


def _run(rng: random.Random, pool: list[object]) -> list[object]:
    """Twenty values of a run: mostly from a narrow part of the pool, sometimes all NULL."""
    if rng.random() < 0.1:
        return [None] * 20
    start = rng.randrange(len(pool))
    near = [pool[(start + k) % len(pool)] for k in range(rng.choice([1, 2, 3]))]
    share = rng.choice([0.0, 0.0, 0.2])
    return [None if rng.random() < share else rng.choice(near) for _ in range(20)]


def literal(value: object, name: str) -> str:
    """A value as Spark SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() if value == -(2**63):
            return "(-9223372036854775807 - 1)"
        case float():
            cast = "FLOAT" if name == "f32" else "DOUBLE"
            return f"CAST('{value}' AS {cast})"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            kind = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
            zone = "+00:00" if value.tzinfo else ""
            return f"{kind}'{value.replace(tzinfo=None).isoformat(' ')}{zone}'"
        case dt.date():
            return f"DATE'{value}'"
        case _:
            return str(value)


class Generator:
    """An endless supply of conditions and queries, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def value(self, name: str) -> str:
        return literal(self._rng.choice([*POOLS[name], *POOLS[name], None]), name)

    def condition(self, depth: int = 0) -> str:
        """A leaf, or AND, OR and NOT over smaller ones."""
        choice = self._rng.random()
        if depth >= 3 or choice < 0.35:
            return self.leaf()
        if choice < 0.5:
            return f"NOT ({self.condition(depth + 1)})"
        joint = self._rng.choice([" AND ", " OR "])
        return (
            "("
            + joint.join(self.condition(depth + 1) for _ in range(self._rng.choice([2, 2, 3])))
            + ")"
        )

    def leaf(self) -> str:
        makers = (
            self.compare,
            self.compare,
            self.between,
            self.listed,
            self.null_test,
            self.pattern,
            self.special,
            self.two,
            self.partition,
        )
        return self._rng.choice(makers)()

    def column(self) -> str:
        return self._rng.choice(list(POOLS))

    def compare(self) -> str:
        name = self.column()
        op = self._rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        sides = [name, self.value(name)]
        if self._rng.random() < 0.1:
            sides.reverse()
        return f"{sides[0]} {op} {sides[1]}"

    def between(self) -> str:
        name = self.column()
        return (
            f"{name} {self._rng.choice(['', 'NOT '])}BETWEEN {self.value(name)} AND {self.value(name)}"
        )

    def listed(self) -> str:
        name = self.column()
        count = self._rng.choice([1, 2, 3, 12])
        values = ", ".join(self.value(name) for _ in range(count))
        return f"{name} {self._rng.choice(['', 'NOT '])}IN ({values})"

    def null_test(self) -> str:
        name = self._rng.choice([*POOLS, "st", "st.a", "st.in.z", "arr", "m"])
        return f"{name} IS {self._rng.choice(['', 'NOT '])}NULL"

    def pattern(self) -> str:
        pattern = self._rng.choice(
            [
                "a%",
                "ab%",
                "%",
                "_",
                "a_",
                "a%b",
                "%c",
                "abc",
                r"a\\%",
                r"a\\_%",
                "é%",
                "",
                "\U0001f600%",
            ]
        )
        column = self._rng.choice(["s", "s", "st.in.z", "p"])
        call = self._rng.choice(
            [
                f"{column} LIKE '{pattern}'",
                f"startswith({column}, 'a')",
                f"{column} ILIKE 'A%'",
                f"contains({column}, 'b')",
            ]
        )
        return call

    def special(self) -> str:
        return self._rng.choice(
            [
                "isnan(f64)",
                "NOT isnan(f32)",
                "b",
                "NOT b",
                "b IS TRUE",
                "b IS NOT FALSE",
                "coalesce(b, false)",
                "i32 + 1L > 3",
                "i32 % 2 = 0",
                "abs(f64) > 1",
                "CAST(i32 AS STRING) > '1'",
                "CAST(f64 AS FLOAT) = f32",
                "CAST(d AS TIMESTAMP) > ts",
                "CAST(ts AS DATE) = DATE'2024-10-27'",
                "CAST(i64 AS DOUBLE) = 9007199254740992.0D",
                "i64 > 1.5D",
                "i32 > 1.5",
                "i8 = 300",
                "f32 = 0.1",
                "f32 = 0.1f",
                "dec > 0.005",
                "year(d) = 2024",
                "date_trunc('MONTH', ts) = TIMESTAMP'2024-10-01'",
                "length(s) = 2",
                "upper(s) = 'AB'",
                "substr(s, 1, 1) = 'a'",
                "s || 'x' = 'ax'",
                "CASE WHEN i32 > 1 THEN b WHEN i32 < 0 THEN s = 'a' ELSE i64 > 0 END",
                "IF(b, i32 > 0, f64 < 1)",
                "(i32 > 1) <=> (i64 > 1)",
                "(i32 > 1) IS NOT TRUE",
                "st.a = 3",
                "st.a IN (1, 2)",
                "st.in.z >= 'ab'",
                "arr[0] = 1",
                "size(arr) = 2",
                "array_contains(arr, 2)",
                "m['k'] = 2",
                "greatest(i8, i16) > 5",
                "nvl(s, 'a') = 'a'",
                "hash(i32) % 2 = 0",
                "s RLIKE '^a'",
                "s = 'a' OR (i32 = 1 AND s IS NULL)",
            ]
        )

    def two(self) -> str:
        op = self._rng.choice(["=", "<", ">=", "<=>", "<>"])
        left, right = self._rng.choice(
            [("i8", "i32"), ("i32", "i64"), ("i64", "f64"), ("i32", "f64"), ("f32", "f64"), ("dec", "wide"), ("dec", "i32"), ("s", "st.in.z"), ("d", "ntz"), ("d", "ts"), ("i32", "st.a"), ("b", "b"), ("i16", "f32")]
        )  # fmt: skip
        return f"{left} {op} {right}"

    def partition(self) -> str:
        return self._rng.choice(
            [
                "p = 'x'",
                "p <> 'x'",
                "p IS NULL",
                "p IN ('y z', 'é%=', NULL)",
                "p NOT IN ('x')",
                "upper(p) = 'X'",
                "p LIKE 'y%'",
                "q = DATE'2024-01-01'",
                "q > DATE'2024-01-01' OR p = 'x'",
                "q IS NOT NULL",
                "dayofmonth(q) = 2",
                "coalesce(p, 'none') = 'none'",
                "p = 'x' OR i32 > 0",
                "p <=> NULL AND q <=> NULL",
            ]
        )

    def query(self, kind: int) -> str:
        """A query over `{t}`; its result is a handful of rows that depend on all rows it keeps."""
        where = self.condition()
        other = self.condition()
        group = self._rng.choice(["p", "i8", "b", "d", "CAST(i32 AS BIGINT) % 3"])
        kinds = [
            f"SELECT id FROM {{t}} WHERE {where}",
            f"SELECT count(*), sum(id), min(s), max(f64), count(ts) FROM {{t}} WHERE {where}",
            f"SELECT {group} g, count(*), sum(id) FROM {{t}} WHERE {where} GROUP BY {group}",
            f"SELECT {group} g, max(id) FROM {{t}} GROUP BY {group} HAVING max(id) > 200",
            f"SELECT a.id, b.id FROM {{t}} a JOIN {{t}} b ON a.i32 = b.i32 AND a.id < b.id AND b.id < 60 WHERE a.id < 40",
            f"SELECT a.id FROM {{t}} a LEFT JOIN (SELECT * FROM {{t}} WHERE {where}) b ON a.id = b.id WHERE b.id IS NULL",
            f"SELECT a.id FROM {{t}} a LEFT ANTI JOIN (SELECT id k FROM {{t}} WHERE {where}) b ON a.id = b.k",
            f"SELECT a.id FROM (SELECT * FROM {{t}} WHERE {where}) a JOIN (SELECT * FROM {{t}} WHERE {other}) b ON a.id = b.id",
            f"SELECT id FROM {{t}} WHERE id IN (SELECT id + 1 FROM {{t}} WHERE {where})",
            f"SELECT id FROM {{t}} WHERE i64 >= (SELECT min(i64) FROM {{t}} WHERE {where}) AND ({other})",
            f"SELECT id FROM {{t}} x WHERE EXISTS (SELECT 1 FROM {{t}} y WHERE y.i32 = x.i32 AND y.id <> x.id AND y.id < 50) AND ({where})",
            f"SELECT id, row_number() OVER (PARTITION BY p ORDER BY id) r FROM {{t}} WHERE {where}",
            f"SELECT id, sum(id) OVER (ORDER BY id ROWS 2 PRECEDING) r FROM {{t}} WHERE {where}",
            f"SELECT id FROM (SELECT *, rank() OVER (PARTITION BY b ORDER BY i32, id) k FROM {{t}}) WHERE k < 4 AND ({where})",
            f"SELECT id FROM {{t}} WHERE {where} UNION ALL SELECT -id FROM {{t}} WHERE {other}",
            f"SELECT id FROM {{t}} WHERE {where} INTERSECT SELECT id FROM {{t}} WHERE {other}",
            f"SELECT id FROM {{t}} WHERE {where} EXCEPT SELECT id FROM {{t}} WHERE {other}",
            f"WITH c AS (SELECT * FROM {{t}} WHERE {where}) SELECT count(*), max(id) FROM c WHERE {other}",
            f"SELECT DISTINCT i8, p FROM {{t}} WHERE {where}",
            f"SELECT id, x FROM {{t}} LATERAL VIEW explode(arr) e AS x WHERE {where} AND x > 0",
            f"SELECT id FROM {{t}} WHERE {where} ORDER BY id LIMIT 7",
            f"SELECT count(*) FILTER (WHERE {other}), sum(IF({other}, id, 0)) FROM {{t}} WHERE {where}",
            f"SELECT id FROM {{t}} WHERE ({where}) IS NULL",
            f"SELECT id FROM {{t}} WHERE ({where}) IS NOT TRUE",
        ]
        assert len(kinds) == KINDS
        return kinds[kind % KINDS]

    def queries(self, count: int) -> Iterator[str]:
        """The kinds take turns, so that a few queries are of many kinds."""
        return map(self.query, range(count))
