"""Conditions that only an engine can evaluate: checked for syntax, and for the columns they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from indextables.core.predicate.nodes import Opaque
from indextables.core.types import FieldPath
from indextables.sql.conditions.operands import syntax_error

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

_BEFORE: Final = "SELECT 1 WHERE (\n"
_AFTER: Final = "\n)"
# Words that functions take as they are: date_trunc(MONTH, d).
_UNITS: Final = frozenset(
    {
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
    }
)


def opaque(sql: str, start: int, end: int) -> Opaque:
    """Returns the condition between two places of the source; PredicateError if it is no SQL at all."""
    # only here, because it costs 0.1 s to load, and few conditions need it
    import sqlglot  # noqa: PLC0415
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    text = sql[start:end]
    try:
        # sqlglot does not know Spark's >>>
        known = text.replace(">>>", ">> ")
        where = sqlglot.parse_one(f"{_BEFORE}{known}{_AFTER}", dialect="spark").find(exp.Where)
    except RecursionError:
        return Opaque(text, why="it is nested too deeply to be read")
    except SqlglotError as error:
        at, problem = _place(error, text)
        raise syntax_error(sql, start + at, problem) from None
    inner = where.this.this if where is not None else None
    if not isinstance(inner, exp.Expression) or isinstance(inner, exp.Alias | exp.Select | exp.Tuple):
        raise syntax_error(sql, start, "this is not one condition")
    return Opaque(text, tuple(dict.fromkeys(_columns(inner))), "only an engine can evaluate it")


def _place(error: SqlglotError, text: str) -> tuple[int, str]:
    """Returns where in the text, and what, as far as the error says so."""
    details = (getattr(error, "errors", None) or [{}])[0]
    if not details.get("line"):
        return 0, "this cannot be read as SQL"
    line, column = (details.get("line") or 2) - 2, details.get("col") or 1
    lines = text.split("\n")
    if line >= len(lines):
        return len(text), "the condition ends too early"
    before = sum(len(one) + 1 for one in lines[:line])
    highlight = details.get("highlight") or ""
    return before + max(column - len(highlight), 0), f"unexpected {highlight!r}"


def _columns(condition: exp.Expression) -> Iterator[FieldPath]:
    """Yields columns of the table: not those of a subquery, nor words that only look like columns."""
    from sqlglot import exp  # noqa: PLC0415

    outer = condition.find_ancestor(exp.Where)
    for column in condition.find_all(exp.Column, bfs=False):
        path = tuple(part.name for part in column.parts)
        is_unit = len(path) == 1 and path[0].upper() in _UNITS and isinstance(column.parent, exp.Func)
        if not is_unit and column.find_ancestor(exp.Query, exp.Where) is outer:
            yield path
