"""Statements about a table itself: ALTER, TRUNCATE, SHOW …, DESCRIBE, COMMENT, REFRESH, DROP, by name and by path.

They read and change the table's own log. A statement that is not here is refused in words, because Spark would
say that there is no such table, or change the catalog's entry alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import orjson
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from indextables.core.prune.partitions import NULL_DIRECTORY, escape_segment
from indextables.core.stats.columns import as_array
from indextables.core.types import Field, StructType, schema_from_json, type_name
from indextables.engines.spark.jvm.gateway import each, jvm_tools, quoted
from indextables.engines.spark.place.tables_and_options import SHORT_NAME, open_table
from indextables.engines.spark.statement.names import (
    LIKE_COMMAND,
    Named,
    find_named,
    identifier_names,
    is_path,
    names_of,
)
from indextables.engines.spark.statement.statements import nothing
from indextables.engines.spark.versions import seam
from indextables.errors import ConfigError, IndexTablesError, UnknownColumnError
from indextables.log.state.snapshot import Snapshot
from indextables.ops.alter import set_description, set_properties
from indextables.ops.evolve import evolve
from indextables.sql.statements.describe import columns_of

_NAME_IN: Final[Mapping[str, str]] = {
    "UnresolvedIdentifier": "nameParts",
    "UnresolvedTable": "multipartIdentifier",
    "UnresolvedTableOrView": "multipartIdentifier",
    "UnresolvedView": "multipartIdentifier",
    "UnresolvedFunctionName": "multipartIdentifier",
}
"""The leaves of a plan by which a statement names an object of the catalog."""
_CHECKED: Final = {"UnresolvedRelation": "multipartIdentifier"}
"""The leaf by which ADD CONSTRAINT … CHECK names a table: Spark would look for rows that break it."""
_NEW: Final = "write a new table: CREATE OR REPLACE TABLE … AS SELECT …"
_INSTEAD: Final[Mapping[str, str]] = {
    "DropTable": "delete its directory; DELETE FROM removes the rows and keeps the history",
    "DropView": "DROP TABLE drops a table that has a name",
    "RenameColumn": _NEW,
    "DropColumns": _NEW,
    "ReplaceColumns": _NEW,
    "AddCheckConstraint": "NOT NULL after a column's type is checked; no other constraint is",
    "AddConstraint": "NOT NULL after a column's type is checked; no other constraint is",
    "DropConstraint": "a table has no constraint but NOT NULL",
    "AlterTableClusterBy": "OPTIMIZE … ZORDER BY or HILBERT BY lays rows along a curve",
    "AddPartitions": "a partition is there when it has rows: write some",
    "DropPartitions": "DELETE FROM … WHERE removes the rows of a partition",
    "RenamePartitions": "UPDATE moves rows to another partition",
    "RecoverPartitions": "nothing has to be recovered: the log knows every file",
    "RepairTable": "nothing has to be recovered: the log knows every file",
    "SetTableLocation": "drop the name, and CREATE TABLE … LOCATION gives it to another table",
    "CreateTableLike": "CREATE TABLE … AS SELECT … LIMIT 0 makes a table of the same columns",
    "LoadData": "read the files as a DataFrame, and append it",
}
_WORKS: Final = (
    "queries, INSERT, DELETE, UPDATE, MERGE, CREATE TABLE, ALTER TABLE … SET TBLPROPERTIES and ADD COLUMNS, "
    "SHOW, DESCRIBE and the commands of this format take a table"
)


@dataclass(frozen=True)
class Subject:
    """The table that a statement is about."""

    session: SparkSession
    path: str
    named: Named | None
    """Its name in the catalog; None if the statement gives the path."""

    @property
    def snapshot(self) -> Snapshot:
        """Returns the newest version."""
        return open_table(self.session, self.path).log.snapshot()

    def evolve(self, schema: StructType) -> None:
        """Commits this schema."""
        evolve(open_table(self.session, self.path).log, schema)


def run_table_statement(session: SparkSession, plan: JavaObject) -> DataFrame | None:
    """Returns the answer to a statement about a table of this format; None for every other statement.

    IndexTablesError for one that is not possible: Spark would find no such table, with IF EXISTS would report
    success without doing anything, or would change the catalog alone.
    """
    if plan.nodeName() == LIKE_COMMAND:
        subject = _subject(session, identifier_names(plan.sourceTable()))
        if subject is not None:
            raise _refused("CreateTableLike", subject)
        return None
    name_in = {**_NAME_IN, **_CHECKED} if plan.nodeName() == "AddCheckConstraint" else _NAME_IN
    for leaf in each(plan.collectLeaves()):
        parts = name_in.get(str(leaf.nodeName()))
        subject = None if parts is None else _subject(session, names_of(getattr(leaf, parts)()))
        if subject is not None:
            handler = _HANDLERS.get(str(plan.nodeName()))
            answer = None if handler is None else handler(plan, subject)
            if answer is None:
                raise _refused(str(plan.nodeName()), subject)
            return answer
    return None


def refuse_explained_change(session: SparkSession, plan: JavaObject) -> None:
    """Raises IndexTablesError for EXPLAIN of a statement that changes a table, which no plan of Spark's does."""
    targets = {"MergeIntoTable": "targetTable"}
    name = str(plan.nodeName())
    if name in {"InsertIntoStatement", "DeleteFromTable", "UpdateTable", *targets}:
        target = getattr(plan, targets.get(name, "table"))()
        while target.nodeName() == "SubqueryAlias":
            target = target.child()
        if target.nodeName() == "UnresolvedRelation" and _subject(
            session, names_of(target.multipartIdentifier())
        ):
            raise IndexTablesError(
                "EXPLAIN cannot show how a table of this format is changed",
                hint="EXPLAIN the query that finds the rows: EXPLAIN SELECT … WHERE …",
            )
        return
    for leaf in each(plan.collectLeaves()):
        parts = _NAME_IN.get(str(leaf.nodeName()))
        if parts is not None and (subject := _subject(session, names_of(getattr(leaf, parts)()))):
            raise _refused(f"Explain{name}", subject)


def _subject(session: SparkSession, names: tuple[str, ...]) -> Subject | None:
    """Returns the table of a name, with or without the session's catalog before it; None if it is Spark's."""
    if len(names) == 3 and names[0].lower() == "spark_catalog" and names[1].lower() == SHORT_NAME:
        names = names[1:]
    if not is_path(session, names):
        named = find_named(session, names)
        return None if named is None else Subject(session, named.path, named)
    if re.search(r"[/:\\]", names[1]):
        return Subject(session, names[1], None)
    # a database that happens to be called indextables may have, or get, a table of that name
    catalog = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
    return None if catalog.databaseExists(SHORT_NAME) else Subject(session, names[1], None)


def _refused(statement: str, subject: Subject) -> IndexTablesError:
    words = " ".join(re.findall("[A-Z][a-z]*", statement)).upper()
    name = f"{SHORT_NAME}.`{subject.path}`" if subject.named is None else ".".join(subject.named.parts)
    return IndexTablesError(
        f"{words} does not work on {name}, a table of this format",
        hint=_INSTEAD.get(statement, _WORKS),
    )


# -- what a table says of itself -----------------------------------------------------------------------


def _describe(_plan: JavaObject, subject: Subject) -> DataFrame:
    return seam.from_arrow(subject.session, columns_of(subject.snapshot))


def _comment(field: Field) -> str | None:
    found = field.metadata.get("comment")
    return None if found is None else str(found)


def _show_columns(_plan: JavaObject, subject: Subject) -> DataFrame:
    return _rows(subject, "col_name STRING", [(name,) for name in subject.snapshot.schema.names])


def _show_properties(plan: JavaObject, subject: Subject) -> DataFrame:
    properties = subject.snapshot.properties
    rows = sorted(properties.items())
    if plan.propertyKey().isDefined():
        key = str(plan.propertyKey().get())
        rows = [(key, properties.get(key, f"Table {subject.path} does not have property: {key}"))]
    return _rows(subject, "key STRING, value STRING", rows)


def _show_partitions(plan: JavaObject, subject: Subject) -> DataFrame:
    snapshot = subject.snapshot
    if not snapshot.partition_columns:
        raise IndexTablesError(
            f"the table at {subject.path} has no partitions",
            hint="it was created without PARTITIONED BY",
        )
    if plan.pattern().isDefined():
        raise IndexTablesError(
            "SHOW PARTITIONS … PARTITION (…) does not work on a table of this format",
            hint="leave out PARTITION (…), or SELECT DISTINCT the partition columns WHERE …",
        )
    names, values = snapshot.partition_columns, as_array(snapshot.column("partition_values"))
    rows = set(zip(*(values.field(name).to_pylist() for name in names), strict=True))
    shown = {"/".join(map(_partition, names, row)) for row in rows}
    return _rows(subject, "partition STRING", [(text,) for text in sorted(shown)])


def _partition(name: str, value: str | None) -> str:
    return f"{escape_segment(name)}={escape_segment(value) if value else NULL_DIRECTORY}"


def _show_create(_plan: JavaObject, subject: Subject) -> DataFrame:
    snapshot = subject.snapshot
    columns = ",\n".join(f"  {_column_clause(field)}" for field in snapshot.schema)
    name = f"{SHORT_NAME}.{quoted(subject.path)}"
    if subject.named is not None:
        name = ".".join(map(quoted, subject.named.parts))
    lines = [f"CREATE TABLE {name} (\n{columns})", f"USING {SHORT_NAME}"]
    if snapshot.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted, snapshot.partition_columns))})")
    if snapshot.metadata.description is not None:
        lines.append(f"COMMENT {_text(snapshot.metadata.description)}")
    if subject.named is not None:
        lines.append(f"LOCATION {_text(subject.path)}")
    if snapshot.properties:
        pairs = (
            f"  {_text(key)} = {_text(value)}" for key, value in sorted(snapshot.properties.items())
        )
        lines.append("TBLPROPERTIES (\n" + ",\n".join(pairs) + ")")
    return _rows(subject, "createtab_stmt STRING", [("\n".join(lines) + "\n",)])


def _column_clause(field: Field) -> str:
    null = "" if field.nullable else " NOT NULL"
    comment = _comment(field)
    return f"{quoted(field.name)} {type_name(field.type).upper()}{null}" + (
        "" if comment is None else f" COMMENT {_text(comment)}"
    )


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _rows(subject: Subject, schema: str, rows: list[Any]) -> DataFrame:
    return subject.session.createDataFrame(rows, schema)


# -- what changes a table ------------------------------------------------------------------------------


def _truncate(_plan: JavaObject, subject: Subject) -> DataFrame:
    subject.session.sql(f"DELETE FROM {SHORT_NAME}.{quoted(subject.path)}")  # noqa: S608 - a quoted name
    return nothing(subject.session)


def _nothing(_plan: JavaObject, subject: Subject) -> DataFrame:
    """Returns the answer to REFRESH: every read sees the newest version anyway."""
    return nothing(subject.session)


def _comment_on(plan: JavaObject, subject: Subject) -> DataFrame:
    log = open_table(subject.session, subject.path).log
    text = plan.comment()
    set_description(log, None if text is None else str(text))
    return nothing(subject.session)


def _set_properties(plan: JavaObject, subject: Subject) -> DataFrame:
    found = jvm_tools().as_java(plan.properties())
    texts = {str(key): str(found.get(key)) for key in found.keySet().toArray()}
    set_properties(open_table(subject.session, subject.path).log, texts)
    return nothing(subject.session)


def _unset_properties(plan: JavaObject, subject: Subject) -> DataFrame:
    gone = tuple(map(str, each(plan.propertyKeys())))
    log = open_table(subject.session, subject.path).log
    set_properties(log, {}, gone, if_exists=bool(plan.ifExists()))
    return nothing(subject.session)


def _add_columns(plan: JavaObject, subject: Subject) -> DataFrame:
    schema = subject.snapshot.schema
    for column in each(plan.columnsToAdd()):
        position, default = column.productElement(5), column.productElement(6)
        if position.isDefined() or default.isDefined():
            raise ConfigError(
                "a new column comes last, and is NULL in older rows: FIRST, AFTER and DEFAULT do not work",
                hint="leave them out; SELECT names the columns in any order",
            )
        parent = _given(column.path())
        path = () if parent is None else tuple(map(str, each(parent.name())))
        comment = _given(column.comment())
        field = _field(str(column.colName()), column.dataType(), bool(column.nullable()), comment)
        schema = _with(schema, path, partial(_appended, field))
    subject.evolve(schema)
    return nothing(subject.session)


def _appended(field: Field, struct: StructType) -> StructType:
    return StructType((*struct.fields, field))


def _alter_columns(plan: JavaObject, subject: Subject) -> DataFrame:
    """Runs ALTER COLUMN: a wider type, a comment, DROP NOT NULL."""
    is_one = str(plan.nodeName()) == "AlterColumn"  # as Spark 3.5 has it
    specs = [(plan, 1)] if is_one else [(spec, 0) for spec in each(plan.specs())]
    schema = subject.snapshot.schema
    for spec, first in specs:
        column, kind, nullable, comment, position = (spec.productElement(first + i) for i in range(5))
        *path, name = map(str, each(column.name()))
        if position.isDefined() or not (
            kind.isDefined() or nullable.isDefined() or comment.isDefined()
        ):
            raise ConfigError(
                f"column {name!r} can get a wider type, a comment, or lose NOT NULL, and nothing else",
                hint="SELECT names the columns in any order; columns have no DEFAULT",
            )
        given = (_given(kind), _given(nullable), _given(comment))
        schema = _with(schema, tuple(path), partial(_changed, name, *given))
    subject.evolve(schema)
    return nothing(subject.session)


def _changed(
    name: str, kind: Any | None, nullable: bool | None, comment: str | None, struct: StructType
) -> StructType:
    fields = []
    for field in struct:
        if field.name.lower() == name.lower():
            if kind is not None:
                field = replace(field, type=_field(field.name, kind, True, None).type)  # noqa: PLW2901
            if nullable is not None:
                field = replace(field, nullable=nullable)  # noqa: PLW2901
            if comment is not None:
                field = replace(field, metadata={**field.metadata, "comment": comment})  # noqa: PLW2901
        fields.append(field)
    if name.lower() not in {field.name.lower() for field in struct}:
        raise UnknownColumnError(
            f"the table has no column {name!r}", hint=f"it has {list(struct.names)}", column=name
        )
    return StructType(tuple(fields))


def _with(
    struct: StructType, path: tuple[str, ...], change: Callable[[StructType], StructType]
) -> StructType:
    """Returns the schema with the struct at this path changed."""
    if not path:
        return change(struct)
    fields = tuple(
        replace(field, type=_with(field.type, path[1:], change))
        if field.name.lower() == path[0].lower() and isinstance(field.type, StructType)
        else field
        for field in struct
    )
    if fields == struct.fields:
        raise UnknownColumnError(
            f"the table has no struct {path[0]!r}", hint=f"it has {list(struct.names)}", column=path[0]
        )
    return StructType(fields)


def _field(name: str, kind: JavaObject, nullable: bool, comment: str | None) -> Field:
    spark = {"name": name, "type": orjson.loads(kind.json()), "nullable": nullable}
    spark["metadata"] = {} if comment is None else {"comment": comment}
    return schema_from_json(orjson.dumps({"type": "struct", "fields": [spark]}).decode()).fields[0]


def _given(option: JavaObject) -> Any | None:
    return option.get() if option.isDefined() else None


# -- the name ------------------------------------------------------------------------------------------


def _drop(plan: JavaObject, subject: Subject) -> DataFrame | None:
    """Drops the name; the catalog deletes the directory of a table for which it chose the place itself."""
    if subject.named is None:
        return None
    subject.named.drop(subject.session, purge=bool(plan.purge()))
    return nothing(subject.session)


def _rename(plan: JavaObject, subject: Subject) -> DataFrame | None:
    if subject.named is None or plan.isView():
        return None
    subject.named.rename(subject.session, tuple(map(str, each(plan.newName()))))
    return nothing(subject.session)


_HANDLERS: Final[Mapping[str, Callable[[JavaObject, Subject], DataFrame | None]]] = {
    "DescribeRelation": _describe,
    "ShowColumns": _show_columns,
    "ShowTableProperties": _show_properties,
    "ShowPartitions": _show_partitions,
    "ShowCreateTable": _show_create,
    "TruncateTable": _truncate,
    "RefreshTable": _nothing,
    "CommentOnTable": _comment_on,
    "SetTableProperties": _set_properties,
    "UnsetTableProperties": _unset_properties,
    "AddColumns": _add_columns,
    "AlterColumn": _alter_columns,
    "AlterColumns": _alter_columns,
    "DropTable": _drop,
    "RenameTable": _rename,
}
"""The answer to each statement; None where it works by name only, and the statement has a path."""
