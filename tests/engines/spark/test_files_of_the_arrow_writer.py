"""Files of the embedded writer in Spark's own Parquet reader: vectorised, and every value the same."""

from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from support.nasty import nasty_table


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Every type, nested ones too, as one split."""
    data = nasty_table()
    pairs = pa.array([[("k", 1)]] * data.num_rows, pa.map_(pa.string(), pa.int64()))
    data = data.append_column("li", pa.array([[{"q": 1.5}, None]] * data.num_rows)).append_column(
        "mp", pairs
    )
    table = it.Table.create(tmp_path_factory.mktemp("arrow") / "t", data.schema)
    table.append(data)
    (split,) = table.snapshot().splits()
    return data, str(Path(table.uri) / split.path)


def test_spark_reads_every_type_vectorised(spark, written):
    """Timestamps with and without a zone, decimals of both widths, lists, maps and structs."""
    data, file = written
    frame = spark.read.parquet(file)
    found = frame.toArrow()
    assert "Batched: true" in frame._jdf.queryExecution().executedPlan().toString()
    for name in data.schema.names:
        assert repr(found.column(name).to_pylist()) == repr(data.column(name).to_pylist()), name


@pytest.mark.parametrize(
    "where", ["d > 5", "f > 5", "d = double('NaN')", "NOT (f < 1e30)", "d >= 9007199254740992"]
)
def test_spark_loses_no_nan_row_to_the_files_statistics(spark, written, where):
    """A float column with NaN has no Parquet statistics, so Spark's row group filter cannot hide it."""
    data, file = written
    in_memory = spark.createDataFrame(data.select(["d", "f"])).where(where).count()
    assert spark.read.parquet(file).where(where).count() == in_memory > 0
