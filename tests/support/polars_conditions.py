"""Random conditions as Polars' expressions, over the columns of `support.edge_rows`."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import polars as pl

_COLUMNS = {
    pl.Int8: ("i8",),
    pl.Int16: ("i16",),
    pl.Int32: ("i32", "j32"),
    pl.Int64: ("i64", "j64"),
    pl.Float32: ("f32",),
    pl.Float64: ("f64", "g64"),
    pl.Date: ("day", "until"),
    pl.Datetime: ("local",),
    pl.String: ("name", "word"),
}
_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
_FLOATS = (pl.Float32, pl.Float64)
_KINDS = (*_COLUMNS, pl.Int32, pl.Int64, pl.Float64, pl.String, pl.String)
_WORDS = ("a", "ab", "B", "bean", "k", "K", "é", "x%y", "x_y", "ca", "")
_EVERY = ("1y", "1q", "1mo", "1w", "1d", "1h", "1m", "1s", "2d", "15m")
_TOPS = {pl.Int8: 7, pl.Int16: 15, pl.Int32: 31, pl.Int64: 63}


class Draw:
    """Draws conditions and values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def condition(self, depth: int = 0) -> pl.Expr:
        """Returns a condition, most of them of one to three parts."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.35:
            one, two = self.condition(depth + 1), self.condition(depth + 1)
            return rng.choice((one & two, one | two, ~one, one & two))
        kind, form = rng.choice(_KINDS), rng.random()
        value = self.value(kind)
        if form < 0.06:
            return rng.choice((value.is_null(), value.is_not_null()))
        if form < 0.1:
            return rng.choice((pl.col("flag"), ~pl.col("flag")))
        if form < 0.22:
            listed = [self.constant(kind) for _ in range(rng.choice((1, 2, 3, 9)))]
            listed += [None] if rng.random() < 0.1 else []
            return value.is_in(pl.Series(listed, dtype=kind).implode(), nulls_equal=rng.random() < 0.2)
        if form < 0.3:
            ends = (self.literal(kind), self.literal(kind))
            return value.is_between(*ends, closed=rng.choice(("both", "left", "right", "none")))
        if kind == pl.String and form < 0.7:
            return self.test(value)
        if kind in _FLOATS and form < 0.42:
            return getattr(value, rng.choice(("is_nan", "is_not_nan", "is_finite", "is_infinite")))()
        other = self.literal(kind) if rng.random() < 0.8 else self.value(kind)
        if kind in _INTEGERS and rng.random() < 0.2:
            other = pl.lit(rng.choice((1.5, -7.0, 200, 3_000_000_000, 9007199254740993, 2.0**63)))
        op = rng.choice(("eq", "eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"))
        return getattr(value, op)(other)

    def test(self, value: pl.Expr) -> pl.Expr:
        rng, text = self.rng, self.rng.choice(_WORDS)
        return rng.choice(
            (
                value.str.starts_with(text),
                value.str.ends_with(text),
                value.str.contains(text, literal=True),
                value.str.contains(f"^{text}[a-k]?" if text.isalpha() else "b+"),
            )
        )

    def constant(self, kind: Any) -> Any:
        rng = self.rng
        if kind in _TOPS:
            top = 2 ** _TOPS[kind]
            number = rng.choice((-top, -top + 1, top - 1, -7, -1, 0, 1, 2, 5, 12, 100, 1970, 2024))
            return max(min(number, top - 1), -top)
        if kind in _FLOATS:
            return rng.choice(
                (0.0, -0.0, 0.5, 1.5, -2.5, 100.25, float("nan"), float("inf"), 0.1, 12.0)
            )
        if kind == pl.String:
            return rng.choice(_WORDS)
        day = dt.date(rng.choice((1, 1582, 1900, 1969, 1970, 2020, 2024)), rng.choice((1, 2, 3, 11)), 3)
        if kind == pl.Date:
            return day
        return dt.datetime.combine(day, dt.time(rng.choice((0, 1, 23)), rng.choice((0, 30)), 5))

    def literal(self, kind: Any) -> pl.Expr:
        value = self.constant(kind)
        return pl.lit(value) if self.rng.random() < 0.5 else pl.lit(value, dtype=kind)

    def value(self, kind: Any, depth: int = 0) -> pl.Expr:
        """Returns a value of a type: a column, or a function."""
        rng = self.rng
        column = pl.col(rng.choice(_COLUMNS[kind]))
        if depth >= 3 or rng.random() < 0.3 + 0.2 * depth:
            if kind == pl.Int32 and rng.random() < 0.1:
                return pl.col("st").struct.field("x")
            return column
        deeper = lambda other: self.value(other, depth + 1)  # noqa: E731
        if rng.random() < 0.2:
            one, two = deeper(kind), rng.choice((self.literal(kind), column))
            return rng.choice(
                (
                    pl.coalesce(one, two),
                    one.fill_null(two),
                    pl.when(self.condition(2)).then(one).otherwise(two),
                    pl.max_horizontal(one, two),
                    pl.min_horizontal(one, two),
                )
            )
        if kind in _INTEGERS:
            return self.integer(kind, deeper)
        if kind in _FLOATS:
            return self.real(kind, deeper)
        return self.text(deeper) if kind == pl.String else self.time(kind, deeper)

    def integer(self, kind: Any, deeper: Any) -> pl.Expr:
        rng = self.rng
        form, small = rng.random(), pl.lit(rng.choice((-7, -3, -1, 1, 2, 3, 10, 100)), dtype=kind)
        one = deeper(kind)
        if form < 0.3:
            other = deeper(kind) if rng.random() < 0.2 else small
            return rng.choice((one + other, one - other, one * other, other - one))
        if form < 0.5:
            return rng.choice((one // small, one % small))
        if form < 0.6:
            return rng.choice((one.abs(), -one, one.floor(), one.round()))
        if form < 0.8:
            return deeper(rng.choice((*_INTEGERS, *_FLOATS))).cast(kind, strict=rng.random() < 0.3)
        part = rng.choice(("year", "month", "quarter", "day", "weekday", "ordinal_day", "week"))
        time = deeper(rng.choice((pl.Date, pl.Datetime)))
        found = rng.choice(
            (
                getattr(time.dt, part)(),
                getattr(pl.col("local").dt, rng.choice(("hour", "minute", "second")))(),
                pl.col("local").dt.epoch(rng.choice(("s", "ms", "us"))),
                deeper(pl.String).str.len_chars(),
            )
        )
        return found if rng.random() < 0.5 else found.cast(kind, strict=False)

    def real(self, kind: Any, deeper: Any) -> pl.Expr:
        rng, one = self.rng, deeper(kind)
        form, number = rng.random(), pl.lit(rng.choice((0.5, 1.5, -2.0, 3.0, 0.1, 7.0)), dtype=kind)
        if form < 0.35:
            other = deeper(kind) if rng.random() < 0.2 else number
            return rng.choice((one + other, one - other, one * other, other - one))
        if form < 0.55:
            return rng.choice((one / number, one // number, one % number))
        if form < 0.8:
            rounded = one.round(mode=rng.choice(("half_to_even", "half_away_from_zero")))
            return rng.choice((one.floor(), one.ceil(), rounded, one.sqrt(), one.abs(), -one))
        if kind == pl.Float64 and form < 0.9:
            return deeper(rng.choice(_INTEGERS)) / rng.choice((2, -3, 7, 10))
        return deeper(rng.choice((*_INTEGERS, *_FLOATS))).cast(kind)

    def time(self, kind: Any, deeper: Any) -> pl.Expr:
        rng, one = self.rng, deeper(kind)
        size = dt.timedelta(days=rng.choice((-400, -1, 1, 31)))
        if kind == pl.Datetime and rng.random() < 0.4:
            size += dt.timedelta(hours=rng.choice((0, 12, 36)), microseconds=rng.choice((0, 1)))
        found = [
            one + size,
            one - size,
            one.dt.truncate(rng.choice(_EVERY[: 5 if kind == pl.Date else 10])),
        ]
        if kind == pl.Date:
            found += [one.dt.month_end(), one.dt.month_start(), deeper(pl.Datetime).dt.date()]
        return rng.choice((*found, deeper(pl.Date).cast(kind)))

    def text(self, deeper: Any) -> pl.Expr:
        rng, one = self.rng, deeper(pl.String)
        other = pl.lit(rng.choice(_WORDS))
        return rng.choice(
            (
                one.str.to_lowercase(),
                one.str.to_uppercase(),
                one.str.strip_chars(" "),
                one.str.strip_chars(),
                one.str.head(rng.choice((0, 1, 2, -1))),
                one.str.slice(rng.choice((0, 1, -1)), rng.choice((1, 2))),
                one + other,
                other + one,
                pl.concat_str(one, other),
                deeper(rng.choice(_INTEGERS)).cast(pl.String),
            )
        )
