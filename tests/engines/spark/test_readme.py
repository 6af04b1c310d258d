"""What the README shows of Spark runs as it stands there, apart from the directory."""

import pytest

from support.pages import blocks

pytestmark = pytest.mark.spark


def test_the_code_of_the_readme_runs(spark, tmp_path):
    """Writing, reading, SQL, REPAIR and an upsert, with /data moved to a temporary directory."""
    articles = spark.range(0, 40, 1, 2).selectExpr(
        "id",
        "id + 60 AS score",
        "CASE WHEN id % 2 = 0 THEN 'ada' ELSE 'alan' END AS author",
        "date_add(DATE'2024-01-01', CAST(id % 2 AS INT)) AS day",
    )
    names = {"spark": spark, "articles": articles}
    for code in blocks("README.md", "python"):
        if "spark" in code:
            exec(compile(code.replace("/data", str(tmp_path)), "README.md", "exec"), names)
    assert names["found"].count() == 4
    (statement,) = blocks("README.md", "sql")
    assert spark.sql(statement.replace("/data", str(tmp_path))).collect()[0]["status"] == "SUCCESS"
    people = spark.createDataFrame([(1, "Ada"), (2, "Grace")], "id bigint NOT NULL, name string")
    path = str(tmp_path / "people")
    people.write.format("indextables").option("recordKey", "id").mode("upsert").save(path)
    rows = spark.read.format("indextables").load(path).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, "Ada"), (2, "Grace")]
