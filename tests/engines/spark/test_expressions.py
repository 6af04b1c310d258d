"""Every entry of the function table computes what Spark computes, in each mode and several zones."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from indextables.core.expr.evaluate import rows_of
from indextables.core.expr.functions import FUNCTIONS
from indextables.core.expr.nodes import Call, Expression, Literal, Mode, Ref
from indextables.core.expr.vectors import column_of
from indextables.core.expr.zone_rules import zone_of
from indextables.core.predicate.nodes import RESULT, IsNull, Over
from indextables.core.predicate.to_sql import to_sql
from indextables.core.types import DataType, PrimitiveType, type_name, type_to_arrow
from support.expressions import edges, samples

pytestmark = pytest.mark.spark
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "America/Havana")
SETTINGS = [(zone, mode) for zone in ZONES for mode in (Mode.ANSI, Mode.LEGACY, Mode.TRY)]
_TRY = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
    "cast": "try_cast",
}


def _sql(call: Call, mode: Mode) -> str:
    inner = [_argument(part) for part in call.arguments]
    if call.function == "add_micros":
        micros = call.arguments[1].value
        return f"{inner[0]} + INTERVAL '{micros // 1_000_000}' SECOND"
    if call.function == "add_months_to_time":
        return f"{inner[0]} + INTERVAL '{call.arguments[1].value}' MONTH"
    if call.function == "cast":
        return f"{_TRY['cast'] if mode is Mode.TRY else 'cast'}(x AS {type_name(call.type)})"
    if mode is Mode.TRY:
        return f"{_TRY[call.function]}({', '.join(inner)})"
    if call.function in {"+", "-", "*", "/", "%", "div"}:
        return f"({inner[0]} {call.function} {inner[1]})"
    return f"{call.function}({', '.join(inner)})"


def _argument(part: Expression) -> str:
    if isinstance(part, Ref):
        return "x"
    text = to_sql(Over(Call("f", (part,)), IsNull(RESULT)))[2:-9]
    return f"CAST({text} AS {type_name(part.type)})" if not isinstance(part.value, str) else text


def _rows(call: Call, array: pa.Array) -> list[Any] | None:
    vector = rows_of(call, lambda _: array, len(array))
    if vector is None:
        return None
    found = column_of(vector)
    if vector.type in (
        PrimitiveType("timestamp"),
        PrimitiveType("timestamp_ntz"),
        PrimitiveType("date"),
    ):
        found = found.cast(pa.int32() if vector.type.name == "date" else pa.int64())
    return [
        "error" if bad else value for value, bad in zip(found.to_pylist(), vector.error, strict=True)
    ]


def _spark_rows(spark: SparkSession, sql: str, result: DataType) -> list[Any]:
    shown = sql
    if result == PrimitiveType("date"):
        shown = f"unix_date({sql})"
    elif result == PrimitiveType("timestamp"):
        shown = f"unix_micros({sql})"
    elif result == PrimitiveType("timestamp_ntz"):
        # unix_micros takes it in the session's zone, in which it may not exist
        shown = (
            f"unix_date(CAST({sql} AS DATE)) * 86400000000L + hour({sql}) * 3600000000L + "
            f"minute({sql}) * 60000000L + CAST(extract(SECOND FROM {sql}) * 1000000 AS BIGINT)"
        )
    return [row[0] for row in spark.sql(f"SELECT {shown} AS y FROM edge_values ORDER BY i").collect()]


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return ours == theirs


@pytest.mark.parametrize(("zone", "mode"), SETTINGS, ids=str)
def test_rows_are_those_of_spark(spark: SparkSession, zone: str, mode: Mode, tmp_path: Any) -> None:
    """For values at the edges of every type; where a value raises in Spark it raises here."""
    rng = random.Random(zone)
    wrong = []
    before = {k: spark.conf.get(k) for k in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    tables: dict[DataType, pa.Array] = {}
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        for dtype in {dtype for _, (_, dtype) in samples()}:
            values = edges(dtype, rng)
            target = type_to_arrow(dtype)
            array = (
                pa.array(values, pa.int32()).cast(target)
                if dtype == PrimitiveType("date")
                else pa.array(values, target)
            )
            tables[dtype] = array
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.conf.set("spark.sql.ansi.enabled", str(mode is Mode.ANSI).lower())
        for function, (call, dtype) in samples():
            entry = FUNCTIONS[function]
            if not entry.of_spark or mode not in entry.modes or (zone != "UTC" and not entry.zoned):
                continue
            if mode is Mode.TRY and function not in _TRY:
                continue
            mine = Call(call.function, call.arguments, call.type, mode, zone_of(zone))
            ours = _rows(mine, tables[dtype])
            if ours is None:
                continue
            wrong += _compare(spark, mine, ours, tables[dtype], dtype, tmp_path)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert not wrong, "\n".join(wrong[:60])


def _compare(
    spark: SparkSession, call: Call, ours: list[Any], array: pa.Array, dtype: DataType, folder: Any
) -> list[str]:
    sql = _sql(call, call.mode)
    fine = [i for i, value in enumerate(ours) if value != "error"]
    _view(spark, array, dtype, fine, folder)
    try:
        theirs = _spark_rows(spark, sql, call.type)
    except Exception as error:
        return [
            f"{sql} of {type_name(dtype)} in {call.mode} {call.zone}: Spark raises {str(error)[:150]}"
        ]
    found = []
    for at, their in zip(fine, theirs, strict=True):
        if not _same(ours[at], their):
            found.append(
                f"{sql} of {_shown(array, at)} ({type_name(dtype)}) {call.mode} {call.zone}: {ours[at]!r} not {their!r}"
            )
    return found[:3]


def _shown(array: pa.Array, at: int) -> str:
    kind = pa.int32() if pa.types.is_date(array.type) else pa.int64()
    return str(array.cast(kind)[at] if pa.types.is_temporal(array.type) else array[at])


def _view(spark: SparkSession, array: pa.Array, dtype: DataType, rows: list[int], folder: Any) -> None:
    import pyarrow.parquet as pq

    part = array.take(pa.array(rows, pa.int64()))
    path = folder / f"{abs(hash((str(dtype), tuple(rows))))}.parquet"
    if not path.exists():
        pq.write_table(pa.table({"i": list(range(len(rows))), "x": part}), path)
    spark.read.parquet(str(path)).createOrReplaceTempView("edge_values")
