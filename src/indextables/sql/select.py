"""Tables named by their path inside any engine's SQL: ``SELECT … FROM indextables.`path` VERSION AS OF 3``.

Everything else is the engine's own language, so the text is only searched, never parsed: quoted texts,
quoted names and comments are stepped over, and what is left is compared with one pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_QUOTED: Final = r"`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\""
_TRAVEL: Final = (
    r"(?:\s+(?:FOR\s+)?(?:VERSION\s+AS\s+OF\s+(?P<version>\d+)"
    r"|TIMESTAMP\s+AS\s+OF\s+'(?P<timestamp>[^']*)'))?"
)
_PIECE: Final = re.compile(
    rf"""
      (?P<table>(?<![\w.])indextables\s*\.\s*(?P<path>{_QUOTED}){_TRAVEL})
    | '(?:[^']|'')*' | {_QUOTED} | --[^\n]* | /\*.*?\*/
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TableAt:
    """A table as a query names it."""

    path: str
    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A query with each table under a name of its own, in the order they first appear."""

    text: str
    tables: dict[str, TableAt]


def find_tables(text: str) -> Select:
    """Returns the query with every ``indextables.`path` `` replaced by a plain name.

    >>> found = find_tables("SELECT 'indextables.`x`' FROM indextables.`/data/t` VERSION AS OF 3")
    >>> found.text, found.tables
    ("SELECT 'indextables.`x`' FROM t0", {'t0': TableAt(path='/data/t', version=3, timestamp=None)})
    """
    names: dict[TableAt, str] = {}
    taken = text.lower()

    def named(table: TableAt) -> str:
        if table not in names:
            number = len(names)
            # a name the query uses for something else would change its meaning
            names[table] = next(n for n in _candidates(number) if n not in taken)
        return names[table]

    def replaced(found: re.Match[str]) -> str:
        return named(_table(found)) if found["table"] else found[0]

    rewritten = _PIECE.sub(replaced, text)
    return Select(rewritten, {name: table for table, name in names.items()})


def _candidates(number: int) -> list[str]:
    return ["t" + "_" * more + str(number) for more in range(20)]


def _table(found: re.Match[str]) -> TableAt:
    quote = found["path"][0]
    path = found["path"][1:-1].replace(quote * 2, quote)
    version = int(found["version"]) if found["version"] else None
    return TableAt(path, version, found["timestamp"])
