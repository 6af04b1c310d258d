"""Hundreds of generated queries through the table and over plain Parquet of the same rows: equal results."""

from __future__ import annotations

import itertools
import os

import pytest
from support.spark_queries import Generator, rows
from support.spark_tables import write_table

QUERIES = int(os.environ.get("INDEXTABLES_DIFFERENTIAL_QUERIES", "320"))
BATCH = 20


@pytest.fixture(scope="module")
def sources(spark, tmp_path_factory):
    """The same rows as a plain table in twenty splits, a partitioned one, and a directory of Parquet."""
    path = tmp_path_factory.mktemp("differential")
    data = rows(seed=7)
    write_table(path / "plain", data, splits=20)
    write_table(path / "parts", data, splits=4, partition_by=["p", "q"])
    spark.createDataFrame(data).coalesce(1).write.parquet(str(path / "parquet"))
    read = spark.read.format("indextables")
    read.load(str(path / "plain")).createOrReplaceTempView("plain")
    read.load(str(path / "parts")).select(data.column_names).createOrReplaceTempView("parts")
    spark.read.parquet(str(path / "parquet")).createOrReplaceTempView("truth")


def digests(spark, queries):
    """Of each query the number of its rows and a hash that does not depend on their order, in few jobs."""
    parts = []
    for number, text in queries:
        columns = spark.sql(text).columns
        named = ", ".join(f"c{i}" for i in range(len(columns)))
        inner = f"SELECT count(*) n, bit_xor(xxhash64({named})) x, sum(hash({named})) s FROM ({text}) AS t ({named})"
        parts.append(f"SELECT {number} AS number, n, x, s FROM ({inner})")
    found = spark.sql(" UNION ALL ".join(parts)).collect()
    return {row.number: (row.n, row.x, row.s) for row in found}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_query_gives_the_rows_that_plain_parquet_gives(spark, sources):
    """Filters, joins, aggregates, windows and subqueries over all types, with NULL and NaN."""
    texts = list(enumerate(Generator(seed=11).queries(QUERIES)))
    wrong = []
    for batch in itertools.batched(texts, BATCH) if hasattr(itertools, "batched") else _batches(texts):
        expected = digests(spark, [(n, text.format(t="truth")) for n, text in batch])
        for table in ("plain", "parts"):
            found = digests(spark, [(n, text.format(t=table)) for n, text in batch])
            wrong += [
                (table, text, expected[n], found[n]) for n, text in batch if found[n] != expected[n]
            ]
    assert wrong == []


def _batches(items):
    return [items[i : i + BATCH] for i in range(0, len(items), BATCH)]
