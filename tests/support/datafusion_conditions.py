"""Random conditions in DataFusion's SQL, over the columns of `support.edge_rows`."""

from __future__ import annotations

import random

_COLUMNS = {
    "TINYINT": ("i8",),
    "SMALLINT": ("i16",),
    "INT": ("i32", "j32"),
    "BIGINT": ("i64", "j64"),
    "FLOAT": ("f32",),
    "DOUBLE": ("f64", "g64"),
    "DATE": ("until", "day"),
    "TIMESTAMP": ("local",),
    "TIMESTAMPTZ": ("at",),
    "VARCHAR": ("name", "word", "st['s']"),
}
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_FLOATS = ("FLOAT", "DOUBLE")
_KINDS = (*_COLUMNS, "INT", "BIGINT", "DOUBLE", "VARCHAR", "VARCHAR")
_TEXTS = ("a", "ab", "B", "bean", "k", "K", "é", "x%y", "ca", "%", "")
_PARTS = ("year", "quarter", "month", "day", "doy", "dow", "week")
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


class Draw:
    """Draws conditions and values of DataFusion's types, as SQL."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def condition(self, depth: int = 0) -> str:
        """Returns a condition, most of them of one to three parts."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.35:
            one, two = self.condition(depth + 1), self.condition(depth + 1)
            return rng.choice(
                (
                    "({} AND {})",
                    "({} OR {})",
                    "(NOT {})",
                    "({} IS TRUE)",
                    "({} IS NOT FALSE)",
                    "({} = {})",
                )
            ).format(one, two)
        kind, form = rng.choice(_KINDS), rng.random()
        value = self.value(kind)
        if form < 0.06:
            return f"({value} IS {rng.choice(('', 'NOT '))}NULL)"
        if form < 0.1:
            return rng.choice(("flag", "(NOT flag)"))
        if form < 0.22:
            many = [self.literal(kind) for _ in range(rng.choice((1, 2, 5)))]
            return f"({value} {rng.choice(('IN', 'NOT IN'))} ({', '.join(many)}))"
        if form < 0.3:
            return f"({value} BETWEEN {self.literal(kind)} AND {self.literal(kind)})"
        if kind == "VARCHAR" and form < 0.75:
            text = rng.choice(_TEXTS)
            forms = ("LIKE '{}%'", "NOT LIKE '{}%'", "LIKE '%{}'", "LIKE '{}_{}'", "ILIKE '{}%'")
            if rng.random() < 0.2:
                return f"{rng.choice(('starts_with', 'ends_with', 'contains'))}({value}, '{text}')"
            return f"({value} {rng.choice(forms).format(text, text)})"
        if kind in _FLOATS and form < 0.36:
            return f"isnan({value})"
        other = self.literal(kind) if rng.random() < 0.8 else self.value(kind)
        if kind in _INTEGERS and rng.random() < 0.15:
            other = rng.choice(("1.5", "3000000000", "200"))
        op = rng.choice(("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"))
        return f"({value} {op} {other})"

    def literal(self, kind: str) -> str:
        rng = self.rng
        if kind in _BITS:
            top = 2 ** _BITS[kind]
            number = rng.choice((-top + 1, top - 1, -7, -1, 0, 1, 2, 5, 12, 100, 1970, 2024))
            return str(max(min(number, top - 1), -top + 1))
        if kind in _FLOATS:
            # the two zeros are different numbers to DataFusion, and equal to Arrow, whose filter may do its work
            return f"{rng.choice(('0.25', '0.5', '1.5', '-2.5', '100.25', '0.1', '12.0'))}::{kind}"
        if kind == "VARCHAR":
            return f"'{rng.choice(_TEXTS)}'"
        day = f"{rng.choice((1700, 1900, 1969, 1970, 2020, 2024))}-{rng.choice((1, 2, 3, 11)):02}-03"
        if kind == "DATE":
            return f"DATE '{day}'"
        return f"TIMESTAMP '{day} {rng.choice(('00:00:00', '01:30:00', '23:59:59'))}'"

    def value(self, kind: str, depth: int = 0) -> str:
        """Returns a value of a type: a column, or a function."""
        rng = self.rng
        if depth >= 3 or rng.random() < 0.35 + 0.2 * depth:
            return rng.choice(_COLUMNS[kind])
        deeper = lambda other: self.value(other, depth + 1)  # noqa: E731
        if rng.random() < 0.2:
            one, two = deeper(kind), rng.choice((self.literal(kind), rng.choice(_COLUMNS[kind])))
            forms = (
                "coalesce({}, {})",
                "greatest({}, {})",
                "least({}, {})",
                "nullif({}, {})",
                "CASE WHEN flag THEN {} ELSE {} END",
            )
            return rng.choice(forms).format(one, two)
        if kind in _INTEGERS:
            return self.integer(kind, deeper)
        if kind in _FLOATS:
            return self.real(kind, deeper)
        if kind == "VARCHAR":
            return self.text(deeper)
        if kind == "DATE":
            return f"CAST({deeper(rng.choice(('TIMESTAMP', 'TIMESTAMPTZ')))} AS DATE)"
        unit = rng.choice(("year", "quarter", "month", "week", "day", "hour", "minute"))
        return f"date_trunc('{unit}', {deeper(kind)})"

    def integer(self, kind: str, deeper: object) -> str:
        rng = self.rng
        form, small = rng.random(), rng.choice((-7, -3, 1, 2, 3, 10, 100))
        if form < 0.35:
            return f"({deeper(kind)} {rng.choice('+-*')} CAST({small} AS {kind}))"
        if form < 0.5:
            return f"({deeper(kind)} {rng.choice('/%')} CAST({small} AS {kind}))"
        if form < 0.55:
            return f"(-{deeper(kind)})"
        if form < 0.75:
            return f"TRY_CAST({deeper(rng.choice((*_INTEGERS, *_FLOATS)))} AS {kind})"
        time = deeper(rng.choice(("DATE", "TIMESTAMP", "TIMESTAMPTZ")))
        if rng.random() < 0.3:
            return f"CAST(date_part('{rng.choice(('hour', 'minute', 'second'))}', local) AS INT)"
        return f"CAST(date_part('{rng.choice(_PARTS)}', {time}) AS INT)"

    def real(self, kind: str, deeper: object) -> str:
        rng = self.rng
        form, number = (
            rng.random(),
            f"CAST({rng.choice(('0.5', '1.5', '-2.0', '3.0', '0.1'))} AS {kind})",
        )
        if form < 0.5:
            return f"({deeper(kind)} {rng.choice('+-*/')} {number})"
        if form < 0.75:
            return f"{rng.choice(('floor', 'ceil', 'round', 'abs', 'sqrt', '-'))}({deeper(kind)})"
        return f"CAST({deeper(rng.choice((*_INTEGERS, *_FLOATS)))} AS {kind})"

    def text(self, deeper: object) -> str:
        rng, inner = self.rng, deeper("VARCHAR")
        other = rng.choice(_TEXTS)
        forms = (
            f"lower({inner})",
            f"upper({inner})",
            f"trim({inner})",
            f"left({inner}, {rng.choice((0, 1, 2, -1))})",
            f"substr({inner}, {rng.choice((0, 1, 2))}, {rng.choice((1, 2))})",
            f"({inner} || '{other}')",
            f"concat('{other}', {inner})",
        )
        return rng.choice(forms)
