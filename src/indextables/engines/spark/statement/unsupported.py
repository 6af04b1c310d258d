"""Statements of the catalog about a table that is known by its path: refused instead of accepted and ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from indextables.engines.spark.jvm.gateway import each
from indextables.engines.spark.place.tables_and_options import SHORT_NAME
from indextables.engines.spark.statement.plan_rewrite import name_path
from indextables.errors import IndexTablesError

_NAME_IN: Final[Mapping[str, str]] = {
    "UnresolvedIdentifier": "nameParts",
    "UnresolvedTable": "multipartIdentifier",
    "UnresolvedTableOrView": "multipartIdentifier",
    "UnresolvedView": "multipartIdentifier",
    "UnresolvedFunctionName": "multipartIdentifier",
}
"""The leaves of a plan by which a statement names an object of the catalog."""
_NAMED_IN_TEXT: Final = re.compile(rf"\b{SHORT_NAME}`?\s*\.", re.IGNORECASE)
_INSTEAD: Final[Mapping[str, str]] = {
    "DropTable": "delete its directory; DELETE FROM removes the rows and keeps the history",
    "DropView": "delete its directory; DELETE FROM removes the rows and keeps the history",
    "TruncateTable": "DELETE FROM removes all rows",
    "AddColumns": "write with option('mergeSchema', 'true'): new columns are added",
    "RefreshTable": "leave it out: every read by path sees the newest version",
}
_WORKS: Final = (
    "queries, INSERT, DELETE, UPDATE, MERGE, CREATE TABLE and the commands of this format take a path"
)


def refuse_catalog_statement(session: SparkSession, plan: JavaObject) -> None:
    """Raises IndexTablesError if the statement asks the catalog for a table of this library.

    Spark would find no table of that name there, and with IF EXISTS would report success without doing anything.
    """
    for leaf in each(plan.collectLeaves()):
        parts = _NAME_IN.get(str(leaf.nodeName()))
        if parts is not None and (path := _path(session, getattr(leaf, parts)())) is not None:
            raise _refused(str(plan.nodeName()), path)
    is_immediate = "ExecuteImmediate" in str(plan.nodeName())
    if is_immediate and _NAMED_IN_TEXT.search(str(plan.toString())):
        raise IndexTablesError(
            "EXECUTE IMMEDIATE cannot name a table by its path",
            hint="run the statement itself with spark.sql",
        )


def refuse_explained_change(session: SparkSession, plan: JavaObject) -> None:
    """Raises IndexTablesError for EXPLAIN of a statement that changes a table, which no plan of Spark's does."""
    targets = {"MergeIntoTable": "targetTable"}
    name = str(plan.nodeName())
    if name not in {"InsertIntoStatement", "DeleteFromTable", "UpdateTable", *targets}:
        return
    target = getattr(plan, targets.get(name, "table"))()
    while target.nodeName() == "SubqueryAlias":
        target = target.child()
    if target.nodeName() == "UnresolvedRelation" and _path(session, target.multipartIdentifier()):
        raise IndexTablesError(
            "EXPLAIN cannot show how a table of this format is changed",
            hint="EXPLAIN the query that finds the rows: EXPLAIN SELECT … WHERE …",
        )


def _path(session: SparkSession, parts: JavaObject) -> str | None:
    """Returns the path in the name, with or without the session's catalog before it; None if it is Spark's."""
    catalogs = session._jsparkSession.sessionState().catalogManager()  # noqa: SLF001
    if (
        parts.length() == 3
        and parts.apply(0).lower() == str(catalogs.v2SessionCatalog().name()).lower()
    ):
        parts = parts.drop(1)
    path = name_path(session, parts)
    if path is None or re.search(r"[/:\\]", path):
        return path
    # a database that happens to be called indextables may have, or get, a table of that name
    catalog = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
    return None if catalog.databaseExists(SHORT_NAME) else path


def _refused(statement: str, path: str) -> IndexTablesError:
    words = " ".join(re.findall("[A-Z][a-z]*", statement)).upper()
    return IndexTablesError(
        f"{words} does not work on {SHORT_NAME}.`{path}`: the catalog does not hold a table that is known "
        "by its path",
        hint=_INSTEAD.get(statement, _WORKS),
    )
