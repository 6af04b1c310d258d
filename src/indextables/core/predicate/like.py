"""LIKE patterns: what a prefix says about them, and the regular expression for rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from indextables.core.predicate.nodes import Ref, StartsWith

_WILDCARDS: Final = {"%": ".*", "_": "."}
_Piece: TypeAlias = tuple[str, bool]
"""A character, and whether it is a wildcard."""


def like(ref: Ref, pattern: str, escape: str = "\\") -> StartsWith | None:
    r"""Returns the condition `ref LIKE pattern`, or None where the pattern is not a legal one.

    >>> like(Ref(("a",)), "ab%")
    StartsWith(ref=Ref(path=('a',)), prefix='ab', exact=True, pattern=None)
    >>> like(Ref(("a",)), r"10\%")
    StartsWith(ref=Ref(path=('a',)), prefix='10%', exact=False, pattern='10\\%')

    Without a wildcard it is an equality, but of texts only: `1.0 LIKE '1'` is FALSE. The binder, which
    knows the column's type, makes it one.
    """
    pieces = _pieces(pattern, escape)
    if pieces is None:
        return None
    first = next((i for i, (_, wild) in enumerate(pieces) if wild), len(pieces))
    prefix = "".join(char for char, _ in pieces[:first])
    rest = {char if wild else "" for char, wild in pieces[first:]}
    if rest == {"%"}:
        return StartsWith(ref, prefix)
    return StartsWith(ref, prefix, exact=False, pattern="".join(_spelled(pieces)))


def whole_text(pattern: str) -> str | None:
    """Returns the only text a pattern without wildcards matches.

    Its escape character is a backslash.
    """
    pieces = _pieces(pattern, "\\") or []
    return None if any(wild for _, wild in pieces) else "".join(char for char, _ in pieces)


def _pieces(pattern: str, escape: str) -> list[_Piece] | None:
    """Yields the pieces of a pattern. Spark allows the escape character only before %, _ and itself, and never at the end."""
    pieces: list[_Piece] = []
    chars = iter(pattern)
    for char in chars:
        if char != escape:
            pieces.append((char, char in _WILDCARDS))
            continue
        escaped = next(chars, "")
        if escaped not in {"%", "_", escape}:
            return None
        pieces.append((escaped, False))
    return pieces


def _spelled(pieces: list[_Piece]) -> Iterator[str]:
    for char, wild in pieces:
        yield char if wild or char not in "%_\\" else "\\" + char


def escape_like(text: str) -> str:
    """Returns the pattern that matches exactly this text, with backslash as its escape character."""
    return re.sub(r"([%_\\])", r"\\\1", text)


def unescaped_like(pattern: str) -> str:
    """Returns a pattern of a dialect whose LIKE has no escape character, as one whose is a backslash."""
    return pattern.replace("\\", "\\\\")


def like_regex(pattern: str) -> str:
    """Returns the regular expression (RE2 and Python) of a pattern whose escape character is a backslash.

    A newline is a character like any other, and the end is the end of the text, not of a line.
    """
    pieces = _pieces(pattern, "\\") or []
    body = "".join(_WILDCARDS[char] if wild else re.escape(char) for char, wild in pieces)
    return rf"(?s)\A(?:{body})\z"


def is_like(text: str, condition: StartsWith) -> bool:
    """Returns whether a text satisfies a LIKE, or begins with a prefix.

    >>> is_like("abc", StartsWith(Ref(("s",)), "a", exact=False, pattern="a_c"))
    True
    """
    if condition.pattern is None:
        return isinstance(condition.prefix, str) and text.startswith(condition.prefix)
    # Python writes the end of a text with a capital
    return re.match(like_regex(condition.pattern).removesuffix(r"\z") + r"\Z", text) is not None
