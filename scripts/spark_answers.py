"""Writes what Spark answers for the samples of every function of the table, at the edges of its argument's type.

    python scripts/spark_answers.py            two minutes; writes tests/core/expr/answers/<version>.parquet
    python scripts/spark_answers.py sqrt abs   asks only for these functions; the answers of others stay

The newest version of Spark stands there whole. For an older one that is installed instead, only what differs from
the newest is written. `tests/core/expr/test_spark_answers.py` holds the rows of each function against it without a JVM.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.column import Column

from indextables.core.expr.functions import FUNCTIONS
from indextables.core.expr.nodes import Call, Literal, Mode
from indextables.core.expr.zone_rules import zone_of
from indextables.core.predicate.to_sql import _SPARK
from indextables.core.types import DataType, PrimitiveType, type_name, type_to_arrow
from indextables.engines.spark.local_session import local_session

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "core" / "expr" / "answers"
NEWEST = "4.3"
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "America/Havana")
SCHEMA = pa.schema(
    [
        ("function", pa.string()),
        ("call", pa.string()),
        ("argument", pa.string()),
        ("mode", pa.string()),
        ("zone", pa.string()),
        ("result", pa.string()),
        ("answers", pa.list_(pa.string())),
    ]
)
"""One row a call; its answers are in the order of the values of its argument's type, which are rows of their own:
their `function` is empty, and `answers` are the values."""

sys.path.insert(0, str(ROOT / "tests"))
from support.expressions import edges, samples  # noqa: E402 - it lies beside the tests

_TRY = {
    "cast": "",
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}
"""What Spark calls the function that is NULL where this one raises; it has none for the others."""


def sql_of(call: Call) -> str:
    """Returns the call as Spark writes it in the session's mode."""
    inner = [_SPARK.value(argument) for argument in call.arguments]
    if call.function == "add_micros":
        assert isinstance(call.arguments[1], Literal)
        return f"({inner[0]} + INTERVAL '{Decimal(call.arguments[1].value) / 1_000_000}' SECOND)"
    if call.function == "add_months_to_time":
        assert isinstance(call.arguments[1], Literal)
        return f"({inner[0]} + INTERVAL '{call.arguments[1].value}' MONTH)"
    if call.mode is Mode.TRY and call.function != "cast":
        return f"{_TRY[call.function]}({', '.join(inner)})"
    return _SPARK.value(call)


class Case(NamedTuple):
    """One call that Spark is asked for."""

    function: str
    call: Call
    argument: DataType


def cases() -> Iterator[Case]:
    """Yields every sample in every mode and zone that its function tells apart."""
    for name, (call, argument) in samples():
        function = FUNCTIONS[name]
        if not function.of_spark:
            continue
        for mode in function.modes:
            if mode is Mode.TRY and name not in _TRY:
                continue
            for zone in ZONES if function.zoned else ("UTC",):
                made = Call(call.function, call.arguments, call.type, mode, zone_of(zone))
                yield Case(name, made, argument)


def values_of(dtype: DataType) -> list[Any]:
    """Returns physical values of a type: those at its edges, and drawn ones."""
    found: dict[str, Any] = {}
    for seed in range(12):
        found |= {repr(value): value for value in edges(dtype, random.Random(seed))}
    return list(found.values())


def as_text(value: Any) -> str:
    """Returns an answer as the fixture keeps it: exact, but for the sign of zero, which no condition sees."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "=" + value
    return repr(value + 0.0) if isinstance(value, float) else str(value)


def column_of(dtype: DataType, values: list[Any]) -> pa.Array:
    """Returns physical values as a column."""
    kind = type_to_arrow(dtype)
    if dtype == PrimitiveType("date"):
        return pa.array(values, pa.int32()).cast(kind)
    if isinstance(dtype, PrimitiveType) and dtype.name.startswith("timestamp"):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def physical(column: pa.ChunkedArray) -> list[Any]:
    """Returns a column's values as physical ones: days, microseconds."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    return column.to_pylist()


class Asker:
    """Asks Spark for calls, each guarded, so that what raises on one row does not hide the other rows."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        jvm = spark._jvm
        self._column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
        self._guarded = jvm.org.apache.spark.sql.catalyst.expressions.TryEval

    def frame(self, dtype: DataType, values: list[Any]) -> DataFrame:
        """Returns the values as a DataFrame that no optimizer computes beforehand."""
        path = str(
            self.folder / f"values-{type_name(dtype).replace('(', '_').replace(',', '_')}.parquet"
        )
        numbers = pa.array(range(len(values)), pa.int32())
        pq.write_table(pa.table({"row": numbers, "x": column_of(dtype, values)}), path)
        return self.spark.read.parquet(path)

    def answers(self, frame: DataFrame, calls: list[Call]) -> list[list[str]]:
        """Returns for each call its answers in the order of the rows."""
        parse = self.spark._jsparkSession.sessionState().sqlParser().parseExpression
        texts = [f"named_struct('v', {sql_of(call)})" for call in calls]
        guarded = [Column(self._column(self._guarded(parse(text)))) for text in texts]
        named = [column.alias(f"c{i}") for i, column in enumerate(guarded)]
        target = str(self.folder / "answers")
        frame.select("row", *named).coalesce(1).write.mode("overwrite").parquet(target)
        found = pq.read_table(target).sort_by("row")
        return [self._texts(found[f"c{i}"].combine_chunks()) for i in range(len(calls))]

    def _texts(self, answers: pa.StructArray) -> list[str]:
        raised = answers.is_null().to_pylist()
        values = physical(pa.chunked_array([answers.field("v")]))
        return [
            "error" if error else as_text(value) for error, value in zip(raised, values, strict=True)
        ]


def ask(spark: SparkSession, folder: Path, functions: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the rows of the fixture, of these functions or of all."""
    asker, rows = Asker(spark, folder), []
    by_argument: dict[DataType, list[Case]] = {}
    for case in cases():
        if not functions or case.function in functions:
            by_argument.setdefault(case.argument, []).append(case)
    for argument, asked in by_argument.items():
        values = values_of(argument)
        frame = asker.frame(argument, values)
        rows.append({"argument": type_name(argument), "answers": [as_text(value) for value in values]})
        settings = {(case.call.mode is Mode.ANSI, case.call.zone) for case in asked}
        for ansi, zone in sorted(settings, key=str):
            assert zone is not None
            spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
            spark.conf.set("spark.sql.session.timeZone", zone.name)
            now = [
                case for case in asked if (case.call.mode is Mode.ANSI, case.call.zone) == (ansi, zone)
            ]
            for case, answers in zip(
                now, asker.answers(frame, [case.call for case in now]), strict=True
            ):
                assert case.call.type is not None
                rows.append(
                    {
                        "function": case.function,
                        "call": sql_of(case.call),
                        "argument": type_name(argument),
                        "mode": case.call.mode.value,
                        "zone": zone.name,
                        "result": type_name(case.call.type),
                        "answers": answers,
                    }
                )
            print(
                f"{type_name(argument)}, {'ansi' if ansi else 'legacy'}, {zone.name}: {len(now)} calls"
            )
    return rows


def merged(before: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of before with those of the same functions, or arguments, replaced."""
    asked = {row.get("function") for row in new} - {None}
    known = {row["argument"] for row in before if not row["function"]}
    values = [row for row in new if not row.get("function") and row["argument"] not in known]
    return [
        *(row for row in before if row["function"] not in asked),
        *values,
        *(row for row in new if row.get("function")),
    ]


def main() -> int:
    """Writes the answers of the Spark that is installed."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    spark = local_session("answers")
    spark.sparkContext.setLogLevel("OFF")
    for name, value in {
        # shared parts would be computed outside of the guard
        "spark.sql.subexpressionElimination.enabled": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    }.items():
        spark.conf.set(name, value)
    with tempfile.TemporaryDirectory() as folder:
        rows = ask(spark, Path(folder), sys.argv[1:])
    spark.stop()
    FOLDER.mkdir(exist_ok=True)
    if sys.argv[1:]:
        rows = merged(pq.read_table(FOLDER / f"{version}.parquet").to_pylist(), rows)
    if version != NEWEST:
        known = pq.read_table(FOLDER / f"{NEWEST}.parquet").to_pylist()
        rows = [row for row in rows if row.get("function") and row not in known]
    target = FOLDER / f"{version}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), target, compression="zstd", compression_level=19)
    print(f"{len(rows)} rows, {target.stat().st_size:,} bytes: {target.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
