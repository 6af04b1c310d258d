"""Columns of a DataFrame as its own attributes, so that no name is ambiguous."""

from __future__ import annotations

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame
from pyspark.sql.classic.column import Column as ClassicColumn

from indextables.engines.spark.jvm.gateway import jvm_tools


def column_of(expression: JavaObject) -> Column:
    """Returns a Catalyst expression as a Column; names in it are resolved where the column is used."""
    return ClassicColumn(
        jvm_tools().lookup("org.apache.spark.sql.classic.ExpressionUtils").column(expression)
    )


def attributes_of(frame: DataFrame) -> list[Column]:
    """Returns the columns of a DataFrame in their order, even if several have one name."""
    return [column_of(attribute) for attribute in each(_output(frame))]


def columns_in(frame: DataFrame) -> dict[str, Column]:
    """Returns the columns of a DataFrame by name."""
    return {attribute.name(): column_of(attribute) for attribute in each(_output(frame))}


def _output(frame: DataFrame) -> JavaObject:
    return frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001


def each(items: JavaObject) -> Iterator[JavaObject]:
    """Yields the items of a Scala sequence."""
    return (items.apply(i) for i in range(items.length()))


def quoted(name: str) -> str:
    """Returns a column's name as an expression, whatever dots and backticks it has."""
    return "`" + name.replace("`", "``") + "`"
