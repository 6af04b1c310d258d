"""A driver on a standalone cluster: runs every kind of work on tables, and prints what came of each as JSON.

    python tests/support/cluster.py spark://127.0.0.1:7077 /a/directory

It runs in a process of its own, because a process has one SparkContext.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import indextables as it


def main(master: str, root: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(root / "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = it.enable(builder.getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("indextables").addHandler(handler)
    found = {}
    for name, work in works(spark, root).items():
        try:
            found[name] = work()
        except Exception as error:  # the test shows it
            found[name] = f"{type(error).__name__}: {error}"[:2000]
    hosts = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    found["executors"] = len(hosts) - 1  # the driver is one of them
    print("found: " + json.dumps({"found": found, "warnings": warnings}), flush=True)
    spark.stop()


def works(spark, root):
    """Each kind of work; it returns what the test compares."""
    plain, keyed, sunk = (str(root / name) for name in ("plain", "keyed", "sunk"))
    t, k = f"indextables.`{plain}`", f"indextables.`{keyed}`"
    rows = spark.range(0, 400, 1, 2).selectExpr(
        "id", "id % 7 AS b", "concat('k', id) AS s", "id % 2 AS p"
    )

    def lacks():
        def import_it(_):
            try:
                import indextables  # noqa: F401
            except ModuleNotFoundError as error:
                return [str(error)]
            return ["it is there"]

        return spark.sparkContext.parallelize([1, 2], 2).mapPartitions(import_it).distinct().collect()

    def write():
        rows.write.format("indextables").partitionBy("p").save(plain)
        rows.write.format("indextables").option("recordKey", "id").save(keyed)

    def sink():
        inbox = str(root / "inbox")
        rows.write.parquet(inbox)
        stream = spark.readStream.schema(rows.schema).parquet(inbox).writeStream.format("indextables")
        stream = stream.option("checkpointLocation", str(root / "progress")).trigger(availableNow=True)
        stream.start(sunk).awaitTermination()
        return spark.read.format("indextables").load(sunk).count()

    def upsert():
        more = spark.range(390, 410).selectExpr("id", "-1L AS b", "'new' AS s", "0L AS p")
        for _ in range(2):
            more.write.format("indextables").mode("upsert").option(
                "spark.indextables.change.driverRows", "0"
            ).save(keyed)
        return one(f"SELECT count(*), sum(b) FROM {k}")

    def merge():
        spark.sql(
            f"MERGE INTO {t} AS t USING (SELECT explode(array(5L, 900L)) AS id) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 0)"
        )
        return one(f"SELECT count(*), count_if(s = 'merged') FROM {t}")

    def one(text):
        return list(spark.sql(text).first())

    def changed(text, then):
        spark.sql(text)
        return one(then)

    check = f"SELECT count(*), sum(id) FROM {t}"
    return {
        "lacks": lacks,
        "write": write,
        "read": lambda: one(f"SELECT count(*) FROM {t} WHERE id >= 300 AND p = 1"),
        "delete": lambda: changed(f"DELETE FROM {t} WHERE b = 3", check),
        "update": lambda: changed(
            f"UPDATE {t} SET b = 99 WHERE id = 1", f"SELECT b FROM {t} WHERE id = 1"
        ),
        "merge": merge,
        "upsert": upsert,
        "zorder": lambda: changed(f"OPTIMIZE {t} ZORDER BY (id, b)", check),
        "hilbert": lambda: changed(f"OPTIMIZE {t} HILBERT BY (id, s)", check),
        "compact": lambda: changed(f"COMPACT {k}", f"SELECT count(*), sum(b) FROM {k}"),
        "analyze": lambda: spark.sql(f"ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS (b)").count(),
        "repair": lambda: spark.sql(
            f"REPAIR INDEXFILES TRANSACTION LOG '{plain}/_transaction_log' AT LOCATION '{plain}-log'"
        ).count(),
        "sink": sink,
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
