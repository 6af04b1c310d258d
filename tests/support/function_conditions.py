"""Random conditions over functions, each as Spark's SQL and as DuckDB's, spelled so that both mean the same."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

FILES, ROWS = 24, 20
SCHEMA = pa.schema(
    [
        ("file", pa.int32()),
        ("row", pa.int32()),
        ("b", pa.int8()),
        ("h", pa.int16()),
        ("i", pa.int32()),
        ("j", pa.int32()),
        ("l", pa.int64()),
        ("big", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("wild", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("w", pa.decimal128(30, 5)),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("s", pa.string()),
        ("u", pa.string()),
        ("o", pa.bool_()),
        ("st", pa.struct([("x", pa.int32()), ("s", pa.string())])),
    ]
)
_BIG = (-(2**63), -(2**63) + 1, -(2**53) - 1, -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1)
_WILD = (float("nan"), float("inf"), -float("inf"), -0.0, 0.5, -2.5, 2.0**53, 1e300, 5e-324)
_TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "aB",
    "Apple",
    "apple",
    "bean",
    "BEAN",
    "cat ",
    " cat",
    "k",
    "zz",
    "0",
    "12",
)
_EDGE_TEXTS = ("é", "Éa", "a\u0301", "日本", "\U0001f600x", "a%b", "a_b", "a\\b", "'q'", "\uffff", "~")
_START = dt.datetime(2021, 12, 28, tzinfo=dt.UTC)


def world(seed: int = 7) -> pa.Table:
    """Returns files of rows, most columns clustered by file; some are NULL throughout, some hold edges."""
    rng = random.Random(seed)
    rows = []
    for file in range(FILES):
        for row in range(ROWS):
            number = file * 100 + rng.randrange(60)
            at = _START + dt.timedelta(
                days=31 * file,
                seconds=rng.randrange(20 * 86_400),
                microseconds=rng.choice((0, 1, 999_999)),
            )
            old = dt.datetime(1971, 1, 1) + dt.timedelta(days=700 * file, seconds=rng.randrange(86_400))
            word = chr(97 + file) + rng.choice(_TEXTS)
            rows.append(
                {
                    "file": file,
                    "row": row,
                    "b": rng.choice((-128, 127, None)) if file == 3 else file * 4 - 48 + rng.randrange(4),
                    "h": rng.choice((-(2**15), 2**15 - 1)) if file == 4 else number - 1000,
                    "i": rng.choice((-(2**31), 2**31 - 1)) if file == 5 else number,
                    "j": None if file % 5 == 0 or rng.random() < 0.1 else rng.randrange(-50, 50),
                    "l": number * 7 - 5000,
                    "big": rng.choice(_BIG) if file % 4 == 0 else number * 10**15,
                    "f": number / 8,
                    "d": None if file == 6 else number / 7 - 100,
                    "wild": rng.choice(_WILD) if file % 3 == 0 else number / 3,
                    "m": Decimal(number * 37 - 9000).scaleb(-2),
                    "w": Decimal(number * 10**9 - 10**11).scaleb(-5),
                    "day": dt.date(rng.choice((1, 1582, 1900, 9998)), 10, 14) if file == 7 else at.date(),
                    "ts": at,
                    "ntz": None if file == 8 else old,
                    "s": word,
                    "u": rng.choice(_EDGE_TEXTS + _TEXTS),
                    "o": rng.choice((True, False, None)) if file % 4 else file % 8 == 0,
                    "st": None if file == 9 else {"x": number, "s": word},
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA)


class Pair(NamedTuple):
    """A value or a condition, in both languages."""

    spark: str
    duckdb: str


_SQL = {
    "byte": ("TINYINT", "TINYINT"),
    "short": ("SMALLINT", "SMALLINT"),
    "int": ("INT", "INTEGER"),
    "long": ("BIGINT", "BIGINT"),
    "float": ("FLOAT", "FLOAT"),
    "double": ("DOUBLE", "DOUBLE"),
}
_COLUMNS = {
    "byte": ("b",),
    "short": ("h",),
    "int": ("i", "i", "j", "st.x"),
    "long": ("l", "l", "big"),
    "float": ("f",),
    "double": ("d", "d", "wild"),
    "dec": ("m", "m", "w"),
    "date": ("day",),
    "ts": ("ts",),
    "ntz": ("ntz",),
    "text": ("s", "s", "u", "st.s"),
    "bool": ("o",),
}
_INTEGERS = ("byte", "short", "int", "long")
_KINDS = (
    *_INTEGERS,
    "int",
    "long",
    "double",
    "double",
    "float",
    "dec",
    "date",
    "ts",
    "ntz",
    "text",
    "text",
)
_PARTS = ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "weekday")
_CLOCK = ("hour", "minute", "second")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


class Draw:
    """Draws conditions; `zoned` leaves out what the two do differently where clocks change."""

    def __init__(self, rng: random.Random, *, zoned: bool = False) -> None:
        self.rng, self.zoned = rng, zoned

    def condition(self, depth: int = 0) -> Pair:
        """Returns a condition, most of them of one to three parts."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.4:
            one, two = self.condition(depth + 1), self.condition(depth + 1)
            form = rng.choice(("({} AND {})", "({} OR {})", "(NOT {})", "({} AND {})", "({} IS TRUE)"))
            return _both(form, one, two)
        return self.leaf()

    def leaf(self) -> Pair:
        rng = self.rng
        kind = rng.choice(_KINDS)
        value, form = self.value(kind), rng.random()
        if form < 0.05:
            return _both(rng.choice(("({} IS NULL)", "({} IS NOT NULL)")), value)
        if form < 0.08:
            return Pair("o", "o") if rng.random() < 0.5 else self.boolean()
        if form < 0.11:
            return self.nan_test() if rng.random() < 0.5 else self.null_safe(kind, value)
        if form < 0.25:
            count = rng.choice((1, 2, 3, 5))
            items = [self.literal(kind) for _ in range(count)]
            if rng.random() < 0.1:
                items.append(Pair("NULL", "NULL"))
            op = rng.choice(("IN", "IN", "NOT IN"))
            return Pair(
                *(f"({value[k]} {op} ({', '.join(item[k] for item in items)}))" for k in (0, 1))
            )
        if form < 0.33:
            op = rng.choice(("BETWEEN", "BETWEEN", "NOT BETWEEN"))
            return _both(f"({{}} {op} {{}} AND {{}})", value, self.literal(kind), self.literal(kind))
        if kind == "text" and form < 0.7:
            return self.like(value)
        other = self.value(kind) if form > 0.88 else self.literal(kind)
        op = rng.choice(("=", "=", "<>", "<", "<=", ">", ">="))
        sides = (other, value) if rng.random() < 0.15 else (value, other)
        return _both(f"({{}} {op} {{}})", *sides)

    def boolean(self) -> Pair:
        one = self.leaf()
        return _both("coalesce({}, o)", one)

    def nan_test(self) -> Pair:
        one = self.value("double")
        return Pair(f"isnan({one[0]})", f"coalesce(isnan({one[1]}), FALSE)")

    def null_safe(self, kind: str, value: Pair) -> Pair:
        other = self.literal(kind)
        return Pair(f"({value[0]} <=> {other[0]})", f"({value[1]} IS NOT DISTINCT FROM {other[1]})")

    def like(self, value: Pair) -> Pair:
        rng = self.rng
        text = rng.choice(("a", "b", "ba", "c", "app", "k", "x", "AP", "d%a", "e_", "", "zz"))
        form = rng.random()
        if form < 0.5:
            pattern = rng.choice(("{}%", "{}%", "%{}", "%{}%", "{}", "{}_%")).format(text)
            op = rng.choice(("LIKE", "LIKE", "NOT LIKE", "ILIKE"))
            return _both(f"({{}} {op} '{pattern}')", value)
        bare = text.replace("%", "").replace("_", "") or "a"  # DuckDB takes '' for a prefix of NULL
        if form < 0.8:
            name = rng.choice(
                (("startswith", "starts_with"), ("endswith", "ends_with"), ("contains", "contains"))
            )
            return Pair(*(f"{name[k]}({value[k]}, '{bare}')" for k in (0, 1)))
        pattern = rng.choice(("^{}", "^{}.*", "{}$", "{}[a-k]", "^{}(a|b)")).format(bare)
        return Pair(
            f"({value[0]} RLIKE '{pattern}')",
            f"regexp_matches({value[1]}, '{pattern}', 's')"
            if "." not in pattern
            else f"regexp_matches({value[1]}, '{pattern}')",
        )

    # Values

    def value(self, kind: str, depth: int = 0) -> Pair:
        """Returns a value of a kind: a column, or a function."""
        if depth >= 3 or self.rng.random() < 0.3 + 0.2 * depth:
            return self.column(kind)
        deeper = lambda other: self.value(other, depth + 1)  # noqa: E731
        if self.rng.random() < 0.2:
            return self.choice(kind, deeper)
        match kind:
            case "byte" | "short" | "int" | "long":
                return self.integer(kind, deeper)
            case "float" | "double":
                return self.real(kind, deeper)
            case "dec":
                return self.money(deeper)
            case "date":
                return self.date(deeper)
            case "ts" | "ntz":
                return self.time(kind, deeper)
            case _:
                return self.text(deeper)

    def column(self, kind: str) -> Pair:
        name = self.rng.choice(_COLUMNS[kind])
        return Pair(name, name)

    def literal(self, kind: str) -> Pair:
        rng = self.rng
        match kind:
            case "byte":
                return _number(rng.choice((-128, -20, -1, 0, 1, 7, 30, 127)), kind)
            case "short":
                return _number(rng.choice((-(2**15), -700, -1, 0, 5, 300, 2**15 - 1)), kind)
            case "int":
                return _number(
                    rng.choice((-(2**31), -50, -1, 0, 1, 5, 12, 40, 730, 2022, 2023, 2**31 - 1)), kind
                )
            case "long":
                return _number(rng.choice((*_BIG, -3000, 5, 31, 700, 9000, 700 * 10**15)), kind)
            case "float":
                return _number(rng.choice((-1.5, 0.0, 0.1, 12.5, 200.25)), kind)
            case "double":
                return _number(
                    rng.choice(
                        (
                            -100.5,
                            -1.0,
                            -0.0,
                            0.1,
                            0.5,
                            3.0,
                            57.0,
                            230.25,
                            2.0**53,
                            float("inf"),
                            float("nan"),
                        )
                    ),
                    kind,
                )
            case "dec":
                text = rng.choice(("-90.00", "-1.5", "0.00", "0.01", "7.5", "123.45", "900.0"))
                whole, _, after = text.lstrip("-").partition(".")
                size = f"DECIMAL({len(whole) + len(after)},{len(after)})"
                return Pair(f"CAST('{text}' AS {size})", f"CAST('{text}' AS {size})")
            case "date":
                day = dt.date(2022, 1, 1) + dt.timedelta(days=rng.randrange(760))
                day = rng.choice(
                    (day, day, day, dt.date(day.year, day.month, 1), dt.date(1582, 10, 14))
                )
                return _both(f"DATE '{day.isoformat()}'")
            case "ts":
                at = f"2022-{rng.randrange(1, 13):02d}-{rng.choice((1, 15, 28)):02d} {rng.choice(('00:00:00', '07:30:00', '23:59:59.999999'))}"
                return Pair(f"TIMESTAMP '{at}'", f"TIMESTAMPTZ '{at}'")
            case "ntz":
                at = f"{rng.randrange(1971, 2016)}-{rng.randrange(1, 13):02d}-01 {rng.choice(('00:00:00', '12:00:00.5'))}"
                return Pair(f"TIMESTAMP_NTZ '{at}'", f"TIMESTAMP '{at}'")
            case _:
                return _both(
                    "'"
                    + rng.choice(
                        (
                            "",
                            "a",
                            "b",
                            "ba",
                            "bean",
                            "Bean",
                            "CAPPLE",
                            "capple",
                            "dcat",
                            "é",
                            "x",
                            "12",
                            "2022-03-01",
                            "zz",
                        )
                    )
                    + "'"
                )

    def small(self, *, positive: bool = False) -> int:
        return self.rng.choice((1, 2, 3, 7, 10, 100) if positive else (-7, -3, -1, 1, 2, 3, 7, 10))

    def choice(self, kind: str, deeper: Callable[[str], Pair]) -> Pair:
        rng, one = self.rng, deeper(kind)
        two = self.literal(kind) if rng.random() < 0.6 else self.column(kind)
        if kind == "dec":
            one, two = (
                Pair("m", "m"),
                Pair("CAST('7.50' AS DECIMAL(10,2))", "CAST('7.50' AS DECIMAL(10,2))"),
            )
        form = rng.random()
        if form < 0.3:
            return _both("coalesce({}, {})", one, two)
        if form < 0.45:
            return _both(rng.choice(("greatest({}, {})", "least({}, {})")), one, two)
        if form < 0.6:
            return _both("nullif({}, {})", one, two)
        test = self.leaf()
        if form < 0.75:
            return Pair(
                f"IF({test[0]}, {one[0]}, {two[0]})",
                f"CASE WHEN {test[1]} THEN {one[1]} ELSE {two[1]} END",
            )
        last = rng.choice(("", " ELSE {}"))
        return _both("CASE WHEN {} THEN {} WHEN o THEN {}" + last + " END", test, one, two, one)

    def integer(self, kind: str, deeper: Callable[[str], Pair]) -> Pair:
        rng, (spark, duckdb) = self.rng, _SQL[kind]
        form = rng.random()
        if form < 0.3:
            op, one = rng.choice("+-*"), deeper(kind)
            two = _number(self.small(), kind) if rng.random() < 0.75 else deeper(kind)
            tried = rng.random() < 0.25
            if tried:  # DuckDB's TRY is for errors of the arguments too
                one, two = self.column(kind), two if two[0][0].isdigit() else self.column(kind)
            one, two = (two, one) if rng.random() < 0.2 else (one, two)
            if tried:
                name = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[op]
                return Pair(f"{name}({one[0]}, {two[0]})", f"TRY({one[1]} {op} {two[1]})")
            return _both(f"({{}} {op} {{}})", one, two)
        if form < 0.4:
            return _both(rng.choice(("(-{})", "abs({})")), deeper(kind))
        if form < 0.5:
            k = _number(self.small(), kind)
            return _both("({} % {})", deeper(kind), k)
        if form < 0.6 and kind == "long":
            source = deeper(rng.choice(_INTEGERS))
            k = self.small()
            if rng.random() < 0.5:
                return Pair(
                    f"({source[0]} div {k})",
                    f"(CAST({source[1]} AS BIGINT) // {_number(k, 'long')[1]})",
                )
            up = rng.choice(("floor", "ceil"))
            number = deeper("double")
            return Pair(f"{up}({number[0]})", f"CAST({up}({number[1]}) AS BIGINT)")
        if form < 0.8:
            source = rng.choice(
                [other for other in ("byte", "short", "int", "long", "double", "dec") if other != kind]
            )
            one = deeper(source)
            way = rng.choice(("CAST", "CAST", "TRY_CAST"))
            inner = f"trunc({one[1]})" if source in {"double", "dec"} else one[1]
            if source == "double" and kind == "long":
                way = "CAST"  # 2**63 is the greatest bigint to Spark, and none to DuckDB, which then raises
            return Pair(f"{way}({one[0]} AS {spark})", f"{way}({inner} AS {duckdb})")
        if kind == "long" and not self.zoned and form < 0.9:
            one = deeper("ts")
            return Pair(f"unix_micros({one[0]})", f"epoch_us({one[1]})")
        if kind in {"int", "long"}:
            found = self.part(deeper)
            return found if kind == "int" else _both("CAST({} AS BIGINT)", found)
        k = self.small(positive=True) % 100 + 1
        one = deeper(kind)
        return Pair(
            f"CAST(pmod({one[0]}, {_number(k, kind)[0]}) AS {spark})",
            f"CAST(((CAST({one[1]} AS BIGINT) % {k}) + {k}) % {k} AS {duckdb})",
        )

    def part(self, deeper: Callable[[str], Pair]) -> Pair:
        """Returns an int that says something of a time or a text."""
        rng = self.rng
        form = rng.random()
        if form < 0.15:
            one = deeper("text")
            return Pair(f"length({one[0]})", f"CAST(length({one[1]}) AS INTEGER)")
        if form < 0.3:
            one, two = deeper("date"), self.literal("date") if rng.random() < 0.7 else deeper("date")
            return Pair(f"datediff({one[0]}, {two[0]})", f"CAST({one[1]} - {two[1]} AS INTEGER)")
        if form < 0.5:
            part, one = rng.choice(_CLOCK), deeper(rng.choice(("ts", "ntz")))
            return Pair(f"{part}({one[0]})", f"CAST({part}({one[1]}) AS INTEGER)")
        part, one = rng.choice(_PARTS), deeper(rng.choice(("date", "date", "ts", "ntz")))
        inner = {"dayofweek": "dayofweek({}) + 1", "weekday": "isodow({}) - 1"}.get(
            part, part + "({})"
        ).format(one[1])
        return Pair(f"{part}({one[0]})", f"CAST({inner} AS INTEGER)")

    def real(self, kind: str, deeper: Callable[[str], Pair]) -> Pair:
        rng, (spark, duckdb) = self.rng, _SQL[kind]
        form = rng.random()
        if form < 0.35:
            op, one = rng.choice("+-*"), deeper(kind)
            two = (
                _number(rng.choice((0.5, 1.5, -2.0, 3.0, 0.1)), kind)
                if rng.random() < 0.75
                else deeper(kind)
            )
            return _both(f"({{}} {op} {{}})", *((two, one) if rng.random() < 0.2 else (one, two)))
        if form < 0.5 and kind == "double":
            return _both(
                "({} / {})",
                deeper(rng.choice(("double", "double"))),
                _number(rng.choice((2.0, -3.0, 0.5, 7.0)), kind),
            )
        if form < 0.6:
            one = deeper(kind)
            # DuckDB 2.0 finds -1.0 >= NaN: it moves the sign to the constant and turns the comparison around
            minus = Pair(f"(-{one[0]})", f"({one[1]} * -1)")
            return minus if rng.random() < 0.5 else _both("abs({})", one)
        if form < 0.7 and kind == "double":
            return _both("round({})", deeper(kind))
        sources = ("byte", "short", "int", "long", "float" if kind == "double" else "int")
        source = rng.choice((*sources, "m") if kind == "double" else sources)
        one = Pair("m", "m") if source == "m" else deeper(source)
        return Pair(f"CAST({one[0]} AS {spark})", f"CAST({one[1]} AS {duckdb})")

    def money(self, deeper: Callable[[str], Pair]) -> Pair:
        rng = self.rng
        form = rng.random()
        if form < 0.4:
            two = rng.choice((Pair("m", "m"), self.literal("dec"), self.literal("dec")))
            return _both(f"({{}} {rng.choice('+-*')} {{}})", Pair("m", "m"), two)
        if form < 0.55:
            return _both(rng.choice(("(-{})", "abs({})", "floor({})", "ceil({})")), self.column("dec"))
        if form < 0.7:
            return _both(f"round(m, {rng.choice((0, 1, 2))})")
        size = rng.choice(("DECIMAL(20,2)", "DECIMAL(38,10)"))
        one = rng.choice((Pair("m", "m"), deeper(rng.choice(("byte", "short", "int")))))
        return _both(f"CAST({{}} AS {size})", one)

    def date(self, deeper: Callable[[str], Pair]) -> Pair:
        rng = self.rng
        form = rng.random()
        if form < 0.3:
            k, one = self.small() * rng.choice((1, 30)), deeper("date")
            return Pair(f"date_add({one[0]}, {k})", f"({one[1]} + {k}::INTEGER)")
        if form < 0.4:
            return _both("last_day({})", deeper("date"))
        if form < 0.55:
            k, one = self.small() * rng.choice((1, 12)), deeper("date")
            return Pair(f"add_months({one[0]}, {k})", f"CAST({one[1]} + INTERVAL ({k}) MONTH AS DATE)")
        if form < 0.75:
            unit, one = rng.choice(("YEAR", "QUARTER", "MM", "WEEK")), deeper("date")
            return Pair(
                f"trunc({one[0]}, '{unit}')",
                f"CAST(date_trunc('{'month' if unit == 'MM' else unit}', {one[1]}) AS DATE)",
            )
        return _both("CAST({} AS DATE)", deeper(rng.choice(("ts", "ts", "ntz"))))

    def time(self, kind: str, deeper: Callable[[str], Pair]) -> Pair:
        rng = self.rng
        form = rng.random()
        if self.zoned:
            return self.column(kind)
        if form < 0.4:
            k, unit = self.small(), rng.choice(("DAY", "HOUR", "MINUTE", "SECOND"))
            one = deeper(kind)
            sign = "-" if k < 0 else "+"
            return Pair(
                f"({one[0]} {sign} INTERVAL {abs(k)} {unit})",
                f"({one[1]} {sign} INTERVAL ({abs(k)}) {unit})",
            )
        if kind == "ts" and form < 0.75:
            return _both(f"date_trunc('{rng.choice(_UNITS)}', {{}})", deeper("ts"))
        name = {"ts": ("TIMESTAMP", "TIMESTAMPTZ"), "ntz": ("TIMESTAMP_NTZ", "TIMESTAMP")}[kind]
        one = deeper(rng.choice(("date", "ntz" if kind == "ts" else "ts")))
        return Pair(f"CAST({one[0]} AS {name[0]})", f"CAST({one[1]} AS {name[1]})")

    def text(self, deeper: Callable[[str], Pair]) -> Pair:
        rng = self.rng
        form = rng.random()
        if form < 0.3:
            return _both(
                rng.choice(("lower({})", "upper({})")),
                Pair(*("s",) * 2) if rng.random() < 0.8 else Pair("st.s", "st.s"),
            )
        if form < 0.5:
            k, at = rng.choice((1, 2, 3)), rng.choice((1, 1, 1, 2))
            return _both(
                rng.choice((f"substring({{}}, {at}, {k})", f"left({{}}, {k})")), deeper("text")
            )
        if form < 0.65:
            return _both(
                rng.choice(("concat('x', {})", "concat({}, 'z')"))
                .replace("concat(", "(")
                .replace(", ", " || "),
                deeper("text"),
            )
        if form < 0.8:
            return _both(rng.choice(("trim({})", "ltrim({})", "rtrim({})")), deeper("text"))
        source = deeper(rng.choice(("int", "long", "date")))
        return Pair(f"CAST({source[0]} AS STRING)", f"CAST({source[1]} AS VARCHAR)")


def _both(form: str, *parts: Pair) -> Pair:
    count = form.count("{}")
    return Pair(*(form.format(*(part[k] for part in parts[:count])) for k in (0, 1)))


def _number(value: float, kind: str) -> Pair:
    spark, duckdb = _SQL[kind]
    if kind == "float":
        return Pair(f"CAST({value!r}D AS FLOAT)", f"CAST('{value!r}' AS FLOAT)")
    if kind == "double":
        return Pair(f"CAST('{value!r}' AS {spark})", f"CAST('{value!r}' AS {duckdb})")
    if kind == "int":
        return Pair(f"{value}", f"CAST('{value}' AS INTEGER)")
    return Pair(
        f"{value}L" if kind == "long" else f"CAST({value} AS {spark})", f"CAST('{value}' AS {duckdb})"
    )
