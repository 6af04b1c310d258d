"""One side of a comparison: a column, a constant, or something only an engine can compute."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from typing import Literal as OneOf

from indextables.core.predicate.nodes import Literal, Operand, Ref
from indextables.errors import PredicateError
from indextables.sql.conditions.constants import (
    Interval,
    Unreadable,
    calculate,
    cast,
    interval,
    number,
    typed_literal,
)

# Spark SQL text as tokens, by the rules of Spark's own lexer.

Kind = OneOf["name", "word", "text", "number", "symbol", "end"]


class Token(NamedTuple):
    """A piece of SQL: what it is, what it means, and where it stands in the source.

    A `word` is a bare identifier or keyword, `keyword` its upper case; a `name` was in backticks. A named
    tuple, because a list of ten thousand values makes twice as many of them.
    """

    kind: Kind
    value: str
    start: int
    end: int
    keyword: str = ""

    def is_word(self, *words: str) -> bool:
        """Returns whether this is one of the keywords; a name in backticks never is."""
        return self.keyword in words

    def is_symbol(self, *symbols: str) -> bool:
        """Returns whether this is one of the operators or brackets."""
        return self.kind == "symbol" and self.value in symbols


_TOKEN: Final = re.compile(
    r"""
      (?P<text>'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[LSYFDlsyfd])?)(?!\w)
    | (?P<space>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | `(?P<name>(?:[^`]|``)+)`
    | (?P<word>\w+)
    | (?P<symbol><=>|<>|!=|==|<=|>=|!<|!>|\|\||->|=>|::|[-=<>!+*/%~&|^()\[\],.:?])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def tokenize(sql: str) -> list[Token]:
    """Returns all tokens and one `end`.

    PredicateError at the first character no token can start with.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(sql):
        at = _tokens_until_comment(sql, at, tokens)
    return [*_without_keywords(tokens), Token("end", "", len(sql), len(sql))]


def _tokens_until_comment(sql: str, at: int, tokens: list[Token]) -> int:
    """Adds what stands before the next comment; the place after that comment, or the end."""
    for found in _TOKEN.finditer(sql, at):
        start, end = found.span()
        if start != at:  # a search goes over what it does not know
            break
        kind = found.lastgroup
        if kind == "comment":
            return _comment_end(sql, at)
        if kind != "space":
            tokens.append(_token(kind, found[0], start, end))
        at = end
    if at < len(sql):
        raise syntax_error(sql, at, _what_is_wrong(sql[at]))
    return at


def _without_keywords(tokens: list[Token]) -> list[Token]:
    """Words next to a dot are names whatever they are: `t.end`, `in.x`."""
    dots = [token.value == "." and token.kind == "symbol" for token in tokens]
    if not any(dots):
        return tokens
    around = zip(tokens, [False, *dots], [*dots[1:], False], strict=False)
    return [token._replace(keyword="") if before or after else token for token, before, after in around]


def _token(kind: str | None, text: str, start: int, end: int) -> Token:
    match kind:
        case "symbol" | "number":
            return Token(kind, text, start, end)
        case "text":
            return Token("text", unescape(text), start, end)
        case "word":
            return Token("word", text, start, end, text.upper())
        case "raw":
            return Token("text", text[2:-1], start, end)
        case _:
            return Token("name", text[1:-1].replace("``", "`"), start, end)


def unescape(quoted: str) -> str:
    r"""Returns the text of a string literal, quotes and all.

    >>> unescape(r"'it\'s \u0041\x'"), unescape("'a''b'"), unescape(r"'10\%'")
    ("it's Ax", "a'b", '10\\%')
    """
    quote, body = quoted[0], quoted[1:-1]
    if "\\" not in body and quote not in body:
        return body
    # Doubled quotes first would also eat the second half of \'' ; one pass sees both.
    return re.sub(rf"{quote}{quote}|{_ESCAPE.pattern}", _unescaped, body, flags=re.DOTALL)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code is None:
        return found[0][0]
    if code[0] in "uU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else found[0]
    if len(code) == 3:
        return chr(int(code, 8))
    if code in {"%", "_"}:  # kept for LIKE to read
        return found[0]
    return _ESCAPED.get(code, code)


def _comment_end(sql: str, at: int) -> int:
    """Returns the place after the comment that starts here; comments nest."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise syntax_error(sql, at, "this comment has no end")


def _what_is_wrong(char: str) -> str:
    if char in "'\"":
        return "this text has no closing quote"
    if char == "`":
        return "this name has no closing backtick"
    return f"{char!r} has no meaning in a condition"


def syntax_error(sql: str, at: int, problem: str) -> PredicateError:
    """Returns the error for a place in the source: the line, a caret under it, and the position as a fact."""
    line = sql.count("\n", 0, at) + 1
    begin = sql.rfind("\n", 0, at) + 1
    end = sql.find("\n", at)
    shown = sql[begin : end if end >= 0 else len(sql)]
    column = at - begin
    first = max(0, column - 60)
    excerpt = shown[first : first + 100]
    return PredicateError(
        f"line {line}, column {column + 1}: {problem}\n  {excerpt}\n  {' ' * (column - first)}^",
        hint="conditions are Spark SQL, as after WHERE; names with special characters go in `backticks`, "
        "text in 'quotes'",
        sql=sql,
        position=at,
        line=line,
        column=column + 1,
    )


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
    """Returns the column or constant these tokens spell, None for anything else."""
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


def read_part(tokens: Sequence[Token], zone: dt.tzinfo) -> tuple[Literal | Interval, int]:
    """Returns the constant these tokens begin with, and how many of them it takes; Unreadable if it is none."""
    reader = _Reader(tokens, zone)
    return reader.primary(), reader.at


def _plain_literal(tokens: Sequence[Token], zone: dt.tzinfo) -> Literal | None:
    """Returns what long lists are made of, without the reader's way through all precedences."""
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
    """Returns the tokens inside the outermost parentheses that enclose everything."""
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
        """Returns the text with those that follow it: side by side they are one."""
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
        """Returns an interval: `1 DAY 2 HOURS`, `'1' DAY` or `'1 day 2 hours'`."""
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
