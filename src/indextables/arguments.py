"""What users hand in, as what the rest of the library takes: places, moments and conditions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from indextables.core.conditions.column import Column
from indextables.core.conditions.predicate import BoolRef, Node, Predicate, Ref
from indextables.core.sets.column_domain import ColumnDomain
from indextables.errors import NotATableError, PredicateError, TableNotFoundError
from indextables.log.moment import parse_moment
from indextables.ops.foreign import foreign_format
from indextables.sql.predicate import parse_predicate
from indextables.storage.base import LogStore
from indextables.storage.open import open_store

Location: TypeAlias = str | Path | LogStore
Moment: TypeAlias = int | str | dt.datetime
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""


def store_of(path: Location, options: Mapping[str, Any] | None) -> LogStore:
    """The store at a path or URI; a store is itself."""
    return open_store(path, options=options) if isinstance(path, str | Path) else path


def moment_of(moment: Moment | None) -> int | dt.datetime | None:
    """Milliseconds or an aware datetime; text is read as ISO."""
    return parse_moment(moment) if isinstance(moment, str) else moment


def condition_of(where: Any, timezone: str) -> Predicate | ColumnDomain | None:
    """A condition in any of the forms users write it."""
    match where:
        case str():
            return parse_predicate(where, timezone)
        case Column():
            return BoolRef(Ref(where.path))
        case None | ColumnDomain() | Node():
            return where  # type: ignore[return-value] # every Node is part of the union
        case _:
            raise PredicateError(
                f"a {type(where).__name__} is not a condition",
                hint="pass SQL text, it.col(...) > 5, or a ColumnDomain",
            )


def predicate_of(where: Any, timezone: str) -> Predicate | None:
    """The same as a predicate."""
    condition = condition_of(where, timezone)
    return condition.to_predicate() if isinstance(condition, ColumnDomain) else condition


def not_a_table(
    store: LogStore, error: TableNotFoundError | NotATableError
) -> TableNotFoundError | NotATableError:
    """The error, or a better one if what is there is a table of another format."""
    found = foreign_format(store)
    if found is None:
        return error
    return NotATableError(
        f"{store.uri} is {found.what}, not a table of this library", hint=found.hint, uri=store.uri
    )
