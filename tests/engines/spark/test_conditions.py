"""Conditions mean to rows here what they mean to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.parquet.read.row_filter import check_evaluable, is_evaluable, truth_of
from indextables.core.bind.bind import bind
from indextables.core.types import schema_from_arrow
from indextables.sql.conditions.parser import parse_predicate
from support.nasty import COLUMNS, nasty_table
from support.times import DATES, TIMES

CASES = Path(__file__).parents[2] / "sql" / "conditions.txt"
CONDITIONS = [
    line for line in CASES.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia"])
def test_every_condition_has_sparks_truth_values(spark: Any, tmp_path: Path, zone: str) -> None:
    """TRUE, FALSE and NULL agree row by row, for nasty values of every type."""
    data = nasty_table()
    path = str(tmp_path / "rows.parquet")
    pq.write_table(data, path)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        wanted = _spark_answers(spark, path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    schema = schema_from_arrow(data.schema)
    wrong = {}
    for condition, answer in zip(CONDITIONS, wanted, strict=True):
        bound = bind(parse_predicate(condition, timezone=zone), schema, timezone=zone)
        check_evaluable(bound)
        ours = truth_of(bound, data).to_pylist()
        if ours != answer:
            wrong[condition] = (ours, answer)
    assert not wrong


def _spark_answers(spark: Any, path: str) -> list[list[bool | None]]:
    frame = spark.read.parquet(path).coalesce(1)
    rows = frame.selectExpr(
        *(f"({condition}) AS c{i}" for i, condition in enumerate(CONDITIONS))
    ).collect()
    return [[row[i] for row in rows] for i in range(len(CONDITIONS))]


def test_spark_casts_the_same_texts_to_the_same_dates(spark: Any) -> None:
    """What we take for a date is that date in Spark, and what we refuse is none."""
    columns = ", ".join(f"unix_date(try_cast('{text}' AS DATE))" for text, _ in DATES)
    assert list(spark.sql(f"SELECT {columns}").first()) == [days for _, days in DATES]


def test_spark_casts_the_same_texts_to_the_same_times(spark: Any) -> None:
    """Where we read a time, it is Spark's; the zone of a text does not move a TIMESTAMP_NTZ."""
    read = [(text, micros) for text, micros, _ in TIMES if micros is not None]
    columns = ", ".join(
        f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01', try_cast('{text}' AS TIMESTAMP_NTZ))"
        for text, _ in read
    )
    assert list(spark.sql(f"SELECT {columns}").first()) == [micros for _, micros in read]


LITERALS = [
    *(
        "5",
        "-5",
        "0",
        "9007199254740993",
        "-9223372036854775808",
        "5.5",
        "5.50",
        "0.3",
        "0.30000000000000000001",
    ),
    *(
        "0.1F",
        "5.5D",
        "9007199254740993D",
        "-0.0D",
        "1e308",
        "double('nan')",
        "double('inf')",
        "NULL",
        "TRUE",
    ),
    *(
        "'5'",
        "'5.5'",
        "' 5 '",
        "'nan'",
        "'true'",
        "'2024-01-01'",
        "'2024-3-31T02:30'",
        "'a'",
        "'\ufffd'",
        "''",
    ),
    *(
        "X'61'",
        "X'FFFF'",
        "3 + 2",
        "10 / 4",
        "DATE '2024-01-31' + INTERVAL 1 MONTH",
        "DATE '1582-10-10'",
    ),
    *(
        "TIMESTAMP '2024-03-31 02:30:00'",
        "TIMESTAMP '2024-01-01 00:00:00Z'",
        "TIMESTAMP_NTZ '2024-03-31 02:30:00'",
    ),
]


@pytest.mark.slow
def test_every_column_with_every_literal_has_sparks_truth_values(spark: Any, tmp_path: Path) -> None:
    """Whatever we take on to evaluate, Spark accepts too, and it means the same."""
    data = nasty_table()
    schema = schema_from_arrow(data.schema)
    pq.write_table(data, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1).cache()
    shapes = [f"{{}} {op} {{}}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")] + [
        "{} NOT IN ({}, 0)"
    ]
    todo = []
    for condition in (
        shape.format(name, value) for name in COLUMNS for value in LITERALS for shape in shapes
    ):
        bound = bind(parse_predicate(condition), schema)
        if is_evaluable(bound) and not condition.startswith(("n ", "s ")):
            todo.append((condition, truth_of(bound, data).to_pylist()))
    wrong = []
    for start in range(0, len(todo), 150):
        part = todo[start : start + 150]
        answers = frame.selectExpr(
            *(f"({condition}) AS c{i}" for i, (condition, _) in enumerate(part))
        ).collect()
        wrong += [c for i, (c, ours) in enumerate(part) if ours != [row[i] for row in answers]]
    assert len(todo) > 1_500
    assert not wrong
