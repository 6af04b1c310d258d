"""Promises about rows that only the job itself can check: the first row that breaks one stops it.

A check is part of a column that is written, so Spark can neither leave it out nor move it in front of a
join or filter that would have removed the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.to_sql import to_spark_sql, to_sql
from indextables.errors import IndexTablesError, PredicateError, SchemaMismatchError
from indextables.parquet.read.align import NULL_DIRECTORY

_MARK: Final = re.compile(
    r"indextables-row<(null|value|partition|outside)>(.*?)<indextables-row", re.DOTALL
)
# Control characters that Spark leaves in a directory's name and no key of a table may have.
_UNSAFE: Final = "[\x00\x80-\x9f]"


def not_null(values: Column, column: str) -> Column:
    """The values, none of which is NULL."""
    return F.when(values.isNotNull(), values).otherwise(_stop("null", column))


def without(values: Column, forbidden: Iterable[tuple[str, Column]]) -> Column:
    """The values, of which none has a NULL in one of these parts (a name, and where it is NULL)."""
    for part, is_null in forbidden:
        values = F.when(F.coalesce(is_null, F.lit(False)), _stop("null", part)).otherwise(values)
    return values


def fitting(values: Column, cast: Column, column: str) -> Column:
    """The cast values, none of which the cast lost."""
    return F.when(values.isNull() | cast.isNotNull(), cast).otherwise(_stop("value", column))


def nameable(text: Column, column: str) -> Column:
    """Texts of a partition column, each of which comes back from a directory's name unchanged."""
    is_safe = ~(text == F.lit(NULL_DIRECTORY)) & ~text.rlike(_UNSAFE)
    return F.when(text.isNull() | is_safe, text).otherwise(_stop("partition", column))


def inside(values: Column, condition: Predicate) -> Column:
    """The values of rows for which the bound condition is TRUE, and there are no others."""
    is_inside = F.expr(to_spark_sql(condition))
    return F.when(is_inside, values).otherwise(_stop("outside", to_sql(condition)))


def _stop(kind: str, about: str) -> Column:
    return F.raise_error(F.lit(f"indextables-row<{kind}>{about}<indextables-row"))


@contextmanager
def promises_in_words() -> Iterator[None]:
    """What stops a job in here because of a row is raised as the error that it is."""
    try:
        yield
    except BaseException as error:
        if (promise := broken_promise(error)) is not None:
            raise promise from None
        raise


def broken_promise(error: BaseException) -> IndexTablesError | None:
    """The check that stopped a job, in words; None if something else did."""
    found = _MARK.search(str(error))
    if found is None:
        return None
    kind, about = found.groups()
    match kind:
        case "null":
            return SchemaMismatchError(
                f"column {about!r} contains NULL, and the table says it never does",
                hint="fill or filter these rows before writing; nothing was committed",
                column=about,
            )
        case "value":
            return SchemaMismatchError(
                f"column {about!r} has a value that does not fit the table's type",
                hint="round or cast the column before writing; nothing was committed",
                column=about,
            )
        case "partition":
            return SchemaMismatchError(
                f"partition column {about!r} has a value that cannot be the name of a directory",
                hint=f"replace control characters and {NULL_DIRECTORY!r}; nothing was committed",
                column=about,
            )
        case _:
            return PredicateError(
                f"a row of the data does not satisfy the condition of the overwrite: {about}",
                hint="rows outside the replaced part belong into an append; nothing was committed",
                condition=about,
            )
