"""One side of a comparison: a column, a constant, or something only an engine can compute."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indextables.core.predicate.nodes import Literal, Operand, Ref
from indextables.sql.conditions.constants import (
    Interval,
    Unreadable,
    calculate,
    cast,
    interval,
    number,
    typed_literal,
)
from indextables.sql.conditions.lexer import Token

_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_CAST_FUNCTIONS: Final = {
    **{
        name: name
        for name in (*_TIMES[:2], "DOUBLE", "FLOAT", "STRING", "INT", "BIGINT", "SMALLINT", "TINYINT")
    },
    "TO_DATE": "DATE",
    "TO_TIMESTAMP": "TIMESTAMP",
}
_CONSTANTS: Final = {"NULL": None, "TRUE": True, "FALSE": False}
_LONGEST: Final = 60
"""Tokens of a constant expression; a longer one is left to the engine."""


def read_operand(tokens: Sequence[Token], zone: dt.tzinfo) -> Operand | None:
    """The column or constant these tokens spell, None for anything else."""
    try:
        plain = _plain_literal(tokens, zone) if 0 < len(tokens) < 3 else None
        if plain is not None:
            return plain
        tokens = _without_parentheses(tokens)
        ref = _read_ref(tokens)
        if ref is not None or not 0 < len(tokens) <= _LONGEST:
            return ref
        reader = _Reader(tokens, zone)
        value = reader.sum()
    except (Unreadable, ValueError, ArithmeticError):
        # Python has no value for 1e3L, for 1e999999999BD, or for an integer of five thousand digits
        return None
    return value if reader.at == len(tokens) and isinstance(value, Literal) else None


def _plain_literal(tokens: Sequence[Token], zone: dt.tzinfo) -> Literal | None:
    """What long lists are made of, without the reader's way through all precedences."""
    first, last = tokens[0], tokens[-1]
    if len(tokens) == 1:
        if first.kind == "text":
            return Literal(first.value)
        return number(first.value) if first.kind == "number" else None
    if last.kind == "number" and first.is_symbol("-", "+"):
        return number(last.value, -1 if first.value == "-" else 1)
    if last.kind == "text" and first.keyword in _TIMES:
        return typed_literal(first.keyword, last.value, zone)
    return None


def _without_parentheses(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens inside the outermost parentheses that enclose everything."""
    if not tokens or not tokens[0].is_symbol("("):
        return tokens
    depth, lowest = 0, len(tokens)
    for token in tokens[:-1]:
        depth += token.is_symbol("(") - token.is_symbol(")")
        lowest = min(lowest, depth)
    leading = next((i for i, token in enumerate(tokens) if not token.is_symbol("(")), 0)
    peel = min(lowest, leading) if len(tokens) > 1 else 0
    return tokens[peel : len(tokens) - peel]


def _read_ref(tokens: Sequence[Token]) -> Ref | None:
    names, dots = tokens[::2], tokens[1::2]
    if not len(tokens) % 2 or not all(token.kind in {"name", "word"} for token in names):
        return None
    if not all(dot.is_symbol(".") for dot in dots):
        return None
    if len(names) == 1 and names[0].keyword in _CONSTANTS:
        return None
    return Ref(tuple(token.value for token in names))


@dataclass(slots=True)
class _Reader:
    """Reads constants by precedence; raises Unreadable at the first thing that is none."""

    tokens: Sequence[Token]
    zone: dt.tzinfo
    at: int = 0

    def peek(self, *symbols: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].is_symbol(*symbols)

    def take(self) -> Token:
        if self.at >= len(self.tokens):
            raise Unreadable
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, symbol: str) -> None:
        if not self.take().is_symbol(symbol):
            raise Unreadable

    def sum(self) -> Literal | Interval:
        value = self.product()
        while self.peek("+", "-"):
            value = calculate(self.take().value, value, self.product(), self.zone)
        return value

    def product(self) -> Literal | Interval:
        value = self.signed()
        while self.peek("*", "/"):
            value = calculate(self.take().value, value, self.signed(), self.zone)
        return value

    def signed(self) -> Literal | Interval:
        if not self.peek("-", "+"):
            return self.casts()
        sign = -1 if self.take().value == "-" else 1
        if self.at < len(self.tokens) and self.tokens[self.at].kind == "number":
            return number(self.take().value, sign)
        value = self.signed()
        if sign < 0:
            return calculate("-", Literal(0), value, self.zone)
        return value

    def casts(self) -> Literal | Interval:
        value = self.primary()
        while self.peek("::"):
            self.take()
            if isinstance(value, Interval):
                raise Unreadable
            value = cast(value, self.take().keyword, self.zone)
        return value

    def primary(self) -> Literal | Interval:
        token = self.take()
        match token.kind:
            case "number":
                return number(token.value)
            case "text":
                return Literal(token.value + self.more_text())
            case "symbol" if token.value == "(":
                value = self.sum()
                self.expect(")")
                return value
            case "word":
                return self.word(token.keyword)
            case _:
                raise Unreadable

    def more_text(self) -> str:
        """Texts side by side are one text."""
        parts = []
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "text":
            parts.append(self.take().value)
        return "".join(parts)

    def word(self, keyword: str) -> Literal | Interval:
        if keyword in _CONSTANTS:
            return Literal(_CONSTANTS[keyword])
        if keyword == "INTERVAL":
            return self.interval()
        following = self.take()
        if following.kind == "text" and keyword in _TIMES:
            return typed_literal(keyword, following.value, self.zone)
        if following.kind == "text" and keyword == "X":
            return _hex(following.value)
        if not following.is_symbol("(") or keyword not in {*_CAST_FUNCTIONS, "CAST"}:
            raise Unreadable
        value = self.sum()
        to = _CAST_FUNCTIONS.get(keyword, "")
        if keyword == "CAST":
            if not self.take().is_word("AS"):
                raise Unreadable
            to = self.take().keyword
        self.expect(")")
        if isinstance(value, Interval) or (
            keyword.startswith("TO_") and not isinstance(value.value, str)
        ):
            raise Unreadable
        return cast(value, to, self.zone)

    def interval(self) -> Interval:
        """`1 DAY 2 HOURS`, `'1' DAY` and `'1 day 2 hours'`."""
        amounts: list[tuple[str, str]] = []
        first = self.tokens[self.at] if self.at < len(self.tokens) else None
        if first is not None and first.kind == "text" and len(first.value.split()) > 1:
            words = self.take().value.upper().split()
            return interval(
                list(zip(words[::2], words[1::2], strict=False)) if len(words) % 2 == 0 else []
            )
        while self.at + 1 < len(self.tokens):
            sign = "-" if self.peek("-") and self.tokens[self.at + 1].kind in {"number", "text"} else ""
            amount = self.tokens[self.at + len(sign)]
            unit = self.tokens[min(self.at + len(sign) + 1, len(self.tokens) - 1)]
            if amount.kind not in {"number", "text"} or unit.kind != "word" or unit.keyword == "TO":
                break
            amounts.append((sign + amount.value, unit.keyword))
            self.at += len(sign) + 2
        return interval(amounts)


def _hex(text: str) -> Literal:
    try:
        return Literal(bytes.fromhex("0" * (len(text) % 2) + text))
    except ValueError:
        raise Unreadable from None
