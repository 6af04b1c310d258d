"""Tables by name: the session catalog holds a name, this format, and a location; all else is in the table's log.

A name is looked up in a statement as Spark's parser read it, before Spark's analyser sees it, and then stands
for the location. So whatever works by path works by name, in every version of Spark. The catalog's entry has
no columns, because a copy of them would go stale: a session that did not `enable` cannot read the table at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from indextables.engines.spark.jvm.gateway import each, jvm_tools
from indextables.engines.spark.place.tables_and_options import SHORT_NAME, is_ours, open_table
from indextables.errors import ConfigError, TableExistsError

_CATALYST: Final = "org.apache.spark.sql.catalyst"
_SESSION_CATALOG: Final = "spark_catalog"
_NAMED: Final = re.compile(r"'Unresolved(?:Relation|Table|TableOrView|View|Identifier) \[([^\]]*)\]")
LIKE_COMMAND: Final = "CreateTableLikeCommand"
"""CREATE TABLE … LIKE before Spark 4.3, which holds names and no relations."""
_HIDDEN: Final = {"ExplainCommand": "logicalPlan", "DescribeQueryCommand": "plan"}
"""Statements that do not show the statement inside them."""


@dataclass(frozen=True)
class Named:
    """A table of this format in the session catalog."""

    database: str
    table: str
    path: str
    is_managed: bool = False
    """Whether the catalog chose the place, and deletes the directory with the name."""

    @property
    def parts(self) -> tuple[str, str, str]:
        """Returns the whole name, by which columns may be qualified."""
        return (_SESSION_CATALOG, self.database, self.table)

    def drop(self, session: SparkSession, *, purge: bool) -> None:
        """Takes the name away; the catalog deletes the directory of a table for which it chose the place."""
        _catalog(session).dropTable(_identifier(self.database, self.table), False, purge)

    def rename(self, session: SparkSession, names: Sequence[str]) -> None:
        """Gives the table another name in its database."""
        database = names[-2] if len(names) > 1 else self.database
        if database.lower() != self.database.lower():
            raise ConfigError(
                f"{self.table!r} cannot move from database {self.database!r} to {database!r}",
                hint="give a name in the same database",
            )
        new = _identifier(self.database, names[-1])
        _catalog(session).renameTable(_identifier(self.database, self.table), new)


@dataclass(frozen=True)
class NewName:
    """A name that the session catalog may get."""

    database: str
    table: str
    location: str | None = None
    """Where the statement says that the table is; without it the catalog chooses, and owns the directory."""

    def path(self, session: SparkSession) -> str:
        """Returns the directory of the table."""
        if self.location is None:
            # a URI, which is percent-encoded; a text that a user wrote is not
            path = jvm_tools().path(_catalog(session).defaultTablePath(self.identifier))
        else:
            path = jvm_tools().path(self.location)
        if not path.isAbsolute():
            raise ConfigError(
                f"LOCATION {self.location!r} does not say where it begins",
                hint="begin it with / or with a scheme such as s3a://",
            )
        return _plain(str(path.toString()))

    @property
    def identifier(self) -> JavaObject:
        """Returns the name as Catalyst has it."""
        return _identifier(self.database, self.table)


def name_path(session: SparkSession, parts: JavaObject) -> str | None:
    """Returns where the table is that a name stands for: a path in the name itself, or one of the catalog.

    None for every other name.
    """
    names = names_of(parts)
    if is_path(session, names):
        return names[1]
    found = find_named(session, names)
    return None if found is None else found.path


def is_path(session: SparkSession, names: Sequence[str]) -> bool:
    """Returns whether a name is ``indextables.`path` ``, unless the catalog has such a table."""
    if len(names) != 2 or names[0].lower() != SHORT_NAME:
        return False
    catalog = _catalog(session)
    if not catalog.databaseExists(SHORT_NAME):
        return True
    return not catalog.tableExists(_identifier(SHORT_NAME, names[1]))


def find_named(session: SparkSession, names: Sequence[str]) -> Named | None:
    """Returns the table of this format that has this name in the session catalog."""
    entry = entry_of(session, names)
    if entry is None or not entry.provider().isDefined() or not is_ours(str(entry.provider().get())):
        return None
    name = entry.identifier()
    path = _plain(str(jvm_tools().path(entry.location()).toString()))
    is_managed = str(entry.tableType().name()) == "MANAGED"
    return Named(str(name.database().get()), str(name.table()), path, is_managed)


def entry_of(session: SparkSession, names: Sequence[str]) -> JavaObject | None:
    """Returns what the session catalog says of a table or view; None for a temporary view and an unknown name."""
    found = _in_session_catalog(session, names)
    if found is None:
        return None
    catalog = _catalog(session)
    if len(names) < 3 and catalog.isTempView(jvm_tools().seq(names)):
        return None
    identifier = _identifier(*found)
    return catalog.getTableMetadata(identifier) if catalog.tableExists(identifier) else None


def _in_session_catalog(session: SparkSession, names: Sequence[str]) -> tuple[str, str] | None:
    """Returns the database and the table; None if another catalog is meant, or none can be."""
    manager = session._jsparkSession.sessionState().catalogManager()  # noqa: SLF001
    match tuple(names):
        case (table,) if str(manager.currentCatalog().name()) == _SESSION_CATALOG:
            return str(_catalog(session).getCurrentDatabase()), table
        case (database, table) if not manager.isCatalogRegistered(database):
            is_here = str(manager.currentCatalog().name()) == _SESSION_CATALOG
            return (database, table) if is_here else None
        case (catalog, database, table) if catalog.lower() == _SESSION_CATALOG:
            return database, table
        case (catalog, table) if catalog.lower() == _SESSION_CATALOG:
            return str(_catalog(session).getCurrentDatabase()), table
        case _:
            return None


def new_name(session: SparkSession, names: Sequence[str], location: str | None = None) -> NewName:
    """Returns a name for a new table; ConfigError if the session catalog cannot have it."""
    found = _in_session_catalog(session, names)
    if found is None:
        raise ConfigError(
            f"{'.'.join(names)!r} is a name of another catalog, which holds no table of this format",
            hint=f"use a name of the session catalog: {_SESSION_CATALOG}.database.table",
        )
    return NewName(*found, location)


def vacant_name(session: SparkSession, names: Sequence[str], location: str | None) -> NewName:
    """Returns a name for a new table; TableExistsError if a table or view of the catalog has it."""
    found = new_name(session, names, location)
    if entry_of(session, names) is not None:
        raise TableExistsError(
            f"the catalog has {'.'.join(names)} already, and not in this format",
            hint="use another name, or DROP TABLE it first",
            uri=found.path(session),
        )
    check_place(session, found)
    return found


def check_place(session: SparkSession, name: NewName) -> None:
    """Raises TableExistsError if the catalog would choose the directory of another table, and own its rows."""
    path = name.path(session)
    if name.location is None and open_table(session, path).log.exists():
        raise TableExistsError(
            f"{path}, where the catalog would put {name.table!r}, has a table already",
            hint=f"CREATE TABLE {name.table} USING {SHORT_NAME} LOCATION '{path}' gives it the name",
            uri=path,
        )


def register(session: SparkSession, name: NewName) -> None:
    """Gives the name to the table at its location; TableExistsError if something has it already."""
    tools, catalog = jvm_tools(), _catalog(session)
    if catalog.tableExists(name.identifier):
        raise TableExistsError(
            f"the catalog has {name.database}.{name.table} already",
            hint="use CREATE OR REPLACE TABLE, or another name",
            uri=name.path(session),
        )
    package = f"{_CATALYST}.catalog"
    kinds = tools.lookup(f"{package}.CatalogTableType")
    uri = tools.path(name.path(session)).toUri()
    storage = copied(tools.lookup(f"{package}.CatalogStorageFormat").empty(), {0: tools.some(uri)})
    made = _made(
        f"{package}.CatalogTable",
        name.identifier,
        kinds.MANAGED() if name.location is None else kinds.EXTERNAL(),
        storage,
        tools.lookup("org.apache.spark.sql.types.StructType")(),
        tools.some(SHORT_NAME),
    )
    catalog.createTable(made, False, False)


def names_in(plan: JavaObject) -> Iterator[tuple[str, ...]]:
    """Yields the names of tables in a statement as Spark parsed it, in one call however large it is."""
    while str(plan.nodeName()) in _HIDDEN:
        plan = getattr(plan, _HIDDEN[str(plan.nodeName())])()
    if plan.nodeName() == LIKE_COMMAND:
        yield identifier_names(plan.sourceTable())
        return
    for found in _NAMED.finditer(str(plan.toString())):
        yield tuple(found[1].split(", "))


def identifier_names(identifier: JavaObject) -> tuple[str, ...]:
    """Returns the parts of a name as Catalyst has it."""
    database = identifier.database()
    return (*((str(database.get()),) if database.isDefined() else ()), str(identifier.table()))


def copied(node: JavaObject, changes: dict[int, Any]) -> JavaObject:
    """Returns an object of a case class with other values at these places, however many it has."""
    values = (
        changes[at] if at in changes else node.productElement(at) for at in range(node.productArity())
    )
    return node.copy(*values)


def _made(kind: str, *first: Any) -> JavaObject:
    """Returns an object of a case class: its first values, and its own defaults for the others."""
    tools = jvm_tools()
    owner = tools.lookup(kind)
    constructors = tools.find_class(kind).getConstructors()
    arity = max(len(each.getParameterTypes()) for each in constructors)
    rest = (getattr(owner, f"apply$default${at}")() for at in range(len(first) + 1, arity + 1))
    return owner(*first, *rest)


def _identifier(database: str, table: str) -> JavaObject:
    tools = jvm_tools()
    return tools.lookup(f"{_CATALYST}.TableIdentifier")(table, tools.some(database))


def _catalog(session: SparkSession) -> JavaObject:
    return session._jsparkSession.sessionState().catalog()  # noqa: SLF001


def names_of(parts: JavaObject) -> tuple[str, ...]:
    """Returns the parts of a name."""
    return tuple(map(str, each(parts)))


def _plain(uri: str) -> str:
    """Returns a local path without the scheme that the catalog gives it."""
    return re.sub("^file:/+", "/", uri)
