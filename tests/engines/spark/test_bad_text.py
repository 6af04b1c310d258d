"""Text that is not UTF-8: Spark keeps any bytes, no other engine reads them, and as a key they change on the way."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import SchemaMismatchError

SCHEMA = pa.schema(
    [
        pa.field("k", pa.string(), nullable=False),
        ("s", pa.string()),
        ("st", pa.struct([("t", pa.string())])),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.string())),
    ]
)
GOOD = {"k": "'ü'", "s": "'a'", "st": "named_struct('t', 'b')", "l": "array('c')", "m": "map('d', 'e')"}
BAD = "CAST(X'FF' AS STRING)"
EVERY_PART = pytest.mark.parametrize(
    ("column", "values"),
    [
        ("k", BAD),
        ("s", BAD),
        ("st", f"named_struct('t', {BAD})"),
        ("l", f"array(NULL, {BAD})"),
        ("m", f"map({BAD}, 'e')"),
        ("m", f"map('d', {BAD})"),
    ],
)


def select(values):
    return "SELECT " + ", ".join(f"{value} AS {name}" for name, value in values.items())


@EVERY_PART
@pytest.mark.parametrize("key", [[], ["k"]], ids=["plain", "by key"])
def test_text_that_is_not_utf8_is_refused_by_every_write(spark, tmp_path, column, values, key):
    """As the embedded engine does; good text beside it goes in, and nothing of the refused write stays."""
    uri = str(tmp_path / "t")
    table = it.Table.create(uri, SCHEMA, record_key=key)
    table.on(spark).append(spark.sql(select(GOOD)))
    bad = select({**GOOD, column: values})
    writes = {
        "append": lambda: table.on(spark).append(spark.sql(bad)),
        "overwrite": lambda: table.on(spark).overwrite(spark.sql(bad)),
        "insert": lambda: spark.sql(f"INSERT INTO indextables.`{uri}` {bad}"),
        **({"upsert": lambda: table.on(spark).upsert(spark.sql(bad))} if key else {}),
    }
    before = sorted((tmp_path / "t" / "data").rglob("*.parquet"))
    for write in writes.values():
        with pytest.raises(SchemaMismatchError, match=f"column '{column}' has text that is not UTF-8"):
            write()
    assert sorted((tmp_path / "t" / "data").rglob("*.parquet")) == before
    assert table.version == 1 and table.check(deep=True).ok


def test_a_merge_finds_the_rows_of_text_that_is_not_utf8(spark, tmp_path):
    """Files of another writer may have such text; it is shown as U+FFFD, which must not choose the files to look into."""
    directory = str(tmp_path / "t")
    for name in ("a", "z"):
        rows = spark.sql(f"SELECT CAST(concat(X'{name.encode().hex()}', X'FF') AS STRING) AS k, 1 AS v")
        rows.coalesce(1).write.mode("append").parquet(directory)
    it.convert(directory)
    # Not a constant: Spark would look for that one in the statistics of Parquet, where it does not find it itself.
    source = spark.createDataFrame([(bytearray(b"z\xff"),)], "b binary")
    source.selectExpr("CAST(b AS STRING) AS k", "2 AS v").createOrReplaceTempView("bad_source")
    spark.sql(
        f"MERGE INTO indextables.`{directory}` t USING bad_source s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET t.v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES ('new', 0)"
    ).collect()
    spark.catalog.dropTempView("bad_source")
    found = spark.read.format("indextables").load(directory).selectExpr("hex(k) AS k", "v").collect()
    assert sorted(map(tuple, found)) == [("61FF", 1), ("7AFF", 2)]
