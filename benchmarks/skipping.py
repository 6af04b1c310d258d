"""Which conditions skip files, in which engine: about 120 forms that people write every day.

    python benchmarks/skipping.py             every form in every engine, a few minutes
    python benchmarks/skipping.py --no-spark  without a JVM; what Spark means is then not compared

A table of 40 files with a column of each usual type, most of them clustered. For each form the files that an engine
reads stand beside those that hold a row. An engine that refuses a form shows "refused", one that has no such form "-".
Exits with 1 if an engine leaves out a file that holds a row.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
from common import print_table, save

import indextables as it

FILES, ROWS = 40, 250
TOTAL = FILES * ROWS
START = dt.datetime(2022, 1, 1, tzinfo=dt.UTC)
STEP = dt.timedelta(hours=2, minutes=37)


def data() -> pa.Table:
    """Ten thousand rows over three years; what is not said to be scattered grows with `id`."""
    ids = range(TOTAL)
    moments = [START + i * STEP for i in ids]
    words = [f"{chr(97 + i * 26 // TOTAL)}{i:05d}" for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([i // 10 for i in ids], pa.int32()),
            "small": pa.array([i * 200 // TOTAL - 100 for i in ids], pa.int16()),
            "score": pa.array([i / 7 for i in ids], pa.float64()),
            "ratio": pa.array([i / TOTAL for i in ids], pa.float32()),
            "price": pa.array([Decimal(i) / 100 for i in ids], pa.decimal128(12, 2)),
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "ntz": pa.array([m.replace(tzinfo=None) for m in moments], pa.timestamp("us")),
            "day": pa.array([m.date() for m in moments], pa.date32()),
            "name": pa.array(words),
            "code": pa.array([f"{i:06d}" for i in ids]),
            "n": pa.array([None if i // ROWS % 4 == 0 else i % 97 for i in ids], pa.int64()),
            "m": pa.array([None if i // ROWS == 7 else i for i in ids], pa.int64()),
            "flag": pa.array([i // ROWS in {3, 4} for i in ids]),
            "x": pa.array([float("nan") if i // ROWS == 9 else i / 3 for i in ids], pa.float64()),
            "status": pa.array([["new", "open", "done"][i // ROWS * 3 // FILES] for i in ids]),
            "mixed": pa.array([f"{['Abc', 'aBD', 'zzz'][i % 3]}{i % 50}" for i in ids]),
            "limit_": pa.array([TOTAL // 2 - i for i in ids], pa.int64()),
            "st": pa.array([{"x": i, "s": words[i]} for i in ids], pa.struct([("x", pa.int64()), ("s", pa.string())])),
        }
    )  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One way to write a condition; in Spark's SQL, in DuckDB's where that differs, and in Polars'."""

    family: str
    spark: str
    duckdb: str | None = ""
    """Empty: as in Spark; None: there is none."""
    polars: pl.Expr | None = None


_C = pl.col
_DAY, _MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 6, 1, tzinfo=dt.UTC)


def forms() -> list[Form]:
    """Returns all forms, by family."""
    return [
        Form("plain", "id = 1234", polars=_C("id") == 1234),
        Form("plain", "1234 = id", polars=pl.lit(1234) == _C("id")),
        Form("plain", "id <> 1234", polars=_C("id") != 1234),
        Form("plain", "id > 9000", polars=_C("id") > 9000),
        Form("plain", "id BETWEEN 1000 AND 1100", polars=_C("id").is_between(1000, 1100)),
        Form("plain", "id NOT BETWEEN 100 AND 9900", polars=~_C("id").is_between(100, 9900)),
        Form("plain", "id IN (5, 5000, 9999)", polars=_C("id").is_in([5, 5000, 9999])),
        Form("plain", "status NOT IN ('new', 'open')", polars=~_C("status").is_in(["new", "open"])),
        Form("plain", "id < 100 OR id > 9900", polars=(_C("id") < 100) | (_C("id") > 9900)),
        Form("plain", "NOT (id >= 100)", polars=~(_C("id") >= 100)),
        Form("plain", "id = 1234.0", polars=_C("id") == 1234.0),
        Form("plain", "id = '1234'", "id = 1234"),
        Form("plain", "score >= 1400", polars=_C("score") >= 1400),
        Form("plain", "price = 12.34", polars=_C("price") == Decimal("12.34")),
        Form("plain", "price < 5", polars=_C("price") < 5),
        Form("plain", "ratio > 0.99", polars=_C("ratio") > 0.99),
        Form("plain", "day = DATE '2024-02-29'", polars=_C("day") == _DAY),
        Form("plain", "day = '2024-02-29'", polars=_C("day") == _DAY),
        Form("plain", "ts >= TIMESTAMP '2024-06-01 00:00:00Z'", "ts >= TIMESTAMPTZ '2024-06-01 00:00:00+00'", _C("ts") >= _MOMENT),
        Form("plain", "ts BETWEEN '2024-06-01' AND '2024-06-02'", "ts BETWEEN TIMESTAMPTZ '2024-06-01 00:00:00+00' AND TIMESTAMPTZ '2024-06-02 00:00:00+00'"),
        Form("plain", "id <=> 1234", "id IS NOT DISTINCT FROM 1234", _C("id").eq_missing(1234)),
        Form("plain", "(id, m) IN ((10L, 10L), (20L, 20L))", "(id, m) IN ((10, 10), (20, 20))"),
        Form("boolean", "flag", polars=_C("flag")),
        Form("boolean", "NOT flag", polars=~_C("flag")),
        Form("boolean", "flag = true", polars=_C("flag") == True),  # noqa: E712
        Form("boolean", "flag IS TRUE", "flag IS TRUE"),
        Form("boolean", "flag AND id > 1000", polars=_C("flag") & (_C("id") > 1000)),
        Form("null", "m IS NULL", polars=_C("m").is_null()),
        Form("null", "n IS NOT NULL", polars=_C("n").is_not_null()),
        Form("null", "isnull(m)", "m IS NULL"),
        Form("null", "isnotnull(n)", "n IS NOT NULL"),
        Form("null", "isnan(x)", "isnan(x)", _C("x").is_nan()),
        Form("null", "x = double('NaN')", "x = 'NaN'::DOUBLE"),
        Form("text", "name = 'm04700'", polars=_C("name") == "m04700"),
        Form("text", "name LIKE 'c%'", polars=_C("name").str.starts_with("c")),
        Form("text", "name LIKE 'm047%'", polars=_C("name").str.starts_with("m047")),
        Form("text", "name LIKE 'm_47%'", polars=_C("name").str.contains("^m.47")),
        Form("text", "name NOT LIKE 'c%'", polars=~_C("name").str.starts_with("c")),
        Form("text", "startswith(name, 'zz')", "starts_with(name, 'zz')", _C("name").str.starts_with("zz")),
        Form("text", "startswith(name, 'y')", "starts_with(name, 'y')", _C("name").str.starts_with("y")),
        Form("text", "name RLIKE '^m047'", "regexp_matches(name, '^m047')", _C("name").str.contains("^m047")),
        Form("text", "name ILIKE 'M047%'", "name ILIKE 'M047%'"),
        Form("text", "lower(name) = 'm04700'", "lower(name) = 'm04700'", _C("name").str.to_lowercase() == "m04700"),
        Form("text", "upper(name) = 'M04700'", "upper(name) = 'M04700'", _C("name").str.to_uppercase() == "M04700"),
        Form("text", "substring(name, 1, 1) = 'c'", "substring(name, 1, 1) = 'c'", _C("name").str.slice(0, 1) == "c"),
        Form("text", "substr(code, 1, 3) = '005'", "substr(code, 1, 3) = '005'", _C("code").str.slice(0, 3) == "005"),
        Form("text", "left(code, 2) = '00'", "left(code, 2) = '00'", _C("code").str.head(2) == "00"),
        Form("text", "name || '!' = 'm04700!'", polars=_C("name") + "!" == "m04700!"),
        Form("text", "concat('x', name) = 'xm04700'", polars=pl.lit("x") + _C("name") == "xm04700"),
        Form("text", "trim(name) = 'm04700'", polars=_C("name").str.strip_chars() == "m04700"),
        Form("text", "length(name) > 100", "length(name) > 100", _C("name").str.len_chars() > 100),
        Form("text", "name > 'y'", polars=_C("name") > "y"),
        Form("text", "contains(name, '04700')", "contains(name, '04700')", _C("name").str.contains("04700")),
        Form("text", "lower(mixed) = 'zzz7'", polars=_C("mixed").str.to_lowercase() == "zzz7"),
        Form("cast", "CAST(id AS INT) = 1234", polars=_C("id").cast(pl.Int32) == 1234),
        Form("cast", "CAST(k AS BIGINT) = 123", polars=_C("k").cast(pl.Int64) == 123),
        Form("cast", "CAST(id AS STRING) = '1234'", "CAST(id AS VARCHAR) = '1234'", _C("id").cast(pl.String) == "1234"),
        Form("cast", "CAST(code AS INT) = 1234", polars=_C("code").cast(pl.Int32) == 1234),
        Form("cast", "CAST(score AS INT) = 100", None, _C("score").cast(pl.Int32) == 100),
        Form("cast", "CAST(id AS DOUBLE) > 9900", polars=_C("id").cast(pl.Float64) > 9900),
        Form("cast", "CAST(price AS INT) = 50", None),
        Form("cast", "price >= CAST('99.00' AS DECIMAL(20,2))"),
        Form("cast", "CAST(ts AS DATE) = DATE '2024-02-29'", "CAST(ts AS DATE) = DATE '2024-02-29'", _C("ts").dt.date() == _DAY),
        Form("cast", "date(ts) = DATE '2024-02-29'", "CAST(ts AS DATE) = DATE '2024-02-29'"),
        Form("cast", "to_date(ts) >= DATE '2024-11-01'", "CAST(ts AS DATE) >= DATE '2024-11-01'"),
        Form("cast", "CAST(day AS TIMESTAMP) >= TIMESTAMP '2024-11-01 00:00:00Z'", None),
        Form("cast", "try_cast(id AS INT) = 1234", "try_cast(id AS INT) = 1234"),
        Form("cast", "CAST(small AS INT) + 0 = 5", "CAST(small AS INT) + 0 = 5"),
        Form("arithmetic", "id + 1 > 9900", polars=_C("id") + 1 > 9900),
        Form("arithmetic", "id - 100 < 0", polars=_C("id") - 100 < 0),
        Form("arithmetic", "id * 2 = 2468", polars=_C("id") * 2 == 2468),
        Form("arithmetic", "-id > -50", polars=-_C("id") > -50),
        Form("arithmetic", "100 - id > 0", polars=100 - _C("id") > 0),
        Form("arithmetic", "id / 2 > 4950", "id / 2 > 4950", _C("id") / 2 > 4950),
        Form("arithmetic", "id div 1000 = 3", "id // 1000 = 3", _C("id") // 1000 == 3),
        Form("arithmetic", "id % 5000 = 17", polars=_C("id") % 5000 == 17),
        Form("arithmetic", "abs(id - 5000) < 50", polars=(_C("id") - 5000).abs() < 50),
        Form("arithmetic", "abs(limit_) < 10", polars=_C("limit_").abs() < 10),
        Form("arithmetic", "floor(score) = 100", polars=_C("score").floor() == 100),
        Form("arithmetic", "ceil(score) = 100", polars=_C("score").ceil() == 100),
        Form("arithmetic", "round(score) = 100", None),
        Form("arithmetic", "round(price, 1) = 12.3", None),
        Form("arithmetic", "score * 1.5 < 10", polars=_C("score") * 1.5 < 10),
        Form("arithmetic", "sqrt(score) < 3", "sqrt(score) < 3", _C("score").sqrt() < 3),
        Form("arithmetic", "pmod(id, 5000) = 17", None),
        Form("arithmetic", "price * 2 > 199", polars=_C("price") * 2 > 199),
        Form("arithmetic", "negative(id) = -77", "-id = -77"),
        Form("time", "year(ts) = 2024", polars=_C("ts").dt.year() == 2024),
        Form("time", "year(day) = 2023", polars=_C("day").dt.year() == 2023),
        Form("time", "month(ts) = 5", polars=_C("ts").dt.month() == 5),
        Form("time", "quarter(ts) = 2", polars=_C("ts").dt.quarter() == 2),
        Form("time", "year(ts) = 2024 AND month(ts) = 2", polars=(_C("ts").dt.year() == 2024) & (_C("ts").dt.month() == 2)),
        Form("time", "dayofmonth(day) = 29 AND month(day) = 2", "day(day) = 29 AND month(day) = 2"),
        Form("time", "dayofyear(day) = 60", polars=_C("day").dt.ordinal_day() == 60),
        Form("time", "extract(YEAR FROM ts) = 2024", "extract(YEAR FROM ts) = 2024"),
        Form("time", "date_part('YEAR', ts) = 2024", "date_part('year', ts) = 2024"),
        Form("time", "date_trunc('MONTH', ts) = TIMESTAMP '2024-02-01 00:00:00Z'", "date_trunc('month', ts) = TIMESTAMPTZ '2024-02-01 00:00:00+00'"),
        Form("time", "date_trunc('DAY', ts) = TIMESTAMP '2024-02-29 00:00:00Z'", "date_trunc('day', ts) = TIMESTAMPTZ '2024-02-29 00:00:00+00'"),
        Form("time", "trunc(day, 'MM') = DATE '2024-02-01'", "date_trunc('month', day) = DATE '2024-02-01'", _C("day").dt.truncate("1mo") == dt.date(2024, 2, 1)),
        Form("time", "trunc(day, 'YEAR') = DATE '2023-01-01'", "date_trunc('year', day) = DATE '2023-01-01'", _C("day").dt.truncate("1y") == dt.date(2023, 1, 1)),
        Form("time", "last_day(day) = DATE '2024-02-29'", "last_day(day) = DATE '2024-02-29'", _C("day").dt.month_end() == _DAY),
        Form("time", "date_add(day, 7) > DATE '2024-12-20'", None),
        Form("time", "date_sub(day, 7) < DATE '2022-01-01'", None),
        Form("time", "add_months(day, 1) > DATE '2025-01-01'", None),
        Form("time", "datediff(day, DATE '2024-01-01') BETWEEN 0 AND 10", "datediff('day', DATE '2024-01-01', day) BETWEEN 0 AND 10"),
        Form("time", "day + INTERVAL 1 MONTH > DATE '2024-12-20'", "day + INTERVAL 1 MONTH > DATE '2024-12-20'"),
        Form("time", "ts + INTERVAL 1 DAY > TIMESTAMP '2024-12-20 00:00:00Z'", "ts + INTERVAL 1 DAY > TIMESTAMPTZ '2024-12-20 00:00:00+00'", _C("ts") + dt.timedelta(days=1) > dt.datetime(2024, 12, 20, tzinfo=dt.UTC)),
        Form("time", "ts >= TIMESTAMP '2024-12-20 00:00:00Z' - INTERVAL 7 DAYS", "ts >= TIMESTAMPTZ '2024-12-20 00:00:00+00' - INTERVAL 7 DAYS"),
        Form("time", "unix_timestamp(ts) > 1735000000", "epoch(ts) > 1735000000", _C("ts").dt.epoch("s") > 1735000000),
        Form("time", "unix_seconds(ts) > 1735000000", None),
        Form("time", "ts > timestamp_seconds(1735000000)", "ts > to_timestamp(1735000000)"),
        Form("time", "ts > from_unixtime(1735000000)", None),
        Form("time", "day >= to_date('2024-12-01')", "day >= DATE '2024-12-01'"),
        Form("time", "ts >= to_timestamp('2024-12-01')", "ts >= TIMESTAMPTZ '2024-12-01 00:00:00+00'"),
        Form("time", "date_format(ts, 'yyyy-MM') = '2024-02'", "strftime(ts, '%Y-%m') = '2024-02'", _C("ts").dt.strftime("%Y-%m") == "2024-02"),
        Form("time", "year(ntz) = 2024", polars=_C("ntz").dt.year() == 2024),
        Form("time", "hour(ts) = 5", polars=_C("ts").dt.hour() == 5),
        Form("choice", "coalesce(m, -1) = -1", polars=pl.coalesce("m", pl.lit(-1)) == -1),
        Form("choice", "coalesce(n, 0) > 95", polars=pl.coalesce("n", pl.lit(0)) > 95),
        Form("choice", "ifnull(m, 0) > 9900", "ifnull(m, 0) > 9900", _C("m").fill_null(0) > 9900),
        Form("choice", "nvl(m, 0) > 9900", "ifnull(m, 0) > 9900"),
        Form("choice", "nullif(id, 0) < 5", "nullif(id, 0) < 5"),
        Form("choice", "CASE WHEN id < 100 THEN 'a' ELSE 'b' END = 'a'", polars=pl.when(_C("id") < 100).then(pl.lit("a")).otherwise(pl.lit("b")) == "a"),
        Form("choice", "if(id < 100, 1, 0) = 1", "if(id < 100, 1, 0) = 1"),
        Form("choice", "greatest(id, k) > 9900", "greatest(id, k) > 9900", pl.max_horizontal("id", "k") > 9900),
        Form("choice", "least(id, 5000) < 100", "least(id, 5000) < 100", pl.min_horizontal(_C("id"), pl.lit(5000)) < 100),
        Form("two columns", "id > limit_", polars=_C("id") > _C("limit_")),
        Form("two columns", "id + limit_ < 0", polars=_C("id") + _C("limit_") < 0),
        Form("two columns", "id + k > 10900", polars=_C("id") + _C("k") > 10900),
        Form("two columns", "id - k < 90", polars=_C("id") - _C("k") < 90),
        Form("two columns", "coalesce(m, limit_) > 9900", polars=pl.coalesce("m", "limit_") > 9900),
        Form("nested", "st.x = 1234", "st.x = 1234", _C("st").struct.field("x") == 1234),
        Form("nested", "st.s LIKE 'c%'", "st.s LIKE 'c%'", _C("st").struct.field("s").str.starts_with("c")),
        Form("nested", "st.x + 1 > 9900", "st.x + 1 > 9900", _C("st").struct.field("x") + 1 > 9900),
    ]  # fmt: skip


class Engines:
    """One table in every engine; each method returns how many files the engine reads for a form."""

    def __init__(self, path: str, *, with_spark: bool) -> None:
        self.path, self.table = path, it.Table(path)
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'")
        it.duckdb.register(self.duckdb, "t", path)
        self.datafusion = datafusion.SessionContext()
        it.datafusion.register(self.datafusion, "t", path)
        self.frame = spark_frame(path) if with_spark else None

    def by_scan(self, form: Form) -> Any:
        """`Table.scan`, rows filtered and all."""
        with it.query_stats() as stats:
            self.table.scan(form.spark, columns=["id"]).to_arrow()
        return stats.data_files_opened + stats.files_handed_over

    def by_plan(self, form: Form) -> Any:
        """`Table.plan`, for an engine that filters the rows itself."""
        return self.table.plan(form.spark).report.kept_files

    def by_spark(self, form: Form) -> Any:
        """`spark.read`, files of the scan."""
        if self.frame is None:
            return None
        return it.last_scan(self.frame.where(form.spark)).kept_files

    def by_duckdb(self, form: Form) -> Any:
        """`it.duckdb.sql`, files handed to DuckDB's own reader or opened by ours."""
        text = form.duckdb if form.duckdb != "" else form.spark
        if text is None:
            return None
        with it.query_stats() as stats:
            it.duckdb.sql(self.duckdb, f"SELECT count(*) FROM t WHERE {text}").fetchall()
        return stats.data_files_opened + stats.files_handed_over

    def by_polars(self, form: Form) -> Any:
        """`it.scan_polars`, files handed to Polars' own reader or opened by ours."""
        if form.polars is None:
            return None
        with it.query_stats() as stats:
            it.scan_polars(self.path).filter(form.polars).select(pl.len()).collect()
        return stats.data_files_opened + stats.files_handed_over

    def by_datafusion(self, form: Form) -> Any:
        """`it.datafusion.sql`, files opened by our reader."""
        text = form.duckdb if form.duckdb != "" else form.spark
        if text is None:
            return None
        with it.query_stats() as stats:
            it.datafusion.sql(self.datafusion, f"SELECT count(*) FROM t WHERE {text}").collect()
        return stats.data_files_opened + stats.files_handed_over


def spark_frame(path: str) -> Any:
    """Returns the table as a DataFrame of a local session in UTC."""
    from indextables.engines.spark.local_session import local_session

    spark = it.enable(local_session("skipping"))
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark.read.format("indextables").load(path)


def files_with_rows(frame: Any, found: list[Form]) -> dict[str, int]:
    """Returns for each form how many files hold a row, as Spark evaluates it, in one query a dozen forms."""
    from pyspark.sql import functions as F  # noqa: N812

    file = F.expr(f"CAST(id DIV {ROWS} AS INT)").alias("file")
    answers: dict[str, int] = {}
    for start in range(0, len(found), 12):
        some = found[start : start + 12]
        columns = [F.count_if(F.expr(form.spark)).alias(f"c{i}") for i, form in enumerate(some)]
        rows = frame.groupBy(file).agg(*columns).collect()
        for i, form in enumerate(some):
            answers[form.spark] = sum(row[f"c{i}"] > 0 for row in rows)
    return answers


def asked(ask: Callable[[Form], Any], form: Form) -> Any:
    """Returns what an engine reads; "refused" where it raises, "-" where it has no such form."""
    try:
        found = ask(form)
    except Exception:
        return "refused"
    return "-" if found is None else found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-spark", action="store_true", help="leave out what needs a JVM")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, path = data(), f"{folder}/t"
        table = it.Table.create(path, rows.schema)
        for start in range(0, TOTAL, ROWS):
            table.append(rows.slice(start, ROWS))
        engines = Engines(path, with_spark=not options.no_spark)
        truth = {} if engines.frame is None else files_with_rows(engines.frame, forms())
        ways = {
            "scan": engines.by_scan,
            "plan": engines.by_plan,
            "Spark": engines.by_spark,
            "DuckDB": engines.by_duckdb,
            "Polars": engines.by_polars,
            "DataFusion": engines.by_datafusion,
        }
        table_rows = [
            {"family": form.family, "form": form.spark, "with a row": truth.get(form.spark)}
            | {name: asked(ask, form) for name, ask in ways.items()}
            for form in forms()
        ]
    print_table(f"files read of {FILES}", table_rows)
    summary = [summary_of(name, table_rows) for name in ways]
    print_table("over all forms an engine takes", summary)
    save("skipping", {"files": FILES, "forms": table_rows, "summary": summary})
    wrong = [
        (row["form"], name)
        for row in table_rows
        for name in ways
        if isinstance(row[name], int)
        and row["with a row"] is not None
        and row[name] < row["with a row"]
    ]
    for form, name in wrong:
        print(f"WRONG: {name} leaves out files that hold a row of {form}")
    return int(bool(wrong))


def summary_of(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns how many forms an engine takes, how many skip, and files read by those with a row."""
    taken = [row for row in rows if isinstance(row[name], int)]
    known = [row for row in taken if row["with a row"] is not None]
    exact = sum(row[name] == row["with a row"] for row in known)
    needed, read = sum(row["with a row"] for row in known), sum(row[name] for row in known)
    return {
        "engine": name,
        "forms": len(taken),
        "refused": sum(row[name] == "refused" for row in rows),
        "skip something": sum(row[name] < FILES for row in taken),
        "exactly the files with a row": exact,
        "files read / files with a row": round(read / needed, 3) if needed else None,
    }


if __name__ == "__main__":
    raise SystemExit(main())
