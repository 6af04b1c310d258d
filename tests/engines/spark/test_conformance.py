"""Spark gives the rows every other engine gives, for a part of the conditions of tests/engines."""

from typing import Any

import pytest
from support.conformance import conditions, make_table, plain_rows
from support.sliced_table import make_slices

import indextables as it
from indextables.core.predicate.to_sql import to_sql


def test_spark_gives_the_rows_of_the_arrow_reader(spark: Any, tmp_path: Any) -> None:
    """Nulls, NaN, decimals, times, nested fields, partitions and evolved schemas."""
    it.enable(spark)
    table = make_table(tmp_path / "t")
    frame = spark.read.format("indextables").load(table.uri)
    for condition in conditions(200)[::10]:
        text = to_sql(condition, "spark")
        assert plain_rows(frame.where(text).toArrow()) == plain_rows(
            table.scan(condition).to_arrow()
        ), text


MODES = pytest.mark.parametrize("mode", ["record", "columns"])


def check_slices(spark: Any, path: Any, mode: str, step: int) -> None:
    """Rows that logs replace, delete or complete, under every kind of condition."""
    it.enable(spark)
    table = make_slices(path, mode).table
    frame = spark.read.format("indextables").load(table.uri)
    for condition in conditions(200)[::step]:
        text = to_sql(condition, "spark")
        assert plain_rows(frame.where(text).toArrow()) == plain_rows(
            table.scan(condition).to_arrow()
        ), text


@MODES
def test_spark_merges_slices_as_the_arrow_reader_does(spark: Any, tmp_path: Any, mode: str) -> None:
    """Whole rows, or column by column."""
    check_slices(spark, tmp_path / "t", mode, 40)


@pytest.mark.slow
@MODES
def test_spark_merges_slices_under_all_conditions(spark: Any, tmp_path: Any, mode: str) -> None:
    """The long version."""
    check_slices(spark, tmp_path / "t", mode, 1)


@pytest.mark.slow
def test_spark_agrees_on_all_two_hundred_conditions(spark: Any, tmp_path: Any) -> None:
    """The long version."""
    it.enable(spark)
    table = make_table(tmp_path / "t")
    frame = spark.read.format("indextables").load(table.uri)
    for condition in conditions(200):
        text = to_sql(condition, "spark")
        assert plain_rows(frame.where(text).toArrow()) == plain_rows(
            table.scan(condition).to_arrow()
        ), text
