"""`df.write` and `df.writeTo`: Spark collects the chain of calls, and this library carries out the last one.

Only terminal methods are replaced, and each acts on tables of this library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

from indextables.engines.spark.change.change import change
from indextables.engines.spark.change.insert import create_table, insert, insert_frame
from indextables.engines.spark.change.replace_where import condition_of_column
from indextables.engines.spark.change.writer import SaveMode, Write, execute
from indextables.engines.spark.jvm.gateway import jvm_tools, names_in, options_of
from indextables.engines.spark.place.tables_and_options import WriteOptions, is_ours
from indextables.engines.spark.statement.clauses import partition_columns
from indextables.engines.spark.statement.names import (
    NewName,
    name_path,
    names_of,
    register,
    vacant_name,
)
from indextables.engines.spark.statement.plan_rewrite import relation_path
from indextables.engines.spark.statement.statements import HANDLERS, Change, Create, Insert
from indextables.engines.spark.streaming import install as install_streaming
from indextables.engines.spark.versions import arguments_of, collect, private, replace_method, seam
from indextables.errors import ConfigError
from indextables.ops.delete_overwrite import SamePartitions

_UPSERT: Final = "upsert"
_MODES: Final[Mapping[str, SaveMode]] = {
    "append": "append",
    "overwrite": "overwrite",
    "errorifexists": "error",
    "ignore": "ignore",
}


def install() -> None:
    """Makes the writers of every session in this process take tables; doing it again changes nothing."""
    replace_method(DataFrameWriter, "mode", _mode)
    replace_method(DataFrameWriter, "save", _save)
    replace_method(DataFrameWriter, "saveAsTable", _save_as_table)
    replace_method(DataFrameWriter, "insertInto", _insert_into)
    for name, make in _V2.items():
        replace_method(DataFrameWriterV2, name, make)
    if seam.merge_writer is not None:
        replace_method(seam.merge_writer, "merge", _merge)
    HANDLERS[Insert] = insert
    HANDLERS[Create] = create_table
    HANDLERS[Change] = change
    install_streaming()


def _mode(original: Callable[..., DataFrameWriter]) -> Callable[..., DataFrameWriter]:
    """Returns a `mode` that remembers "upsert", a mode that Spark does not know."""

    def mode(self: Any, saveMode: str | None) -> Any:  # noqa: N803
        if isinstance(saveMode, str):
            self._is_upsert = saveMode.lower() == _UPSERT
            if self._is_upsert:
                return self
        return original(self, saveMode)

    return mode


def _save(original: Callable[..., None]) -> Callable[..., None]:
    def save(self: DataFrameWriter, *args: object, **kwargs: object) -> None:
        given = arguments_of(original, self, *args, **kwargs)
        collect(self, given)
        if is_ours(seam.state(self._jwrite).source()):
            execute(_write(self, given.get("path")))
        else:
            _tell_spark(self)
            original(self, given.get("path"))

    return save


def _tell_spark(writer: DataFrameWriter) -> None:
    """Passes on the mode that only tables of this library have, so that Spark reports it."""
    if getattr(writer, "_is_upsert", False):
        writer._jwrite.mode(_UPSERT)  # noqa: SLF001


def _save_as_table(original: Callable[..., None]) -> Callable[..., None]:
    def save_as_table(self: DataFrameWriter, *args: object, **kwargs: object) -> None:
        given = arguments_of(original, self, *args, **kwargs)
        collect(self, given)
        path = _path_in(self._spark, given["name"])
        own = is_ours(seam.state(self._jwrite).source())
        if path is not None:
            execute(_write(self, path))
        elif own:
            name = _new_name(self._spark, given["name"], _option(self, "path"))
            execute(_write(self, name.path(self._spark)))
            register(self._spark, name)
        else:
            _tell_spark(self)
            original(self, given["name"])

    return save_as_table


def _insert_into(original: Callable[..., None]) -> Callable[..., None]:
    def insert_into(self: DataFrameWriter, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
        path = _path_in(self._spark, tableName)
        if path is None:
            original(self, tableName, overwrite)
            return
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        write = _write(self, path)
        if write.partition_by:
            raise ConfigError(
                "insertInto() takes no partitionBy()", hint="the table knows its partitions already"
            )
        insert_frame(replace(write, mode="overwrite" if write.mode == "overwrite" else "append"))

    return insert_into


def _write(writer: DataFrameWriter, path: str | None) -> Write:
    """Returns the write that the builder of `df.write` has collected."""
    java = seam.state(writer._jwrite)  # noqa: SLF001
    for given, method in (
        (java.bucketColumnNames().isDefined(), "bucketBy"),
        (java.sortColumnNames().isDefined(), "sortBy"),
        (seam.clusters(java), "clusterBy"),
    ):
        if given:
            raise ConfigError(
                f"{method}() is not possible on a table of this format",
                hint="sort the DataFrame itself, or cluster the table afterwards: Table.optimize(z_order_by=[…])",
            )
    options = WriteOptions.of(options_of(java))
    if seam.evolves_schema(writer._jwrite):  # noqa: SLF001
        options = replace(options, merge_schema=True)
    return Write(
        frame=writer._df,  # noqa: SLF001
        path=_one_path(path, options.path),
        mode=_save_mode(writer, java, options),
        options=options,
        partition_by=names_in(java.partitioningColumns()),
    )


def _save_mode(writer: DataFrameWriter, java: JavaObject, options: WriteOptions) -> SaveMode:
    found = _MODES[java.curmode().name().lower()]
    is_upsert = getattr(writer, "_is_upsert", False) or (options.upsert and found == "append")
    return "upsert" if is_upsert else found


def _one_path(argument: str | None, option: str | None) -> str:
    if argument is not None and option is not None and argument != option:
        raise ConfigError(
            f"two paths are given: {argument!r}, and {option!r} as an option", hint="give one of them"
        )
    path = argument or option
    if not path:
        raise ConfigError("no path is given for the table", hint="pass one: save('/path/to/table')")
    return path


def _option(writer: DataFrameWriter, name: str) -> str | None:
    given = options_of(writer._jwrite)  # noqa: SLF001
    return next((value for key, value in given.items() if key.lower() == name), None)


def _path_in(session: SparkSession, name: str) -> str | None:
    """Returns where the table of this name is; None for a name of another format, or of nothing."""
    return name_path(session, _parsed(session, name))


def _new_name(session: SparkSession, name: str, location: str | None) -> NewName:
    return vacant_name(session, names_of(_parsed(session, name)), location)


def _parsed(session: SparkSession, name: str) -> JavaObject:
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    return parser.parseMultipartIdentifier(name)


def _merge(original: Callable[..., None]) -> Callable[..., None]:
    """Returns `df.mergeInto(…).merge()`, which has the same plan as SQL's MERGE."""

    def merge(self: Any) -> None:
        plan = seam.merge_command(jvm_tools(), self._jwriter)
        path = relation_path(self._spark, plan.targetTable())
        if path is None:
            original(self)
        else:
            change(self._spark, Change(path, plan))

    return merge


# -- df.writeTo --------------------------------------------------------------------------------------


def _v2(act: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a terminal method of DataFrameWriterV2, which does `act` to a table of this library."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def method(self: DataFrameWriterV2, *args: object) -> None:
            parts = private(self._jwriter, "tableName")
            path = name_path(self._spark, parts)
            is_new = act in {_create, _replace, _create_or_replace}
            provider = private(self._jwriter, "provider")
            if path is not None:
                act(_write_to(self._df, path, self._jwriter, is_new=is_new), *args)
            elif is_new and provider.isDefined() and is_ours(str(provider.get())):
                given = {k.lower(): v for k, v in _texts(private(self._jwriter, "options")).items()}
                name = vacant_name(self._spark, names_of(parts), given.get("path"))
                path = name.path(self._spark)
                act(_write_to(self._df, path, self._jwriter, is_new=True), *args)
                register(self._spark, name)
            else:
                original(self, *args)

        return method

    return make


def _write_to(frame: DataFrame, path: str, writer: JavaObject, *, is_new: bool) -> Write:
    options = WriteOptions.of(_texts(private(writer, "options")))
    properties = _texts(private(writer, "properties"))
    partitioning = private(writer, "partitioning")
    by = tuple(partition_columns(partitioning.get())) if partitioning.isDefined() else ()
    if not is_new:
        _refuse_for_new_tables(partitionedBy=bool(by), tableProperty=bool(properties))
    if is_new and seam.clusters_table(writer):
        raise ConfigError(
            "clusterBy() is not possible on a table of this format",
            hint="cluster the table afterwards: Table.optimize(z_order_by=[…])",
        )
    return Write(
        frame,
        path,
        "append",
        options,
        by,
        properties,
        if_missing="error",
        assign=not is_new,
    )


def _texts(values: JavaObject) -> dict[str, str]:
    found = jvm_tools().as_java(values)
    return {str(key): str(found.get(key)) for key in found.keySet().toArray()}


def _refuse_for_new_tables(**given: bool) -> None:
    """Raises ConfigError for clauses about a new table, which a write into an existing one would ignore."""
    for method in (method for method, is_given in given.items() if is_given):
        raise ConfigError(
            f"{method}() is for a new table, but this write goes into an existing one",
            hint=f"leave it out; create() and createOrReplace() take {method}()",
        )


def _append(write: Write) -> None:
    execute(write)


def _overwrite(write: Write, condition: Column) -> None:
    text = str(condition._jc.toString())  # type: ignore[operator]  # noqa: SLF001
    where = condition_of_column(write.session, write.path, condition, text)
    execute(replace(write, mode="overwrite", replaces=where))


def _overwrite_partitions(write: Write) -> None:
    execute(replace(write, mode="overwrite", replaces=SamePartitions()))


def _create(write: Write) -> None:
    execute(replace(write, mode="error", if_missing="create"))


def _replace(write: Write) -> None:
    execute(_replacing(write))


def _create_or_replace(write: Write) -> None:
    execute(replace(_replacing(write), if_missing="create"))


def _replacing(write: Write) -> Write:
    return replace(write, mode="overwrite", options=replace(write.options, overwrite_schema=True))


_V2: Final = {
    "append": _v2(_append),
    "overwrite": _v2(_overwrite),
    "overwritePartitions": _v2(_overwrite_partitions),
    "create": _v2(_create),
    "replace": _v2(_replace),
    "createOrReplace": _v2(_create_or_replace),
}
