"""A table in Spark: write, query, overwrite a part, look back.

python examples/spark_quickstart.py
"""

from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

import indextables as it

spark = it.enable(
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
)

with TemporaryDirectory() as directory:
    path = f"{directory}/articles"
    articles = spark.range(0, 10_000, 1, 8).selectExpr(
        "id",
        "date_add(date'2024-01-01', cast(id / 1000 as int)) AS day",
        "repeat(concat('article ', id, ' '), 200) AS body",
    )
    articles.write.format("indextables").partitionBy("day").save(path)

    found = spark.read.format("indextables").load(path).where("day = '2024-01-03' AND id > 2900")
    print("rows:", found.count())

    redo = articles.where("day = '2024-01-03' AND id < 2500")
    redo.write.format("indextables").mode("overwrite").option(
        "replaceWhere", "day = '2024-01-03'"
    ).save(path)
    print("after the overwrite:", spark.sql(f"SELECT count(*) FROM indextables.`{path}`").first()[0])
    print(
        "before it:", spark.sql(f"SELECT count(*) FROM indextables.`{path}` VERSION AS OF 0").first()[0]
    )

    for entry in it.Table(path).history():
        print(entry.version, entry.operation, dict(entry.metrics))

spark.stop()
