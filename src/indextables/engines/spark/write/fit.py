"""A DataFrame made to fit a table: columns by name, types widened, or one error before any job runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.to_sql import to_spark_sql, to_sql
from indextables.core.prune.partitions import NULL_DIRECTORY
from indextables.core.types import (
    DataType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    can_widen,
    has_text,
    schema_from_json,
    schema_to_arrow,
    schema_to_json,
)
from indextables.engines.spark.jvm.gateway import jvm_tools, quoted
from indextables.engines.spark.versions import seam
from indextables.errors import IndexTablesError, PredicateError, SchemaMismatchError
from indextables.parquet.write.conform import check_fits
from indextables.parquet.write.write import WriteTarget

# Parts inside a column that a table promises to be there: where the data lacks them.
#
# What Spark reads it takes for nullable at every level, also from a table that promises more. So the
# types alone do not tell whether rows fit, and each row is looked at when it is written.


def forbidden_nulls(values: Column, source: DataType, target: Field) -> Iterator[tuple[str, Column]]:
    """Returns each part that may be NULL in the data and must not be in the table, and the condition that it is.

    What lies under a NULL parent does not count; the condition is then FALSE or NULL.
    """
    return _inside(values, source, target.type, target.name)


def _inside(
    values: Column, source: DataType, target: DataType, path: str
) -> Iterator[tuple[str, Column]]:
    match source, target:
        case StructType(), StructType():
            theirs = {f.name.lower(): f for f in source}
            for wanted in target:
                given = theirs.get(wanted.name.lower())
                if given is not None:
                    part = values.getField(given.name)
                    for name, is_null in _part(part, given, wanted, f"{path}.{wanted.name}"):
                        yield name, values.isNotNull() & is_null
        case ListType(), ListType():
            given = Field("element", source.element, source.contains_null)
            wanted = Field("element", target.element, target.contains_null)
            yield from _any_of(values, given, wanted, f"{path}.element")
        case MapType(), MapType():
            given = Field("key", source.key, nullable=False)
            wanted = Field("key", target.key, nullable=False)
            yield from _any_of(F.map_keys(values), given, wanted, f"{path}.key")
            given = Field("value", source.value, source.value_contains_null)
            wanted = Field("value", target.value, target.value_contains_null)
            yield from _any_of(F.map_values(values), given, wanted, f"{path}.value")


def _part(values: Column, given: Field, wanted: Field, path: str) -> Iterator[tuple[str, Column]]:
    if given.nullable and not wanted.nullable:
        yield path, values.isNull()
    yield from _inside(values, given.type, wanted.type, path)


def _any_of(items: Column, given: Field, wanted: Field, path: str) -> Iterator[tuple[str, Column]]:
    """Yields which promises some item of an array breaks, by their paths."""
    names = [name for name, _ in _part(F.lit(None), given, wanted, path)]
    for at, name in enumerate(names):
        yield name, _has(items, given, wanted, at)


def _has(items: Column, given: Field, wanted: Field, at: int) -> Column:
    return F.exists(items, lambda item: list(_part(item, given, wanted, ""))[at][1])


def bad_text(values: Column, kind: DataType) -> Column:
    """Returns the condition that some text in the values is not UTF-8.

    Spark keeps any bytes in a text, and other engines refuse a file that has them. A key that has them would
    arrive in this process as another one.
    """
    match kind:
        case StructType():
            parts = [(values.getField(field.name), field.type) for field in kind]
        case ListType(element=element):
            return F.exists(values, lambda item: bad_text(item, element))
        case MapType(key=key, value=value):
            keys, items = ListType(key), ListType(value)
            parts = [(F.map_keys(values), keys), (F.map_values(values), items)]
        case _:
            return ~seam.is_utf8(values)
    return reduce(Column.__or__, (bad_text(*each) for each in parts if has_text(each[1])))


# Promises about rows that only the job itself can check: the first row that breaks one stops it.
#
# A check is part of a column that is written, so Spark can neither leave it out nor move it in front of a
# join or filter that would have removed the row.

_MARK: Final = re.compile(
    r"indextables-row<(null|text|value|partition|outside)>(.*?)<indextables-row", re.DOTALL
)
# Control characters that Spark leaves in a directory's name and no key of a table may have.
_UNSAFE: Final = "[\x00\x80-\x9f]"


def not_null(values: Column, column: str) -> Column:
    """Returns the values, none of which is NULL."""
    return F.when(values.isNotNull(), values).otherwise(_stop("null", column))


def without(values: Column, forbidden: Iterable[tuple[str, Column]]) -> Column:
    """Returns the values, of which none has a NULL in one of these parts (a name, and where it is NULL)."""
    for part, is_null in forbidden:
        values = F.when(F.coalesce(is_null, F.lit(False)), _stop("null", part)).otherwise(values)
    return values


def fitting(values: Column, cast: Column, column: str) -> Column:
    """Returns the cast values, none of which the cast lost."""
    return F.when(values.isNull() | cast.isNotNull(), cast).otherwise(_stop("value", column))


def nameable(text: Column, column: str) -> Column:
    """Returns the texts of a partition column, and stops the job at one that a directory's name does not give back."""
    is_safe = ~(text == F.lit(NULL_DIRECTORY)) & ~text.rlike(_UNSAFE)
    return F.when(text.isNull() | is_safe, text).otherwise(_stop("partition", column))


def inside(values: Column, condition: Predicate) -> Column:
    """Returns the values of rows for which the bound condition is TRUE, and there are no others."""
    is_inside = F.expr(to_spark_sql(condition)).cast("boolean")  # a bare NULL has no type yet
    return F.when(is_inside, values).otherwise(_stop("outside", to_sql(condition)))


def _stop(kind: str, about: str) -> Column:
    return F.raise_error(F.lit(f"indextables-row<{kind}>{about}<indextables-row"))


@contextmanager
def promises_in_words() -> Iterator[None]:
    """Raises what stopped a job because of a row as the error that it is, without Spark around it."""
    try:
        yield
    except BaseException as error:
        if (promise := broken_promise(error)) is not None:
            raise promise from None
        raise


def broken_promise(error: BaseException) -> IndexTablesError | None:
    """Returns the check that stopped a job, in words; None if something else did."""
    found = _MARK.search(str(error))
    if found is None:
        return None
    kind, about = found.groups()
    match kind:
        case "null":
            return SchemaMismatchError(
                f"column {about!r} contains NULL, and the table says it never does",
                hint="fill or filter these rows before writing; nothing was committed",
                column=about,
            )
        case "text":
            return SchemaMismatchError(
                f"column {about!r} has text that is not UTF-8",
                hint="decode it, or keep it in a column of binary data; nothing was committed",
                column=about,
            )
        case "value":
            return SchemaMismatchError(
                f"column {about!r} has a value that does not fit the table's type",
                hint="round or cast the column before writing; nothing was committed",
                column=about,
            )
        case "partition":
            return SchemaMismatchError(
                f"partition column {about!r} has a value that cannot be the name of a directory",
                hint=f"replace control characters and {NULL_DIRECTORY!r}; nothing was committed",
                column=about,
            )
        case _:
            return PredicateError(
                f"a row of the data does not satisfy the condition of the overwrite: {about}",
                hint="rows outside the replaced part belong into an append; nothing was committed",
                condition=about,
            )


_HINT: Final = (
    "cast, add or drop these columns; option('mergeSchema', 'true') adds new columns to the table and "
    "fills the ones the data leaves out with NULL"
)


def frame_schema(frame: DataFrame) -> StructType:
    """Returns the schema a table of this data would have; UnsupportedTypeError names a type no table holds.

    Every column may be NULL, as in every file Spark writes: that a column of a query cannot be NULL
    says nothing about the next one.
    """
    return as_nullable(schema_from_json(frame.schema.json()))


def as_nullable(schema: StructType) -> StructType:
    """Returns the same columns, each of which may be NULL at every level."""
    return StructType(tuple(replace(f, type=_nullable(f.type), nullable=True) for f in schema))


def _nullable(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return as_nullable(kind)
        case ListType(element=element):
            return ListType(_nullable(element))
        case MapType(key=key, value=value):
            return MapType(_nullable(key), _nullable(value))
        case _:
            return kind


def fit(
    frame: DataFrame, target: StructType, *, merge: bool = False, assign: bool = False
) -> DataFrame:
    """Returns the same rows with the table's columns, order, spelling and types; nothing runs yet.

    Values may only be widened. With `assign` they are converted as SQL's INSERT converts them, and a
    value that does not fit its column stops the job. With `merge` a nullable column may be left out.
    """
    source = _source_fields(frame)
    if assign:
        frame, source = _assigned(frame, source, target)
    _check(source, target, merge=merge)
    by_name = {field.name.lower(): field for field in source}
    return frame.select([_column(by_name.get(field.name.lower()), field) for field in target])


def fit_within(
    frame: DataFrame,
    target: WriteTarget,
    within: Predicate | None,
    *,
    merge: bool = False,
    assign: bool = False,
) -> DataFrame:
    """Returns the same rows as `fit` does; one that the condition `within` is not TRUE for stops the job."""
    fitted = fit(frame, target.schema, merge=merge, assign=assign)
    if within is None:
        return fitted
    name = target.file_schema.names[0]
    values = inside(F.col(quoted(name)), within)
    return _as_stored(fitted, target).withColumn(name, values)


def _as_stored(frame: DataFrame, target: WriteTarget) -> DataFrame:
    """Returns the rows as they are read again: the empty text of a partition column is NULL in a path."""
    for column in target.schema:
        if column.name in target.partition_columns and column.type == PrimitiveType("string"):
            values = F.nullif(F.col(quoted(column.name)), F.lit(""))
            frame = frame.withColumn(column.name, values)
    return frame


def fit_value(values: Column, given: T.StructField, target: Field) -> Column:
    """Returns the value of an assignment as the column holds it, converted as SQL's INSERT converts it.

    SchemaMismatchError if the types exclude each other; a value that does not fit stops the job.
    """
    source = _source_field(T.StructField(target.name, given.dataType, given.nullable))
    if isinstance(source, Field) and _can_assign(source.type, target.type):
        values = fitting(values, seam.try_cast(values, spark_type(target.type)), target.name)
        source = replace(source, type=target.type)
    try:
        _check([source], StructType((target,)), merge=False)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(
            error.message, hint="cast the value that is assigned", **error.facts
        ) from None
    return _column(source, target, values)


def _source_fields(frame: DataFrame) -> list[Field | pa.Field]:
    return [_source_field(field) for field in frame.schema.fields]


def _source_field(field: T.StructField) -> Field | pa.Field:
    """Returns a column of a frame; one that is only NULL has no type yet."""
    if isinstance(field.dataType, T.NullType):
        return pa.field(field.name, pa.null())
    return schema_from_json(T.StructType([field]).json()).fields[0]


def _check(source: list[Any], target: StructType, *, merge: bool) -> None:
    arrow = pa.schema(
        [f if isinstance(f, pa.Field) else schema_to_arrow(StructType((f,))).field(0) for f in source]
    )
    try:
        check_fits(arrow, target, merge=merge)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(error.message, hint=_HINT, **error.facts) from None


def _column(source: Field | pa.Field | None, target: Field, given: Column | None = None) -> Column:
    """Returns the column of that name (or the given values) as the target has it."""
    if source is None or isinstance(source, pa.Field):
        values = F.lit(None).cast(spark_type(target.type))
        may_be_null = True
    else:
        values = F.col(quoted(source.name)) if given is None else given
        given_values = values
        forbidden = forbidden_nulls(values, source.type, target)
        values = without(_aligned(values, source.type, target.type), forbidden)
        if has_text(source.type):
            is_bad = F.coalesce(bad_text(given_values, source.type), F.lit(False))
            values = F.when(is_bad, _stop("text", target.name)).otherwise(values)
        if source.metadata and not target.metadata and has_text(source.type):
            # a collation of the data would compare keys and conditions in its own way
            values = values.cast(spark_type(_nullable(target.type)))
        may_be_null = source.nullable
    if may_be_null and not target.nullable:
        values = not_null(values, target.name)
    return values.alias(target.name)


def _aligned(values: Column, source: DataType, target: DataType) -> Column:
    """Returns the values as the target type; fields of structs are matched by name, at any depth."""
    if _nullable(source) == _nullable(target):
        return values
    match source, target:
        case StructType(), StructType():
            theirs = {f.name.lower(): f for f in source}
            fields = [_field(values, theirs.get(f.name.lower()), f) for f in target]
            return F.when(values.isNotNull(), F.struct(*fields))
        case ListType(), ListType():
            return _each(values, source.element, target.element)
        case MapType(), MapType():
            keys = _each(F.map_keys(values), source.key, target.key)
            items = _each(F.map_values(values), source.value, target.value)
            return F.map_from_arrays(keys, items)
        case _:
            return values.cast(spark_type(target))


def _each(values: Column, source: DataType, target: DataType) -> Column:
    return F.transform(values, lambda value: _aligned(value, source, target))


def _field(struct: Column, source: Field | None, target: Field) -> Column:
    if source is None:
        return F.lit(None).cast(spark_type(target.type)).alias(target.name)
    return _aligned(struct.getField(source.name), source.type, target.type).alias(target.name)


def _assigned(
    frame: DataFrame, source: list[Any], target: StructType
) -> tuple[DataFrame, list[Field | pa.Field]]:
    """Returns columns converted as an INSERT converts them.

    What INSERT would refuse is left as it is.
    """
    wanted = {f.name.lower(): f for f in target}
    columns, fields = [], []
    for field in source:
        name = F.col(quoted(field.name))
        into = wanted.get(field.name.lower())
        if isinstance(field, pa.Field) or into is None or not _can_assign(field.type, into.type):
            columns.append(name)
            fields.append(field)
            continue
        cast = seam.try_cast(name, spark_type(into.type))
        columns.append(fitting(name, cast, into.name).alias(field.name))
        fields.append(replace(field, type=into.type))
    return frame.select(columns), fields


def _can_assign(source: DataType, target: DataType) -> bool:
    if can_widen(source, target) or isinstance(source, StructType | ListType | MapType):
        return False  # needs no conversion, or is matched field by field
    tools = jvm_tools()
    java = [tools.data_type(spark_type(kind).json()) for kind in (source, target)]
    cast = tools.lookup("org.apache.spark.sql.catalyst.expressions.Cast")
    return bool(cast.canANSIStoreAssign(*java))


def spark_type(kind: DataType) -> T.DataType:
    """Returns the type as PySpark has it."""
    text = schema_to_json(StructType((Field("_", kind),)))
    return T.StructType.fromJson(json.loads(text)).fields[0].dataType
