"""Turns what users hand in into what the rest of the library takes: locations, moments and conditions."""

from __future__ import annotations

import datetime as dt
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from typing import Any, Final, TypeAlias, TypeVar

from indextables.core.domain.column_domain import ColumnDomain
from indextables.core.predicate.col import Column
from indextables.core.predicate.nodes import BoolRef, Node, Predicate, Ref
from indextables.errors import ConfigError, NotATableError, PredicateError, TableNotFoundError
from indextables.log.timestamps import parse_moment
from indextables.ops.shared.detect import foreign_format
from indextables.sql.conditions.parser import parse_predicate
from indextables.storage.base import LogStore
from indextables.storage.open import open_store

Location: TypeAlias = str | os.PathLike[str] | LogStore
Moment: TypeAlias = int | str | dt.datetime
Names: TypeAlias = str | Sequence[str]
Where: TypeAlias = str | Predicate | Column | ColumnDomain | None
"""A condition as users write it; None chooses every row."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""


def store_of(path: Location, options: Mapping[str, object] | None) -> LogStore:
    """Returns the store at a path or URI; a store is returned as it is."""
    if isinstance(path, str | os.PathLike):
        return open_store(os.fspath(path), options=options)
    if not hasattr(path, "put_if_absent"):
        raise ConfigError(
            f"a {type(path).__name__} cannot be the location of a table",
            hint="pass a path, a URI or a store",
        )
    return path


def settings_of(given: Mapping[str, object] | None) -> Mapping[str, object]:
    """Returns the options or properties that were given by name; ConfigError if they are anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ConfigError(
            f"{given!r:.80} are not settings by name",
            hint="pass a dict such as {'spark.indextables.checkpoint.interval': 20}",
        )
    return given


def names_of(names: Names) -> tuple[str, ...]:
    """Returns column names; a text alone is one name, not a sequence of letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def point_in_time(
    version: int | None, moment: Moment | None
) -> tuple[int | None, int | dt.datetime | None]:
    """Returns the version, or the moment as milliseconds or an aware datetime; (None, None) means now.

    Text is read as an ISO moment. ConfigError if both are given, or one cannot be understood.
    """
    if version is not None and moment is not None:
        raise ConfigError("a version and a timestamp exclude each other", hint="leave one of them out")
    if version is not None and (not isinstance(version, Integral) or isinstance(version, bool)):
        raise ConfigError(f"{version!r} is not a version", hint="versions are whole numbers from 0 on")
    when = parse_moment(moment) if isinstance(moment, str) else moment
    if not isinstance(when, Integral | dt.datetime | None) or isinstance(when, bool):
        raise ConfigError(
            f"{when!r} is not a moment",
            hint="pass milliseconds since 1970, an aware datetime, or text such as 2024-05-01",
        )
    if isinstance(when, dt.datetime) and when.tzinfo is None:
        raise ConfigError(
            f"{when} has no time zone", hint="give it one: datetime(…, tzinfo=datetime.UTC)"
        )
    at = int(when) if isinstance(when, Integral) else when
    return None if version is None else int(version), at


def count_of(limit: int | None) -> int | None:
    """Returns the largest number of results wanted; None means all of them."""
    if limit is not None and (not isinstance(limit, int) or not 0 <= limit <= sys.maxsize):
        raise ConfigError(f"{limit!r} is not a limit", hint="pass a whole number, or None for all")
    return limit


def condition_of(where: Where, timezone: str) -> Predicate | ColumnDomain | None:
    """Returns a condition from any of the forms users may write it in."""
    match where:
        case str():
            return parse_predicate(where, timezone)
        case Column():
            return BoolRef(Ref(where.path))
        case None | ColumnDomain() | Node():
            return where
        case _:
            raise PredicateError(
                f"a {type(where).__name__} is not a condition",
                hint="pass SQL text, it.col(...) > 5, or a ColumnDomain",
            )


def predicate_of(where: Where, timezone: str) -> Predicate | None:
    """Returns a condition as a predicate, whichever form it was written in."""
    condition = condition_of(where, timezone)
    return condition.to_predicate() if isinstance(condition, ColumnDomain) else condition


def not_a_table(
    store: LogStore, error: TableNotFoundError | NotATableError
) -> TableNotFoundError | NotATableError:
    """Returns the error, or a better one if the directory holds a table of another format."""
    found = foreign_format(store)
    if found is None:
        return error
    return NotATableError(
        f"{store.uri} is {found.what}, not a table of this library", hint=found.hint, uri=store.uri
    )


# The public edge: an argument of the wrong kind is an error that says what to pass, whichever method gets it.

T = TypeVar("T", bound=type)
_Check = tuple[Callable[[Any], bool], str]


def _is_names(value: object) -> bool:
    if isinstance(value, str):
        return True
    return (
        isinstance(value, Sequence)
        and not isinstance(value, bytes)
        and all(isinstance(one, str) for one in value)
    )


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


_NAMES: Final[_Check] = (_is_names, "pass a name of a column, or a list of names")
_TEXT: Final[_Check] = (lambda value: isinstance(value, str), "pass a text")
_CHECKS: Final[Mapping[str, _Check]] = {
    "columns": _NAMES,
    "z_order_by": _NAMES,
    "hilbert_by": _NAMES,
    "partition_by": _NAMES,
    "record_key": _NAMES,
    "timezone": (_TEXT[0], "pass the name of a time zone, such as UTC or Europe/Berlin"),
    "remove": (_is_names, "pass a name of a property, or a list of names"),
    "name": _TEXT,
    "description": _TEXT,
    "merge_mode": (_TEXT[0], "pass 'record' or 'columns'"),
    "min_logs": (_is_count, "pass a whole number"),
    "min_percent": (_is_number, "pass a number"),
    "version": (_is_count, "versions are whole numbers from 0 on"),
    "progress": (callable, "pass a function of (done, total)"),
    "query_builder": (
        lambda value: hasattr(value, "pruning_predicate"),
        "pass a QueryBuilder: q = it.QueryBuilder(); q = q[q['a'] < 2]",
    ),
}
"""What a parameter of this name takes in every method, and what to say if it gets something else."""


def checked(owner: T) -> T:
    """Returns the class, each of whose public methods checks its arguments by their names."""
    for name, member in list(vars(owner).items()):
        if not name.startswith("_") and inspect.isroutine(member):
            setattr(owner, name, _checked_member(member))
    return owner


def _checked_member(member: Any) -> Any:
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_checked(member.__func__))
    return _checked(member)


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    checks = {name: _CHECKS[name] for name in signature.parameters if name in _CHECKS}
    if not checks:
        return function
    defaults = {name: signature.parameters[name].default for name in checks}

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError:
            return function(*args, **options)  # Python says itself what is missing
        for name, (is_right, hint) in checks.items():
            if name in given and given[name] is not defaults[name] and not is_right(given[name]):
                what = (
                    f"{given[name]!r:.60}" if is_right is not callable else type(given[name]).__name__
                )
                raise ConfigError(f"{what} is not a value for {name}", hint=hint, argument=name)
        return function(*args, **options)

    return call
