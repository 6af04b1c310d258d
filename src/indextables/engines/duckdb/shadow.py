"""Puts SELECTs in place of tables for one query, and changes nothing else on the connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import duckdb

from indextables.engines.duckdb.views import quoted

_WITH: Final = re.compile(rb"WITH(\s+RECURSIVE\b)?", re.IGNORECASE)


def shadowed(query: str, tables: Mapping[str, str]) -> str | None:
    """Returns the query with these names standing for these SELECTs; None if it cannot take a WITH.

    A name in WITH hides the table for this query alone. A view replaced for as long as the query runs
    would be seen by other threads of the connection, and would stay if it could not be put back. What
    reaches the table in another way, through a view of the user's or as `temp.name`, still sees all of it.
    """
    text = query.encode()  # positions of tokens count bytes
    start = next((at for at, kind in duckdb.tokenize(query) if kind != duckdb.token_type.comment), 0)
    own = _WITH.match(text, start)
    # a materialised result would be read whole, even if each use of it asks for less
    parts = [f"{quoted(name)} AS NOT MATERIALIZED ({select})" for name, select in tables.items()]
    head, tail = (text[: own.end()], text[own.end() :]) if own else (b"WITH", text)
    changed = b" ".join((head, ", ".join(parts).encode() + b"," * bool(own), tail)).decode()
    return changed if is_select(changed) else None


def is_select(query: str) -> bool:
    """Returns True if the text is one statement that only reads."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error:  # its own WITH may have the name already, and DESCRIBE takes none
        return False
    return len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
