"""Functions, arithmetic, CASE and CAST of columns, as Spark's grammar binds them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indextables.core.expr.functions import FUNCTIONS
from indextables.core.expr.nodes import DEEPEST, Call, Expression, Literal, Mode, Ref, Unknown, call
from indextables.core.predicate.nodes import Compare, IsNull, Not, Predicate, over
from indextables.core.types import DataType, DecimalType, PrimitiveType
from indextables.sql.conditions.constants import Interval, Unreadable
from indextables.sql.conditions.operands import Token, read_operand, read_part

Nested = Callable[[int, int], Predicate | None]
"""Reads the condition between two places of the leaf; None where there is none."""

_NO_CALLS: Final = frozenset({"cast", "div", "add_micros", "add_months_to_time"})
"""Entries of the function table that SQL has in another form."""
_SAME_NAMES: Final = (
    *(name for name, entry in FUNCTIONS.items() if entry.of_spark and name.isidentifier()),
    *("coalesce", "nullif", "greatest", "least"),
)
_NAMES: Final[Mapping[str, str]] = {
    **{name.upper(): name for name in _SAME_NAMES if name not in _NO_CALLS},
    "DAYOFMONTH": "day",
    "CEILING": "ceil",
    "MOD": "%",
    "LCASE": "lower",
    "UCASE": "upper",
    "CHAR_LENGTH": "length",
    "CHARACTER_LENGTH": "length",
    "LEN": "length",
    "SUBSTR": "substring",
    "NVL": "coalesce",
    "IFNULL": "coalesce",
    "DATE_DIFF": "datediff",
    "DATEADD": "date_add",
    "TO_UNIX_TIMESTAMP": "unix_timestamp",
}
_TRIES: Final[Mapping[str, str]] = {
    "TRY_ADD": "+",
    "TRY_SUBTRACT": "-",
    "TRY_MULTIPLY": "*",
    "TRY_DIVIDE": "/",
    "TRY_MOD": "%",
}
_TYPES: Final[Mapping[str, DataType]] = {
    **{name: PrimitiveType("byte") for name in ("TINYINT", "BYTE")},
    **{name: PrimitiveType("short") for name in ("SMALLINT", "SHORT")},
    **{name: PrimitiveType("integer") for name in ("INT", "INTEGER")},
    **{name: PrimitiveType("long") for name in ("BIGINT", "LONG")},
    **{name: PrimitiveType("float") for name in ("FLOAT", "REAL")},
    "DOUBLE": PrimitiveType("double"),
    "STRING": PrimitiveType("string"),
    "BOOLEAN": PrimitiveType("boolean"),
    "DATE": PrimitiveType("date"),
    "TIMESTAMP": PrimitiveType("timestamp"),
    "TIMESTAMP_LTZ": PrimitiveType("timestamp"),
    "TIMESTAMP_NTZ": PrimitiveType("timestamp_ntz"),
}
_CAST_CALLS: Final = {
    **{
        name: _TYPES[name]
        for name in ("INT", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "STRING")
    },
    **{name: _TYPES[name] for name in ("BOOLEAN", "DATE", "TIMESTAMP")},
    "TO_DATE": _TYPES["DATE"],
}
_KNOWN: Final = frozenset(
    {*_NAMES, *_TRIES, *_CAST_CALLS, "IF", "IFF", "NVL2", "EXTRACT", "DATE_PART", "DATEPART"}
)
_CHOOSING: Final = frozenset({"IF", "IFF", "COALESCE", "NVL", "IFNULL", "NULLIF"})
TESTS: Final = frozenset(
    {"ISNULL", "ISNOTNULL", "ISNAN", "EQUAL_NULL", "STARTSWITH", "ENDSWITH", "CONTAINS"}
)
"""Functions that are conditions."""
_CONDITION_WORDS: Final = ("AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN")
_COMPARISONS: Final = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "!")
_PARTS: Final = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "DAYOFWEEK")
_NO_NAMES: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "INTERVAL", "CASE", "WHEN", "THEN", "ELSE", "END"}
)


def read_value(
    tokens: Sequence[Token], start: int, stop: int, zone: dt.tzinfo, nested: Nested
) -> Expression | None:
    """Returns the value the tokens from start to before stop spell, of at least two; None for what is not understood."""
    reader = _Reader(tokens, start, stop, zone, nested)
    try:
        value = reader.sum()
    except (Unreadable, ValueError, ArithmeticError, RecursionError):
        return None
    return value if reader.at == stop and not isinstance(value, Interval | Unknown) else None


@dataclass(slots=True)
class _Reader:
    """Reads values by precedence; raises Unreadable at the first thing that is none."""

    tokens: Sequence[Token]
    at: int
    stop: int
    zone: dt.tzinfo
    nested: Nested
    depth: int = 0

    def peek(self, *symbols: str) -> bool:
        return self.at < self.stop and self.tokens[self.at].is_symbol(*symbols)

    def word(self, *words: str) -> bool:
        return self.at < self.stop and self.tokens[self.at].is_word(*words)

    def take(self) -> Token:
        if self.at >= self.stop:
            raise Unreadable
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, text: str) -> None:
        token = self.take()
        if not (token.is_symbol(text) or token.is_word(text)):
            raise Unreadable

    def sum(self) -> Expression | Interval:
        value = self.product()
        while self.peek("+", "-", "||"):
            op = self.take().value
            value = _applied("concat" if op == "||" else op, value, self.product())
        return value

    def product(self) -> Expression | Interval:
        value = self.signed()
        while self.peek("*", "/", "%") or self.word("DIV"):
            value = _applied(self.take().value.lower(), value, self.signed())
        return value

    def signed(self) -> Expression | Interval:
        if not self.peek("-", "+"):
            return self.casts()
        if (found := self.constant(self.at + 2)) is not None:
            return found
        if self.depth >= DEEPEST:
            raise Unreadable
        self.depth += 1
        sign, value = self.take().value, self.signed()
        self.depth -= 1
        if isinstance(value, Interval):
            raise Unreadable
        return call("negative", value) if sign == "-" else value

    def casts(self) -> Expression | Interval:
        value = self.primary()
        while self.peek("::"):
            self.take()
            value = call("cast", _valued(value), type=self.type())
        return value

    def primary(self) -> Expression | Interval:
        token = self.tokens[self.at] if self.at < self.stop else None
        if token is None:
            raise Unreadable
        if token.is_symbol("("):
            if self.depth >= DEEPEST:
                raise Unreadable
            self.depth += 1
            self.take()
            value = self.sum()
            self.expect(")")
            self.depth -= 1
            return value
        if token.kind in {"number", "text"}:
            return self.part()
        if token.is_word("CASE"):
            return self.case()
        following = self.tokens[self.at + 1] if self.at + 1 < self.stop else None
        if token.kind == "word" and following is not None and following.is_symbol("("):
            return self.function(token)
        is_typed = following is not None and (
            following.kind in {"text", "number"} or token.is_word("INTERVAL")
        )
        if token.is_word(*_NO_NAMES) or is_typed:
            return self.part()
        return self.ref()

    def part(self) -> Expression | Interval:
        """Returns a constant of one or more tokens: 5, 'a' 'b', DATE '2024-01-01', INTERVAL 1 DAY."""
        value, used = read_part(self.tokens[self.at : self.stop], self.zone)
        self.at += used
        return value

    def constant(self, stop: int) -> Literal | None:
        """Returns the signed number before `stop`, which is a literal: -9223372036854775808."""
        if stop > self.stop or self.tokens[stop - 1].kind != "number":
            return None
        found = read_operand(self.tokens[self.at : stop], self.zone)
        self.at = stop if isinstance(found, Literal) else self.at
        return found if isinstance(found, Literal) else None

    def ref(self) -> Ref:
        names = []
        while True:
            token = self.take()
            if token.kind not in {"name", "word"}:
                raise Unreadable
            names.append(token.value)
            if not self.peek("."):
                return Ref(tuple(names))
            self.take()

    def type(self) -> DataType:
        name = self.take().keyword
        if name in {"DECIMAL", "DEC", "NUMERIC"}:
            sizes = [10, 0]
            if self.peek("("):
                self.take()
                sizes = [int(self.take().value)]
                if self.peek(","):
                    self.take()
                    sizes.append(int(self.take().value))
                self.expect(")")
            precision, scale = (*sizes, 0)[:2]
            if not 0 <= scale <= precision <= 38:
                raise Unreadable
            return DecimalType(precision, scale)
        if name not in _TYPES:
            raise Unreadable
        return _TYPES[name]

    def case(self) -> Expression:
        if self.depth >= DEEPEST:
            raise Unreadable
        self.depth += 1
        self.take()
        subject = None if self.word("WHEN") else _valued(self.sum())
        parts: list[Expression] = []
        while self.word("WHEN"):
            self.take()
            if subject is None:
                end = self.find("THEN")
                parts.append(self.condition(self.at, end))
                self.at = end
            else:
                parts.append(_equal(subject, _valued(self.sum())))
            self.expect("THEN")
            parts.append(_valued(self.sum()))
        if self.word("ELSE"):
            self.take()
            parts.append(_valued(self.sum()))
        self.expect("END")
        self.depth -= 1
        return call("case", *parts)

    def find(self, word: str) -> int:
        """Returns the place of a keyword outside of brackets and of inner CASEs."""
        depth = 0
        for at in range(self.at, self.stop):
            token = self.tokens[at]
            if depth == 0 and token.is_word(word):
                return at
            depth += token.is_symbol("(") or token.is_word("CASE")
            depth -= token.is_symbol(")") or token.is_word("END")
        raise Unreadable

    def condition(self, start: int, stop: int) -> Predicate:
        found = self.nested(start, stop)
        if found is None:
            raise Unreadable
        return found

    def function(self, token: Token) -> Expression:
        name = token.keyword
        self.at += 2
        if name in {"CAST", "TRY_CAST"}:
            value = _valued(self.sum())
            self.expect("AS")
            kind = self.type()
            self.expect(")")
            return call("cast", value, type=kind, mode=Mode.TRY if name == "TRY_CAST" else Mode.ANSI)
        if name == "EXTRACT":
            part = self.take().keyword
            self.expect("FROM")
            value = _valued(self.sum())
            self.expect(")")
            if part not in _PARTS:
                raise Unreadable
            return call(part.lower(), value)
        if name not in _KNOWN or self.depth >= DEEPEST:
            raise Unreadable
        self.depth += 1
        found = self.named(name, self.arguments(name))
        self.depth -= 1
        return found

    def arguments(self, name: str) -> list[Expression]:
        found: list[Expression] = []
        while not self.peek(")"):
            if found:
                self.expect(",")
            found.append(self.argument(name))
        self.take()
        return found

    def argument(self, name: str) -> Expression:
        """Returns a value or, for functions that take such, a condition."""
        start, end = self.at, self.argument_end()
        if name in _CHOOSING and any(map(_begins_condition, self.inside(start, end))):
            self.at = end
            return self.condition(start, end)
        return _valued(self.sum())

    def inside(self, start: int, end: int) -> Iterator[Token]:
        """Yields the tokens at the top level, of what stands in brackets as a whole those in the brackets."""
        while end - start > 2 and self.tokens[start].is_symbol("("):
            depth = 0
            for at in range(start, end):
                depth += self.tokens[at].is_symbol("(") - self.tokens[at].is_symbol(")")
                if depth == 0:
                    break
            if at < end - 1:
                break
            start, end = start + 1, end - 1
        return self.top_level(start, end)

    def top_level(self, start: int, end: int) -> Iterator[Token]:
        """Yields the tokens outside of brackets and of CASE."""
        depth = 0
        for token in self.tokens[start:end]:
            depth -= token.is_symbol(")") or token.is_word("END")
            if depth == 0:
                yield token
            depth += token.is_symbol("(") or token.is_word("CASE")

    def argument_end(self) -> int:
        depth = 0
        for at in range(self.at, self.stop):
            token = self.tokens[at]
            if depth == 0 and token.is_symbol(",", ")"):
                return at
            depth += token.is_symbol("(", "[")
            depth -= token.is_symbol(")", "]")
        raise Unreadable

    def named(self, name: str, arguments: list[Expression]) -> Expression:
        if name in {"DATE_PART", "DATEPART"} and len(arguments) == 2:
            part, value = arguments
            if not (isinstance(part, Literal) and str(part.value).upper() in _PARTS):
                raise Unreadable
            return call(str(part.value).lower(), value)
        if name in _CAST_CALLS and len(arguments) == 1:
            return call("cast", arguments[0], type=_CAST_CALLS[name])
        if name in {"IF", "IFF"} and len(arguments) == 3:
            return call("if", *arguments)
        if name == "NVL2" and len(arguments) == 3 and isinstance(arguments[0], Ref | Call):
            return call("if", Not(over(arguments[0], IsNull)), *arguments[1:])
        if name in _TRIES and len(arguments) == 2:
            return call(_TRIES[name], *arguments, mode=Mode.TRY)
        if name not in _NAMES or not arguments:
            raise Unreadable
        if name in {"TRUNC", "DATE_TRUNC"} and not any(isinstance(part, Literal) for part in arguments):
            raise Unreadable  # a unit without quotes, which looks like a column
        return call(_NAMES[name], *arguments)


def _begins_condition(token: Token) -> bool:
    return token.is_word(*_CONDITION_WORDS, *TESTS) or token.is_symbol(*_COMPARISONS)


def _valued(value: Expression | Interval) -> Expression:
    if isinstance(value, Interval):
        raise Unreadable
    return value


def _equal(subject: Expression, value: Expression) -> Predicate:
    if not isinstance(subject, Ref | Call) or not isinstance(value, Ref | Call | Literal):
        raise Unreadable
    return Compare("=", subject, value)


def _applied(op: str, left: Expression | Interval, right: Expression | Interval) -> Expression:
    """Returns `left op right`; an interval is added to a date or a time."""
    if isinstance(left, Interval) and not isinstance(right, Interval) and op == "+":
        left, right = right, left
    if isinstance(left, Interval):
        raise Unreadable
    if not isinstance(right, Interval):
        return call(op, left, right)
    if op not in {"+", "-"}:
        raise Unreadable
    sign = -1 if op == "-" else 1
    parts = (Literal(sign * right.months), Literal(sign * right.micros), Literal(right.whole_days))
    return call("interval", left, *parts)
