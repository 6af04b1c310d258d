"""Spark SQL text as tokens, by the rules of Spark's own lexer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final
from typing import Literal as OneOf

from indextables.errors import PredicateError

Kind = OneOf["name", "word", "text", "number", "symbol", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL: what it is, what it means, and where it stands in the source.

    A `word` is a bare identifier or keyword, `keyword` its upper case; a `name` was in backticks.
    """

    kind: Kind
    value: str
    start: int
    end: int
    keyword: str = ""

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the keywords; a name in backticks never is."""
        return self.keyword in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of the operators or brackets."""
        return self.kind == "symbol" and self.value in symbols


_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | `(?P<name>(?:[^`]|``)+)`
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[LSYFDlsyfd])?)(?!\w)
    | (?P<word>\w+)
    | (?P<symbol><=>|<>|!=|==|<=|>=|!<|!>|\|\||->|=>|::|[-=<>!+*/%~&|^()\[\],.:?])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def tokenize(sql: str) -> list[Token]:
    """All tokens and one `end`; PredicateError at the first character no token can start with."""
    tokens: list[Token] = []
    at = 0
    while at < len(sql):
        if sql.startswith("/*", at):
            at = _comment_end(sql, at)
            continue
        found = _TOKEN.match(sql, at)
        if found is None:
            raise syntax_error(sql, at, _what_is_wrong(sql[at]))
        if found.lastgroup != "space":
            tokens.append(_token(found))
        at = found.end()
    return [*_without_keywords(tokens), Token("end", "", len(sql), len(sql))]


def _without_keywords(tokens: list[Token]) -> list[Token]:
    """Words next to a dot are names whatever they are: `t.end`, `in.x`."""
    dots = [token.is_symbol(".") for token in tokens]
    around = zip(tokens, [False, *dots], [*dots[1:], False], strict=False)
    return [replace(token, keyword="") if before or after else token for token, before, after in around]


def _token(found: re.Match[str]) -> Token:
    start, end = found.span()
    match found.lastgroup, found[0]:
        case "name", _:
            return Token("name", found["name"].replace("``", "`"), start, end)
        case "raw", text:
            return Token("text", text[2:-1], start, end)
        case "text", text:
            return Token("text", unescape(text), start, end)
        case "word", text:
            return Token("word", text, start, end, text.upper())
        case "number", text:
            return Token("number", text, start, end)
        case _, text:
            return Token("symbol", text, start, end)


def unescape(quoted: str) -> str:
    r"""The text of a string literal, quotes and all.

    >>> unescape(r"'it\'s \u0041\x'"), unescape("'a''b'"), unescape(r"'10\%'")
    ("it's Ax", "a'b", '10\\%')
    """
    quote, body = quoted[0], quoted[1:-1]
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
    """After the comment that starts here; comments nest."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", sql[at:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return at + mark.end()
    raise syntax_error(sql, at, "this comment has no end")


def _what_is_wrong(char: str) -> str:
    if char in "'\"":
        return "this text has no closing quote"
    if char == "`":
        return "this name has no closing backtick"
    return f"{char!r} has no meaning in a condition"


def syntax_error(sql: str, at: int, problem: str) -> PredicateError:
    """The error for a place in the source: the line, a caret under it, and the position as a fact."""
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
