"""Views of the catalog that read tables of this library: their text is read where they are used.

Spark's analyser would resolve the text by itself and find no such source. So the text is read here, as it
would read it: in the view's own database, with the settings it was made with, and without temporary views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from indextables.engines.spark.jvm.gateway import attributes_of, each, jvm_tools
from indextables.engines.spark.statement.names import (
    copied,
    entry_of,
    find_named,
    is_path,
    names_in,
    new_name,
)

_SETTING: Final = "view.sqlConfig."


@dataclass(frozen=True)
class StoredView:
    """A view, and the session in which its text means what it meant when it was made."""

    session: SparkSession
    body: JavaObject
    entry: JavaObject

    @property
    def parts(self) -> tuple[str, str, str]:
        """Returns the whole name."""
        name = self.entry.identifier()
        return ("spark_catalog", str(name.database().get()), str(name.table()))

    def columns_of(self, rows: DataFrame) -> DataFrame:
        """Returns the rows with the names and types that the view has."""
        schema = T.StructType.fromJson(orjson.loads(self.entry.schema().json()))
        given = zip(attributes_of(rows), schema.fields, strict=True)
        return rows.select([value.cast(field.dataType).alias(field.name) for value, field in given])


def find_view(session: SparkSession, names: tuple[str, ...]) -> StoredView | None:
    """Returns the view of this name in the session catalog, if its text names anything but Spark's own tables."""
    entry = entry_of(session, names)
    if entry is None or not entry.viewText().isDefined():
        return None
    state = session._jsparkSession.sessionState()  # noqa: SLF001
    body = state.sqlParser().parsePlan(str(entry.viewText().get()))
    inside = _as_made(session, entry)
    if not any(is_known(inside, found) for found in names_in(body)):
        return None
    body = inside._jsparkSession.sessionState().sqlParser().parsePlan(str(entry.viewText().get()))  # noqa: SLF001
    return StoredView(inside, body, entry)


def is_known(session: SparkSession, names: tuple[str, ...]) -> bool:
    """Returns whether a name is that of a table of this library, or of a view that reads one."""
    if is_path(session, names) or find_named(session, names) is not None:
        return True
    return find_view(session, names) is not None


def _as_made(session: SparkSession, entry: JavaObject) -> SparkSession:
    """Returns a session like this one, but with the view's database and settings and without temporary views."""
    clone = session._jsparkSession.cloneSession()  # noqa: SLF001
    state = clone.sessionState()
    state.catalog().clearTempTables()
    properties = jvm_tools().as_java(entry.properties())
    for key in properties.keySet().toArray():
        if str(key).startswith(_SETTING):
            clone.conf().set(str(key).removeprefix(_SETTING), str(properties.get(key)))
    namespace = list(map(str, each(entry.viewCatalogAndNamespace())))
    if namespace:
        state.catalogManager().setCurrentCatalog(namespace[0])
        state.catalogManager().setCurrentNamespace(jvm_tools().strings(namespace[1:]))
    return SparkSession(session.sparkContext, clone)


def create_view(session: SparkSession, plan: JavaObject, rows: DataFrame) -> None:
    """Stores CREATE VIEW, whose query has these rows, with Spark's own command."""
    name = new_name(session, tuple(map(str, each(plan.child().nameParts()))))
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    command = parser.parsePlan("CREATE TEMPORARY VIEW v AS SELECT 1")
    tools = jvm_tools()
    known = {
        "name": name.identifier,
        "plan": rows._jdf.queryExecution().analyzed(),  # noqa: SLF001
        "viewType": getattr(
            tools.lookup("org.apache.spark.sql.catalyst.analysis.PersistedView$"), "MODULE$"
        ),
        "isAnalyzed": True,
    }
    given = set(_fields(plan))
    changes = {}
    for at, field in enumerate(_fields(command)[: command.productArity()]):
        if field in known:
            changes[at] = known[field]
        elif field in given and field != "referredTempFunctions":
            changes[at] = getattr(plan, field)()
    tools.dataset.ofRows(session._jsparkSession, copied(command, changes))  # noqa: SLF001


def _fields(node: JavaObject) -> list[str]:
    return [str(field.getName()) for field in node.getClass().getDeclaredFields()]
