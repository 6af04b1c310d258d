"""INSERT, DELETE, UPDATE, MERGE and CREATE TABLE on tables of this library: turns Catalyst's plans into statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import orjson
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.place.tables_and_options import is_ours
from indextables.engines.spark.statement.clauses import partition_columns, refuse_unkept
from indextables.engines.spark.statement.names import (
    NewName,
    check_place,
    entry_of,
    find_named,
    is_path,
    names_of,
    new_name,
)
from indextables.engines.spark.statement.plan_rewrite import Rewriter, frame_of, relation_path
from indextables.engines.spark.statement.statements import (
    Change,
    Create,
    Insert,
    Nothing,
    Statement,
    carry_out,
)
from indextables.engines.spark.versions import seam
from indextables.errors import IndexTablesError, TableExistsError, TableNotFoundError


def run(session: SparkSession, plan: JavaObject) -> DataFrame | None:
    """Carries out a statement that changes a table of this library; returns None for every other plan."""
    name = plan.nodeName()
    if name == "UnresolvedWith":
        inside = _with_inside(session, plan)
        return None if inside is None else run(session, inside)
    reader = _READERS.get(name)
    statement = reader(session, plan) if reader else None
    return None if statement is None else carry_out(session, statement)


_QUERY_AT: Final = {"InsertIntoStatement": 3, "OverwriteByExpression": 2, "MergeIntoTable": 1}
"""The position of the query among the arguments of a statement."""


def _with_inside(session: SparkSession, plan: JavaObject) -> JavaObject | None:
    """Returns WITH … INSERT as INSERT … WITH, so that the rows are a query of their own; None for other statements."""
    statement = plan.child()
    at = _QUERY_AT.get(statement.nodeName())
    if at is None:
        if statement.nodeName() in _READERS and _change(session, statement) is not None:
            raise IndexTablesError(
                "WITH cannot stand before DELETE or UPDATE of a table of this format",
                hint="put the query where its name is used: … WHERE id IN (SELECT …)",
            )
        return None
    values = [statement.productElement(i) for i in range(statement.productArity())]
    values[at] = seam.with_ctes(plan, values[at], plan.cteRelations())
    return statement.copy(*values)


def _insert(session: SparkSession, plan: JavaObject) -> Statement | None:
    path = relation_path(session, plan.table())
    if path is None:
        return None
    if plan.ifPartitionNotExists():
        raise IndexTablesError(
            "INSERT OVERWRITE … PARTITION (…) IF NOT EXISTS is not possible on a table of this format",
            hint="query the partition first, and use INSERT INTO if it has no row",
        )
    fixed, brought = _partition_spec(plan.partitionSpec())
    return Insert(
        path=path,
        rows=frame_of(session, Rewriter(session).rewrite(plan.query())),
        overwrite=plan.overwrite(),
        partition=fixed,
        open_partitions=brought,
        columns=tuple(_each(plan.userSpecifiedCols())),
        by_name=plan.byName(),
        replace_where=_replace_where(seam.replace_criteria(plan)),
        options=_write_options(plan.table()),
    )


def _overwrite(session: SparkSession, plan: JavaObject) -> Statement | None:
    """Returns INSERT … REPLACE WHERE as Spark before 4.2 parses it."""
    path = relation_path(session, plan.table())
    if path is None:
        return None
    return Insert(
        path=path,
        rows=frame_of(session, Rewriter(session).rewrite(plan.query())),
        overwrite=True,
        partition={},
        open_partitions=(),
        columns=(),
        by_name=plan.isByName(),
        replace_where=plan.deleteExpr(),
        options=_write_options(plan.table()),
    )


def _replace_where(criteria: JavaObject | None) -> JavaObject | None:
    """Returns the condition of REPLACE WHERE; REPLACE ON and REPLACE USING compare rows with rows and are refused."""
    if criteria is None:
        return None
    kind = str(criteria.getClass().getSimpleName())
    if kind != "InsertReplaceWhere":
        raise IndexTablesError(
            f"INSERT … REPLACE {kind.removeprefix('InsertReplace').upper()} is not possible on a table "
            "of this format",
            hint="use MERGE INTO … WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        )
    return criteria.cond()


def _change(session: SparkSession, plan: JavaObject) -> Statement | None:
    target = plan.targetTable() if plan.nodeName() == "MergeIntoTable" else plan.table()
    path = relation_path(session, target)
    return None if path is None else Change(path, plan)


def _create(session: SparkSession, plan: JavaObject) -> Statement | None:
    name = plan.name()
    if name.nodeName() != "UnresolvedIdentifier":
        return None
    names = names_of(name.nameParts())
    provider = plan.tableSpec().provider()
    is_named = is_ours(provider.get()) if provider.isDefined() else is_default(session)
    new: NewName | None = None
    if is_path(session, names):
        # USING parquet makes a table of the catalog, in a database that happens to be called indextables
        if provider.isDefined() and not is_named:
            return None
        path = names[1]
    else:
        known = find_named(session, names)
        if not is_named and known is None:
            return None
        location = _given(plan.tableSpec().location())
        new = new_name(session, names, location)
        path = new.path(session)
        if entry_of(session, names) is not None:
            if plan.nodeName().startswith("Create") and plan.ignoreIfExists():
                return Nothing()
            if known is None or not is_named or plan.nodeName().startswith("Create"):
                raise TableExistsError(
                    f"the catalog has {'.'.join(names)} already",
                    hint="use CREATE OR REPLACE TABLE, IF NOT EXISTS, or another name",
                    uri=path,
                )
            new, path = None, known.path
        elif plan.nodeName().startswith("Replace") and not plan.orCreate():
            raise TableNotFoundError(
                f"there is no table {'.'.join(names)}", hint="use CREATE OR REPLACE TABLE", uri=path
            )
    refuse_unkept(plan, path)
    if new is not None:
        check_place(session, new)
    is_filled = plan.nodeName().endswith("AsSelect")
    replaces = plan.nodeName().startswith("Replace")
    if is_filled:
        rows = frame_of(session, Rewriter(session).rewrite(plan.query()))
    else:
        rows = session.createDataFrame([], _schema(plan))
    return Create(
        path=path,
        rows=rows,
        is_filled=is_filled,
        partition_by=tuple(partition_columns(plan.partitioning())),
        properties=_strings(plan.tableSpec().properties()),
        if_not_exists=False if replaces else plan.ignoreIfExists(),
        replace=replaces,
        options=_table_options(plan.tableSpec()),
        description=_given(plan.tableSpec().comment()),
        name=new,
    )


def creates(session: SparkSession, plan: JavaObject) -> bool:
    """Returns whether a statement makes a table of this format under a name."""
    if plan.nodeName() not in _CREATING:
        return False
    provider = plan.tableSpec().provider()
    return is_ours(provider.get()) if provider.isDefined() else is_default(session)


def is_default(session: SparkSession) -> bool:
    """Returns whether a table for which no format is given is one of this library."""
    return is_ours(str(session.conf.get("spark.sql.sources.default")))


def _given(option: JavaObject) -> JavaObject | None:
    return option.get() if option.isDefined() else None


def _schema(plan: JavaObject) -> StructType:
    """Returns the columns of CREATE TABLE as PySpark's type."""
    return StructType.fromJson(orjson.loads(seam.new_columns(jvm_tools(), plan).json()))


def _partition_spec(spec: JavaObject) -> tuple[Mapping[str, str | None], tuple[str, ...]]:
    """Returns the fixed values of a PARTITION clause, and the columns without one; Some(null) is NULL."""
    found = jvm_tools().as_java(spec)
    values = {str(key): found.get(key) for key in found.keySet().toArray()}
    fixed = {key: value.get() for key, value in values.items() if value.isDefined()}
    return fixed, tuple(key for key in values if key not in fixed)


def _strings(values: JavaObject) -> dict[str, str]:
    found = jvm_tools().as_java(values)
    return {str(key): str(found.get(key)) for key in found.keySet().toArray()}


_PRIVILEGES: Final = "__required_write_privileges__"
"""An option that Spark itself adds to a table that a statement changes."""


def _write_options(relation: JavaObject) -> dict[str, str]:
    """Returns the options in WITH (…) after the table's name."""
    given = relation.options().asCaseSensitiveMap()
    names = (str(key) for key in given.keySet().toArray())
    return {name: str(given.get(name)) for name in names if name != _PRIVILEGES}


def _table_options(spec: JavaObject) -> dict[str, str]:
    """Returns the options in OPTIONS (…) of CREATE TABLE, whose values Catalyst has as constants."""
    empty = jvm_tools().empty_row
    pairs = _each(spec.optionExpression().options())
    given = ((pair.productElement(0), pair.productElement(1)) for pair in pairs)
    return {str(name): str(value.eval(empty)) for name, value in given}


def _each(items: JavaObject) -> Iterator[JavaObject]:
    return (items.apply(i) for i in range(items.length()))


_CREATING: Final = ("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect")
_READERS: Final[Mapping[str, Callable[[SparkSession, JavaObject], Statement | None]]] = {
    "InsertIntoStatement": _insert,
    "OverwriteByExpression": _overwrite,
    "DeleteFromTable": _change,
    "UpdateTable": _change,
    "MergeIntoTable": _change,
    **dict.fromkeys(_CREATING, _create),
}
