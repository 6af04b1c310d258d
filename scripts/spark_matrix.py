"""What works on which version of Spark: each row is tried on real tables, and is green or refused in words.

    python scripts/spark_matrix.py                       the version that is installed here
    python scripts/spark_matrix.py .venv-spark-*/        each of these environments, one after the other

`make matrix` runs the second form with every version that is promised. Exits with 1 if anything failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MARK: Final = "matrix: "
SOURCE: Final = Path(__file__).parent.parent / "src"


class Try:
    """One session and a place for tables."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark = spark
        self.root = root

    def table(self, name: str, rows: int = 100) -> str:
        path = str(self.root / name)
        frame = self.spark.range(rows).selectExpr(
            "id", "id % 3 AS p", "timestamp_micros(id * 1000000) AS t"
        )
        frame.write.format("indextables").partitionBy("p").save(path)
        return path

    def ids(self, path: str) -> set[int]:
        return {row.id for row in self.spark.read.format("indextables").load(path).collect()}

    def read(self) -> None:
        path = self.table("read")
        frame = self.spark.read.format("indextables").load(path)
        assert frame.where("id > 90 AND p = 1").count() == 3
        assert frame.join(frame.where("id < 3").select("id"), "id").count() == 3
        assert self.spark.read.format("indextables").option("versionAsOf", 0).load(path).count() == 100

    def write(self) -> None:
        path = self.table("write")
        self.table("write2")
        more = self.spark.range(100, 200).selectExpr("id", "id % 3 AS p", "current_timestamp() AS t")
        more.write.format("indextables").mode("append").save(path)
        more.writeTo(f"indextables.`{path}`").append()
        assert len(self.ids(path)) == 200
        import indextables as it

        bounds = it.Table(path).snapshot().splits()[0].stats
        assert ("t",) in bounds.min_values, "timestamps have no bounds"
        keyed = str(self.root / "keyed")
        more.write.format("indextables").option("recordKey", "id").save(keyed)
        more.where("id < 110").write.format("indextables").mode("upsert").save(keyed)
        assert len(self.ids(keyed)) == 100
        more.where("id < 110").write.format("indextables").mode("overwrite").save(path)
        assert len(self.ids(path)) == 10

    def sql(self) -> None:
        path = self.table("sql")
        spark, name = self.spark, f"indextables.`{path}`"
        assert spark.sql(f"SELECT count(*) FROM {name} WHERE id > :low", {"low": 49}).first()[0] == 50
        assert spark.sql(f"SELECT count(*) FROM {name} WHERE id > ?", [49]).first()[0] == 50
        query = f"WITH few AS (SELECT id FROM {name} WHERE id < 10) SELECT count(*) FROM few, few AS g"
        assert spark.sql(query).first()[0] == 100
        spark.sql(f"INSERT INTO {name} VALUES (1000, 1, current_timestamp())")
        assert spark.sql(f"SELECT count(*) FROM {name}").first()[0] == 101
        assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF 0").first()[0] == 100
        spark.sql(f"INSERT INTO {name} REPLACE WHERE id = 1000 SELECT 1000L, 2L, current_timestamp()")
        made = str(self.root / "made")
        spark.sql(f"CREATE TABLE indextables.`{made}` PARTITIONED BY (p) AS SELECT id, p FROM {name}")
        assert len(self.ids(made)) == 101
        plain = str(self.root / "plain")
        spark.sql(f"CREATE TABLE indextables.`{plain}` (a INT, b STRING) TBLPROPERTIES ('x' = 'y')")
        assert spark.sql(f"DESCRIBE HISTORY {name}").count() == 3
        assert spark.sql(f"OPTIMIZE {name} ZORDER BY (id)").count() >= 1

    def dml(self) -> None:
        path = self.table("dml")
        self.spark.sql(f"DELETE FROM indextables.`{path}` WHERE id % 2 = 0")
        assert self.ids(path) == set(range(1, 100, 2))
        self.spark.sql(f"UPDATE indextables.`{path}` SET id = -id WHERE id > 50")
        assert {i for i in self.ids(path) if i < 0} == set(range(-99, -50, 2))

    def merge(self) -> None:
        path = self.table("merge")
        self.spark.sql(
            f"MERGE INTO indextables.`{path}` AS t USING (SELECT explode(array(5L, 500L)) AS id) AS s "
            "ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 0)"
        )
        assert self.ids(path) == {*range(100), 500} - {5}

    def merge_into(self) -> None:
        from pyspark.sql import functions

        path = self.table("merge_into")
        source = self.spark.sql("SELECT explode(array(5L, 500L)) AS sid, 0L AS z")
        if not hasattr(source, "mergeInto"):
            raise RefusedError("PySpark has no DataFrame.mergeInto; MERGE INTO works")
        condition = functions.expr("id = sid")
        values = {"id": functions.col("sid"), "p": functions.col("z")}
        writer = source.mergeInto(f"indextables.`{path}`", condition)
        writer.whenMatched().delete().whenNotMatched().insert(values).merge()
        assert self.ids(path) == {*range(100), 500} - {5}

    def stream_sink(self) -> None:
        path, inbox = str(self.root / "sink"), str(self.root / "inbox")
        self.spark.range(10).write.parquet(inbox)
        stream = self.spark.readStream.schema("id LONG").parquet(inbox).writeStream
        for _ in range(2):
            query = (
                stream.format("indextables")
                .option("checkpointLocation", str(self.root / "progress"))
                .trigger(availableNow=True)
                .start(path)
            )
            query.awaitTermination()
        assert self.ids(path) == set(range(10))

    def names(self) -> None:
        spark = self.spark
        spark.sql("CREATE DATABASE matrix")
        spark.sql("CREATE TABLE matrix.t (id BIGINT, s STRING) USING indextables")
        spark.sql("INSERT INTO matrix.t SELECT id, 'a' FROM range(9)")
        spark.sql("UPDATE matrix.t SET s = 'b' WHERE t.id > 5")
        spark.sql("ALTER TABLE matrix.t ADD COLUMNS (z DOUBLE)")
        spark.sql("CREATE VIEW matrix.v AS SELECT id, z FROM matrix.t WHERE s = 'b'")
        assert spark.sql("SELECT count(*) FROM matrix.v").first()[0] == 3
        assert spark.sql("SELECT count(*) FROM spark_catalog.matrix.t VERSION AS OF 1").first()[0] == 9
        assert spark.sql("SELECT count(*) FROM IDENTIFIER('matrix.' || 't')").first()[0] == 9
        spark.range(3).withColumnRenamed("id", "n").write.format("indextables").saveAsTable("matrix.u")
        spark.range(3).writeTo("matrix.w").using("indextables").create()
        assert spark.table("matrix.u").count() + spark.table("matrix.w").count() == 6
        assert spark.catalog.tableExists("matrix.u")
        spark.sql("DROP DATABASE matrix CASCADE")


class RefusedError(Exception):
    """Something that cannot be had, in words."""


CELLS: Final[dict[str, Callable[[Try], None]]] = {
    "read": Try.read,
    "write": Try.write,
    "SQL": Try.sql,
    "DML": Try.dml,
    "MERGE": Try.merge,
    "df.mergeInto": Try.merge_into,
    "stream sink": Try.stream_sink,
    "names": Try.names,
}


def here() -> dict[str, str]:
    """Returns what became of every row on the version that is installed here."""
    from indextables.engines.spark.local_session import local_session
    from indextables.engines.spark.session import enable

    spark = enable(local_session("matrix"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        trial = Try(spark, Path(folder))
        for name, check in CELLS.items():
            try:
                check(trial)
                found[name] = "green"
            except RefusedError as words:
                found[name] = f"refused: {words}"
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what the cell shows
                lines = str(error).strip().splitlines() or [""]
                found[name] = f"FAILED: {type(error).__name__}: {lines[0][:200]}"
    spark.stop()
    return found


def in_environment(python: Path) -> tuple[str, dict[str, str]]:
    """Returns the version of Spark in an environment, and what became of every row there."""
    run = subprocess.run(
        [python, __file__, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**__import__("os").environ, "PYTHONPATH": str(SOURCE)},
    )
    line = next((each for each in run.stdout.splitlines() if each.startswith(MARK)), None)
    if line is None:
        return str(python), dict.fromkeys(CELLS, f"FAILED: {run.stderr[-300:]}")
    version, found = json.loads(line.removeprefix(MARK))
    return version, found


def main(arguments: list[str]) -> int:
    if arguments == ["--json"]:
        import pyspark

        print(MARK + json.dumps([pyspark.__version__, here()]))
        return 0
    pythons = [Path(each) / "bin" / "python" for each in arguments] or [Path(sys.executable)]
    columns = dict(in_environment(python) for python in pythons)
    width = max(map(len, CELLS)) + 2
    print(" " * width + "".join(f"{version:<10}" for version in columns))
    notes = []
    for name in CELLS:
        words = {version: found[name] for version, found in columns.items()}
        print(f"{name:<{width}}" + "".join(f"{word.partition(':')[0]:<10}" for word in words.values()))
        notes += [f"{name} on {v}: {word}" for v, word in words.items() if word != "green"]
    print("\n".join(notes))
    return int(any("FAILED" in note for note in notes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
