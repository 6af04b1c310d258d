"""CREATE TABLE: clauses that no table keeps are refused, since who writes CHECK or DEFAULT relies on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from indextables.engines.spark.jvm.attributes import each
from indextables.errors import ConfigError, IndexTablesError, UnsupportedTypeError

_PADDED: Final = re.compile(r'"(var)?char\(', re.ASCII)


def refuse_unkept(plan: Any, path: str) -> None:
    """An error for the first clause of a CREATE TABLE that would be forgotten."""
    spec = plan.tableSpec()
    place = spec.location()
    if place.isDefined() and place.get().rstrip("/") != path.rstrip("/"):
        raise ConfigError(
            f"two places are given: {path!r}, and {place.get()!r} as LOCATION",
            hint="leave out LOCATION",
        )
    if spec.constraints().nonEmpty():
        raise IndexTablesError(
            f"a table does not check the constraint {spec.constraints().head().name()!r}",
            hint="leave it out; NOT NULL after a column's type is checked",
        )
    if not plan.nodeName().endswith("AsSelect"):
        for column in each(plan.columns()):
            _refuse_in(column)


def _refuse_in(column: Any) -> None:
    if _PADDED.search(column.dataType().json()):
        raise UnsupportedTypeError(
            f"column {column.name()!r} has the type {column.dataType().catalogString()}, which a table "
            "cannot hold",
            hint="a STRING holds text of any length",
        )
    for clause, given in (
        ("a default value", column.defaultValue()),
        ("a generated value", column.generationExpression()),
        ("an identity", column.identityColumnSpec()),
    ):
        if given.isDefined():
            raise IndexTablesError(
                f"column {column.name()!r} cannot have {clause}",
                hint="leave it out, and write the value",
            )


def partition_columns(transforms: Any) -> Iterator[str]:
    """The columns that a table is to be partitioned by; only a column itself can be one."""
    for transform in each(transforms):
        if transform.name() != "identity":
            raise ConfigError(
                f"a table cannot be partitioned by {transform.toString()}",
                hint="add a column with that value and partition by it",
            )
        yield ".".join(transform.references()[0].fieldNames())
