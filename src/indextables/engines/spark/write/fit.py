"""A DataFrame made to fit a table: columns by name, types widened, or one error before any job runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from indextables.core.types import (
    DataType,
    Field,
    ListType,
    MapType,
    StructType,
    can_widen,
    schema_from_json,
    schema_to_arrow,
    schema_to_json,
)
from indextables.engines.spark.jvm.attributes import quoted
from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.write.nested_nulls import forbidden_nulls
from indextables.engines.spark.write.row_checks import fitting, not_null, without
from indextables.errors import SchemaMismatchError
from indextables.parquet.write.conform import check_fits

_HINT: Final = (
    "cast, add or drop these columns; option('mergeSchema', 'true') adds new columns to the table and "
    "fills the ones the data leaves out with NULL"
)


def frame_schema(frame: DataFrame) -> StructType:
    """The schema a table of this data would have; UnsupportedTypeError names a type no table holds.

    Every column may be NULL, as in every file Spark writes: that a column of a query cannot be NULL
    says nothing about the next one.
    """
    return as_nullable(schema_from_json(frame.schema.json()))


def as_nullable(schema: StructType) -> StructType:
    """The same columns, each of which may be NULL at every level."""
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
    """The same rows with the table's columns, order, spelling and types; nothing runs yet.

    Values may only be widened. With `assign` they are converted as SQL's INSERT converts them, and a
    value that does not fit its column stops the job. With `merge` a nullable column may be left out.
    """
    source = _source_fields(frame)
    if assign:
        frame, source = _assigned(frame, source, target)
    _check(source, target, merge=merge)
    by_name = {field.name.lower(): field for field in source}
    return frame.select([_column(by_name.get(field.name.lower()), field) for field in target])


def fit_value(values: Column, given: T.StructField, target: Field) -> Column:
    """The value of an assignment as the column holds it, converted as SQL's INSERT converts it.

    SchemaMismatchError if the types exclude each other; a value that does not fit stops the job.
    """
    source = _source_field(T.StructField(target.name, given.dataType, given.nullable))
    if isinstance(source, Field) and _can_assign(source.type, target.type):
        values = fitting(values, values.try_cast(spark_type(target.type)), target.name)
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
    """A column of a frame; one that is only NULL has no type yet."""
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
    """The column of that name (or the given values) as the target has it."""
    if source is None or isinstance(source, pa.Field):
        values = F.lit(None).cast(spark_type(target.type))
        may_be_null = True
    else:
        values = F.col(quoted(source.name)) if given is None else given
        forbidden = forbidden_nulls(values, source.type, target)
        values = without(_aligned(values, source.type, target.type), forbidden)
        may_be_null = source.nullable
    if may_be_null and not target.nullable:
        values = not_null(values, target.name)
    return values.alias(target.name)


def _aligned(values: Column, source: DataType, target: DataType) -> Column:
    """The values as the target type; fields of structs are matched by name, at any depth."""
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
    """Columns converted as an INSERT converts them; what INSERT would refuse is left as it is."""
    wanted = {f.name.lower(): f for f in target}
    columns, fields = [], []
    for field in source:
        name = F.col(quoted(field.name))
        into = wanted.get(field.name.lower())
        if isinstance(field, pa.Field) or into is None or not _can_assign(field.type, into.type):
            columns.append(name)
            fields.append(field)
            continue
        cast = name.try_cast(spark_type(into.type))
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
    """The type as PySpark has it."""
    text = schema_to_json(StructType((Field("_", kind),)))
    return T.StructType.fromJson(json.loads(text)).fields[0].dataType
