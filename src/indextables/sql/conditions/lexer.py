"""Spark SQL text as tokens, by the rules of Spark's own lexer."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from typing import Literal as OneOf

from indextables.errors import PredicateError

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
        """Whether this is one of the keywords; a name in backticks never is."""
        return self.keyword in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of the operators or brackets."""
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
    """All tokens and one `end`; PredicateError at the first character no token can start with."""
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
    r"""The text of a string literal, quotes and all.

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
    """After the comment that starts here; comments nest."""
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
