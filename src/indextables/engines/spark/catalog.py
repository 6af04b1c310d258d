"""`spark.catalog` on tables that the session catalog knows by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog, Column, Table

from indextables.core.types import type_name
from indextables.engines.spark.jvm.gateway import each as each_of
from indextables.engines.spark.jvm.gateway import quoted
from indextables.engines.spark.place.tables_and_options import is_ours, open_table
from indextables.engines.spark.statement.names import Named, find_named, identifier_names, names_of
from indextables.engines.spark.versions import arguments_of, replace_method


def install() -> None:
    """Makes `spark.catalog` know tables of this library; doing it again changes nothing."""
    for name, act in _METHODS.items():
        replace_method(Catalog, name, _about(act))
    replace_method(Catalog, "createTable", _create)
    replace_method(Catalog, "listTables", _list)


def _about(act: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a method of the catalog that does `act` to tables of this library."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Catalog, *args: object, **kwargs: object) -> Any:
            given = arguments_of(original, self, *args, **kwargs)
            named = _named(self._sparkSession, str(given["tableName"]), given.get("dbName"))
            if named is None:
                return original(self, *args, **kwargs)
            return act(self._sparkSession, named)

        return method

    return make


def _named(session: SparkSession, name: str, database: str | None) -> Named | None:
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    names = names_of(parser.parseMultipartIdentifier(name))
    return find_named(session, names if database is None else (database, *names))


def _text(named: Named) -> str:
    return ".".join(map(quoted, named.parts))


def _columns(session: SparkSession, named: Named) -> list[Column]:
    snapshot = open_table(session, named.path).log.snapshot()
    fields = (
        (field, field.metadata.get("comment"), field.name in snapshot.partition_columns)
        for field in snapshot.schema
    )
    more = {"isCluster": False} if "isCluster" in Column._fields else {}
    return [
        Column(
            name=field.name,
            description=None if comment is None else str(comment),
            dataType=type_name(field.type),
            nullable=field.nullable,
            isPartition=is_partition,
            isBucket=False,
            **more,
        )
        for field, comment, is_partition in fields
    ]


def _table(_session: SparkSession, named: Named) -> Table:
    kind = "MANAGED" if named.is_managed else "EXTERNAL"
    catalog, database, name = named.parts
    return Table(name, catalog, [database], None, kind, isTemporary=False)


def _exists(_session: SparkSession, _named: Named) -> bool:
    return True


def _cache(session: SparkSession, named: Named) -> None:
    session.sql(f"CACHE TABLE {_text(named)}")


def _uncache(session: SparkSession, named: Named) -> None:
    session.sql(f"UNCACHE TABLE {_text(named)}")


def _is_cached(session: SparkSession, named: Named) -> bool:
    level = session.table(_text(named)).storageLevel
    return bool(level.useMemory or level.useDisk)


def _nothing(_session: SparkSession, _named: Named) -> None:
    """Does nothing: every read sees the newest version."""


def _list(original: Callable[..., list[Table]]) -> Callable[..., list[Table]]:
    """Returns `listTables`, which some versions of Spark end with an error at the first format they do not know."""

    def list_tables(self: Catalog, *args: object, **kwargs: object) -> list[Table]:
        given = arguments_of(original, self, *args, **kwargs)
        session, database = self._sparkSession, given.get("dbName") or self.currentDatabase()
        known = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
        if not known.databaseExists(database):
            return original(self, *args, **kwargs)
        pattern = given.get("pattern") or "*"
        found = [identifier_names(each) for each in each_of(known.listTables(database, pattern))]
        ours: dict[tuple[str, ...], Named | None] = {
            names: find_named(session, names) for names in found if len(names) > 1
        }
        if not any(ours.values()):
            return original(self, *args, **kwargs)
        return [
            _table(session, named)
            if (named := ours.get(names)) is not None
            else self.getTable(".".join(map(quoted, names)))
            for names in found
        ]

    return list_tables


_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "tableExists": _exists,
    "getTable": _table,
    "listColumns": _columns,
    "cacheTable": _cache,
    "uncacheTable": _uncache,
    "isCached": _is_cached,
    "refreshTable": _nothing,
    "recoverPartitions": _nothing,
}


def _create(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def create(self: Catalog, *args: Any, **kwargs: Any) -> DataFrame:
        given = arguments_of(original, self, *args, **kwargs)
        if not is_ours(given.get("source") or ""):
            return original(self, *args, **kwargs)
        session = self._sparkSession
        schema = given.get("schema")
        columns = "" if schema is None else f"({', '.join(map(_column, schema.fields))})"
        options = given.get("options", {})
        path = given.get("path") or options.pop("path", None)
        place = "" if path is None else f"LOCATION '{path}'"
        pairs = ", ".join(f"'{key}' '{value}'" for key, value in options.items())
        extra = f"OPTIONS ({pairs})" if pairs else ""
        session.sql(f"CREATE TABLE {given['tableName']} {columns} USING indextables {extra} {place}")
        return session.table(given["tableName"])

    return create


def _column(field: Any) -> str:
    null = "" if field.nullable else " NOT NULL"
    return f"{quoted(field.name)} {field.dataType.simpleString()}{null}"
