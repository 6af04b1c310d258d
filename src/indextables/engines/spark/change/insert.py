"""INSERT and CREATE TABLE: rows by position or by name, fixed partitions, what an OVERWRITE replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.config import Config
from indextables.core.types import StructType, resolve, schema_from_json
from indextables.engines.spark.change.replace_where import condition_of_expression
from indextables.engines.spark.change.writer import SaveMode, Write, execute, with_key
from indextables.engines.spark.place.tables_and_options import WriteOptions, open_table, settings_of
from indextables.engines.spark.statement.clauses import FixedValue, fixed_partition
from indextables.engines.spark.statement.names import register
from indextables.engines.spark.statement.statements import Create, Insert
from indextables.engines.spark.write.fit import spark_type
from indextables.errors import ConfigError, SchemaMismatchError, TableExistsError
from indextables.log.state.snapshot import Snapshot
from indextables.ops.create import create, new_metadata
from indextables.ops.delete_overwrite import Condition, SamePartitions
from indextables.ops.shared.commit import partition_condition


def insert(session: SparkSession, statement: Insert) -> None:
    """Carries out an INSERT INTO, INSERT OVERWRITE or INSERT … REPLACE WHERE."""
    options = WriteOptions.of(statement.options)
    snapshot = open_table(session, statement.path).log.snapshot()
    fixed = fixed_partition(session, statement, snapshot)
    rows = _named(statement, snapshot, fixed)
    replaces: Condition | SamePartitions | None = None
    if statement.replace_where is not None:
        replaces = condition_of_expression(session, statement.path, statement.replace_where)
    elif statement.overwrite and fixed:
        replaces = _partitions(options.is_dynamic(session), fixed, snapshot)
    is_overwrite = statement.overwrite or statement.replace_where is not None
    execute(
        Write(
            rows,
            statement.path,
            "overwrite" if is_overwrite else "append",
            options,
            if_missing="error",
            assign=True,
            replaces=replaces,
        )
    )


def insert_frame(write: Write) -> None:
    """Runs `df.write.insertInto`: columns go by position, whatever they are called."""
    schema = open_table(write.session, write.path).log.snapshot().schema
    rows = _by_position(write.frame, schema.names)
    execute(replace(write, frame=rows, if_missing="error", assign=True))


def _named(statement: Insert, snapshot: Snapshot, fixed: Mapping[str, FixedValue]) -> DataFrame:
    """Returns the rows with every column of the table, under its name."""
    schema = snapshot.schema
    rows = statement.rows
    if not statement.by_name:
        named = [resolve(schema, (name,))[0][0] for name in statement.columns]
        rows = _by_position(rows, named or [n for n in schema.names if n not in fixed])
    there = {name.lower() for name in rows.columns}
    for field in schema:
        if field.name in fixed:
            rows = rows.withColumn(field.name, fixed[field.name].column)
        elif field.name.lower() not in there:
            rows = rows.withColumn(field.name, F.lit(None).cast(spark_type(field.type)))
    return rows


def _by_position(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    if len(rows.columns) != len(names):
        raise SchemaMismatchError(
            f"the rows have {len(rows.columns)} columns, and {len(names)} are to be filled: {', '.join(names)}",
            hint="give a value for each column, or name the columns: INSERT INTO … (a, b) …",
        )
    return rows.toDF(*names)


def _partitions(
    is_dynamic: bool, fixed: Mapping[str, FixedValue], snapshot: Snapshot
) -> Condition | SamePartitions:
    """Returns what an OVERWRITE of these partitions replaces.

    Those it leaves open by rows where it is dynamic.
    """
    is_open = len(fixed) < len(snapshot.partition_columns)
    if is_open and is_dynamic:
        return SamePartitions()
    metadata = replace(snapshot.metadata, partition_columns=tuple(fixed))
    return Condition(partition_condition([{name: each.text for name, each in fixed.items()}], metadata))


def create_table(session: SparkSession, statement: Create) -> None:
    """Carries out CREATE TABLE, CREATE TABLE … AS SELECT, and their OR REPLACE forms; then names the table."""
    _make(session, statement)
    if statement.name is not None:
        register(session, statement.name)


def _make(session: SparkSession, statement: Create) -> None:
    if _is_there(session, statement):
        return
    if not statement.is_filled:
        _refuse_for_rows(statement.options)
    options = WriteOptions.of(statement.options)
    if statement.is_filled or statement.replace:
        options = replace(options, overwrite_schema=statement.replace)
        mode: SaveMode = "ignore" if statement.if_not_exists else "error"
        if statement.replace:
            mode = "overwrite"
        execute(
            Write(
                statement.rows,
                statement.path,
                mode,
                options,
                statement.partition_by,
                statement.properties,
                description=statement.description,
            )
        )
        return
    log = open_table(session, statement.path).log
    schema: StructType = schema_from_json(statement.rows.schema.json())
    metadata = new_metadata(
        with_key(schema, options.record_key),
        partition_by=statement.partition_by,
        record_key=options.record_key,
        merge_mode=options.merge_mode,
        properties=statement.properties,
        description=statement.description,
    )
    try:
        create(log.configured(Config.of(write=settings_of(session))), metadata)
    except TableExistsError:
        if not statement.if_not_exists:
            raise


def _is_there(session: SparkSession, statement: Create) -> bool:
    """Returns whether CREATE TABLE … LOCATION only gives a name to a table; SchemaMismatchError if it is another one."""
    is_bare = not statement.is_filled and not statement.replace
    if statement.name is None or statement.name.location is None or not is_bare:
        return False
    log = open_table(session, statement.path).log
    if not log.exists():
        return False
    snapshot = log.snapshot()
    wanted = schema_from_json(statement.rows.schema.json())
    if wanted.fields and [(f.name.lower(), f.type) for f in wanted] != [
        (f.name.lower(), f.type) for f in snapshot.schema
    ]:
        raise SchemaMismatchError(
            f"the table at {statement.path} has other columns than the statement",
            hint="leave the columns out: CREATE TABLE … USING indextables LOCATION …",
        )
    if statement.partition_by and statement.partition_by != snapshot.partition_columns:
        raise SchemaMismatchError(
            f"the table at {statement.path} is partitioned by {list(snapshot.partition_columns)}",
            hint="leave PARTITIONED BY out: the table knows its partitions",
        )
    return True


def _refuse_for_rows(options: Mapping[str, str]) -> None:
    """Refuses options that only a write of rows can follow: a table without rows keeps its key alone."""
    for name in options:
        if name.lower() not in {"recordkey", "mergemode", "path"}:
            raise ConfigError(
                f"OPTIONS ({name} …) of CREATE TABLE would be forgotten: it is an option of a write",
                hint="give it with each write, or as a table property if it begins with spark.indextables.",
                key=name,
            )
