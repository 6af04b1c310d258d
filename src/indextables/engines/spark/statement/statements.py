"""Statements that change a table, taken apart; the functions that carry them out register here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from indextables.engines.spark.statement.names import NewName
from indextables.errors import IndexTablesError


@dataclass(frozen=True)
class Insert:
    """INSERT INTO or OVERWRITE."""

    path: str
    rows: DataFrame
    overwrite: bool
    partition: Mapping[str, str | None]
    """PARTITION (day = '…'): the text of each fixed value; None is NULL."""
    open_partitions: tuple[str, ...]
    """PARTITION (hour): columns whose values are in the rows."""
    columns: tuple[str, ...]
    by_name: bool
    replace_where: JavaObject | None
    """The condition as Catalyst parsed it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """INSERT INTO … WITH (…)."""


@dataclass(frozen=True)
class Change:
    """DELETE, UPDATE or MERGE as Spark parsed it; it is read anew for each version it is tried on."""

    path: str
    plan: JavaObject


@dataclass(frozen=True)
class Create:
    """CREATE [OR REPLACE] TABLE; with `rows` it is CREATE TABLE … AS SELECT."""

    path: str
    rows: DataFrame
    is_filled: bool
    partition_by: tuple[str, ...]
    properties: Mapping[str, str]
    if_not_exists: bool
    replace: bool
    options: Mapping[str, str] = field(default_factory=dict)
    """OPTIONS (…)."""
    description: str | None = None
    name: NewName | None = None
    """What the catalog gets as the table's name."""


@dataclass(frozen=True)
class Nothing:
    """A statement that has nothing to do: CREATE TABLE IF NOT EXISTS of a table that is there."""


Statement: TypeAlias = Insert | Change | Create | Nothing
Handler: TypeAlias = Callable[[SparkSession, Any], DataFrame | None]

HANDLERS: dict[type[Any], Handler] = {}
"""The function that carries out each kind of statement."""


def carry_out(session: SparkSession, statement: Statement) -> DataFrame:
    """Returns the result of the statement, an empty DataFrame if there is nothing to show."""
    if isinstance(statement, Nothing):
        return nothing(session)
    handler = HANDLERS.get(type(statement))
    if handler is None:
        raise IndexTablesError(
            f"{type(statement).__name__.upper()} is not possible on a table in this session",
            hint="use the methods of indextables.Table",
        )
    result = handler(session, statement)
    return nothing(session) if result is None else result


def nothing(session: SparkSession) -> DataFrame:
    """Returns Spark's answer to a command that has nothing to show."""
    return session.createDataFrame([], "nothing INT").select()
