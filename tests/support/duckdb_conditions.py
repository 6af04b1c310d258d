"""Random conditions in DuckDB's own dialect, over the columns of `support.edge_rows`."""

from __future__ import annotations

import random

_COLUMNS = {
    "TINYINT": ("i8",),
    "SMALLINT": ("i16",),
    "INTEGER": ("i32", "j32", "st.x"),
    "BIGINT": ("i64", "j64"),
    "FLOAT": ("f32",),
    "DOUBLE": ("f64", "g64"),
    "DECIMAL(10,2)": ("money",),
    "DATE": ("day", "until"),
    "TIMESTAMP": ("local",),
    "TIMESTAMPTZ": ("at",),
    "VARCHAR": ("name", "word", "st.s"),
}
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_NUMBERS = (*_INTEGERS, "FLOAT", "DOUBLE", "DECIMAL(10,2)")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")
_KINDS = (*_COLUMNS, "INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "VARCHAR")
_PARTS = ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "isodow", "weekday", "week")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_TEXTS = ("a", "ab", "B", "bean", "Bean", "k", "K", "é", "x%y", "x_y", "z\\", "ca", "日", "%", "")
_OPS = ("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


class Draw:
    """Draws conditions and values of DuckDB's types, as SQL."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def condition(self, depth: int = 0) -> str:
        """Returns a condition, most of them of one to three parts."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.35:
            one, two = self.condition(depth + 1), self.condition(depth + 1)
            forms = (
                "({} AND {})",
                "({} OR {})",
                "(NOT {})",
                "({} IS TRUE)",
                "({} IS NOT TRUE)",
                "({} = {})",
            )
            return rng.choice(forms).format(one, two)
        kind, form = rng.choice(_KINDS), rng.random()
        value = self.value(kind)
        if form < 0.06:
            return f"({value} IS {rng.choice(('', 'NOT '))}NULL)"
        if form < 0.1:
            return rng.choice(("flag", "(NOT flag)", f"CASE WHEN {self.condition(2)} THEN flag END"))
        if form < 0.22:
            many = [self.literal(kind) for _ in range(rng.choice((1, 2, 3, 9)))]
            many += ["NULL"] if rng.random() < 0.1 else []
            return f"({value} {rng.choice(('IN', 'IN', 'NOT IN'))} ({', '.join(many)}))"
        if form < 0.3:
            ends = f"{self.literal(kind)} AND {self.literal(kind)}"
            return f"({value} {rng.choice(('BETWEEN', 'NOT BETWEEN'))} {ends})"
        if kind == "VARCHAR" and form < 0.75:
            return self.test(value)
        if kind in {"FLOAT", "DOUBLE"} and form < 0.4:
            return f"{rng.choice(('isnan', 'isinf', 'isfinite'))}({value})"
        other = self.literal(kind) if rng.random() < 0.8 else self.value(kind)
        if kind in _NUMBERS and rng.random() < 0.15:
            other = self.literal(rng.choice(_NUMBERS))
        return f"({value} {rng.choice(_OPS)} {other})"

    def test(self, value: str) -> str:
        rng, text = self.rng, self.quoted(self.rng.choice(_TEXTS))
        bare = text[1:-1]
        return rng.choice(
            (
                f"({value} LIKE '{bare}%')",
                f"({value} NOT LIKE '{bare}%')",
                f"({value} LIKE '%{bare}')",
                f"({value} LIKE '%{bare}%')",
                f"({value} LIKE '{bare}_%{bare}')",
                f"({value} ILIKE '{bare}%')",
                f"({value} NOT ILIKE '{bare}_')",
                f"({value} LIKE '{bare}$%%' ESCAPE '$')",
                f"starts_with({value}, {text})",
                f"ends_with({value}, {text})",
                f"contains({value}, {text})",
                f"({value} ^@ {text})",
                f"regexp_matches({value}, '^{bare}[a-k]?')"
                if bare.isalpha()
                else f"({value} = {text})",
                f"({value} SIMILAR TO '{bare}.*')" if bare.isalpha() else f"({value} < {text})",
            )
        )

    def literal(self, kind: str) -> str:
        rng = self.rng
        match kind:
            case "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT":
                top = 2 ** {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}[kind]
                number = rng.choice((-top, -top + 1, top - 1, -7, -1, 0, 1, 2, 5, 12, 100, 1970, 2024))
                number = max(min(number, top - 1), -top)
                return f"({number})::{kind}" if rng.random() < 0.5 else f"({number})"
            case "FLOAT" | "DOUBLE":
                return f"'{rng.choice(('0', '-0.0', '0.5', '1.5', '-2.5', '100.25', 'nan', 'inf', '-inf', '1e300' if kind == 'DOUBLE' else '1e30', '2147483647.5', '0.1', '12'))}'::{kind}"
            case "DECIMAL(10,2)":
                return rng.choice(
                    ("0.01", "-1.5", "123.45", "99999999.99", "(-99999999.99)", "0.005", "7")
                )
            case "DATE":
                return f"DATE '{self.day()}'"
            case "TIMESTAMP" | "TIMESTAMPTZ":
                clock = rng.choice(("00:00:00", "01:30:00", "12:00:00.5", "23:59:59.999999"))
                return f"{kind} '{self.day()} {clock}'"
            case _:
                return self.quoted(rng.choice(_TEXTS))

    def day(self) -> str:
        rng = self.rng
        year = rng.choice((1, 1582, 1900, 1969, 1970, 1986, 2020, 2024, 2024, 9998))
        return f"{year:04}-{rng.choice((1, 2, 3, 11, 12)):02}-{rng.choice((1, 3, 10, 15, 28)):02}"

    @staticmethod
    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def value(self, kind: str, depth: int = 0) -> str:
        """Returns a value of a type: a column, or a function."""
        rng = self.rng
        if depth >= 3 or rng.random() < 0.3 + 0.2 * depth:
            return rng.choice(_COLUMNS[kind])
        deeper = lambda other: self.value(other, depth + 1)  # noqa: E731
        if rng.random() < 0.2:
            return self.choice(kind, deeper(kind))
        if kind in _INTEGERS:
            return self.integer(kind, deeper)
        if kind in {"FLOAT", "DOUBLE", "DECIMAL(10,2)"}:
            return self.real(kind, deeper)
        return self.time(kind, deeper) if kind in _TIMES else self.text(deeper)

    def choice(self, kind: str, one: str) -> str:
        two = self.rng.choice((self.literal(kind), self.rng.choice(_COLUMNS[kind])))
        forms = (
            "coalesce({}, {})",
            "greatest({}, {})",
            "least({}, {})",
            "nullif({}, {})",
            "CASE WHEN " + self.condition(2) + " THEN {} ELSE {} END",
            "CASE WHEN flag THEN {} END",
        )
        return self.rng.choice(forms).format(one, two)

    def integer(self, kind: str, deeper: object) -> str:
        rng = self.rng
        form, small = rng.random(), rng.choice((-7, -3, -1, 1, 2, 3, 10, 100))
        if form < 0.3:
            other = deeper(kind) if rng.random() < 0.2 else f"({small})::{kind}"
            return f"({deeper(kind)} {rng.choice('+-*')} {other})"
        if form < 0.45:
            return f"({deeper(kind)} {rng.choice(('//', '%'))} ({small})::{kind})"
        if form < 0.55:
            return f"{rng.choice(('abs', '-'))}({deeper(kind)})"
        if form < 0.75 or kind != "BIGINT":
            source = rng.choice(_NUMBERS)
            return f"{rng.choice(('CAST', 'TRY_CAST', 'TRY_CAST'))}({deeper(source)} AS {kind})"
        if form < 0.9:
            time = deeper(rng.choice(_TIMES))
            part = rng.choice((*_PARTS, "hour", "minute", "second"))
            return rng.choice(
                (f"{part}({time})", f"epoch_ms({time}::TIMESTAMP)", f"(day - {self.literal('DATE')})")
            )
        if form < 0.95:
            return f"datediff('{rng.choice(_UNITS[:5])}', {self.literal('DATE')}, {deeper('DATE')})"
        return f"length({deeper('VARCHAR')})"

    def real(self, kind: str, deeper: object) -> str:
        rng = self.rng
        form, number = rng.random(), f"{rng.choice(('0.5', '1.5', '(-2.0)', '3', '0.1'))}::{kind}"
        if form < 0.35:
            return f"({deeper(kind)} {rng.choice('+-*')} {number})" + (
                f"::{kind}" if kind[1] == "E" else ""
            )
        if form < 0.5 and kind != "DECIMAL(10,2)":
            return f"({deeper(kind)} / {number})"
        if form < 0.75 and kind != "DECIMAL(10,2)":
            return (
                f"{rng.choice(('floor', 'ceil', 'round', 'trunc', 'abs', '-', 'sqrt'))}({deeper(kind)})"
            )
        if kind == "DECIMAL(10,2)":
            source = rng.choice(("TINYINT", "SMALLINT", "INTEGER", "DECIMAL(10,2)"))
            return rng.choice(
                (f"round(money, {rng.choice((0, 1, 2))})", f"TRY_CAST({deeper(source)} AS {kind})")
            )
        if kind == "DOUBLE" and form < 0.85:
            return f"epoch({deeper(rng.choice(('TIMESTAMP', 'TIMESTAMPTZ')))})"
        return f"{rng.choice(('CAST', 'TRY_CAST'))}({deeper(rng.choice(_NUMBERS))} AS {kind})"

    def time(self, kind: str, deeper: object) -> str:
        rng = self.rng
        form, count = rng.random(), rng.choice((-400, -40, -1, 1, 7, 31, 1000))
        if form < 0.25 and kind == "DATE":
            return rng.choice(
                (
                    f"({deeper(kind)} + {count})",
                    f"({deeper(kind)} - {count})",
                    f"last_day({deeper(kind)})",
                )
            )
        if form < 0.5:
            unit = rng.choice(("DAY", "DAY", "HOUR", "MONTH", "MINUTE"))
            moved = f"({deeper(kind)} {rng.choice('+-')} INTERVAL '{count} {unit}')"
            return f"CAST({moved} AS DATE)" if kind == "DATE" else moved
        if form < 0.75:
            return f"CAST(date_trunc('{rng.choice(_UNITS)}', {deeper(kind)}) AS {kind})"
        return f"CAST({deeper(rng.choice(_TIMES))} AS {kind})"

    def text(self, deeper: object) -> str:
        rng, inner = self.rng, deeper("VARCHAR")
        other = self.quoted(rng.choice(_TEXTS))
        forms = (
            f"lower({inner})",
            f"upper({inner})",
            f"trim({inner})",
            f"ltrim({inner})",
            f"left({inner}, {rng.choice((0, 1, 2, 3, -1))})",
            f"substring({inner}, {rng.choice((0, 1, 2))}, {rng.choice((1, 2))})",
            f"({inner} || {other})",
            f"({other} || {inner})",
            f"concat({other}, {inner})",
            f"CASE WHEN ({inner}, i32) IN (({other}, 5), ('bean', NULL)) THEN {inner} END",
            f"CAST({deeper(rng.choice(_INTEGERS))} AS VARCHAR)",
            f"strftime({rng.choice(('day', 'local'))}, '%Y-%m')",
        )
        return rng.choice(forms)
