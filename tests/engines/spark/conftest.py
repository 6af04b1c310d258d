"""One local Spark session for every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test in this folder needs Java; `support.one_worker` keeps them on one worker."""
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(pytest.mark.spark)


def _takes_and_gives_arrow() -> None:
    """Lets PySpark 3.5 make a DataFrame of Arrow data and back, as newer ones do and the tests suppose."""
    from pyspark.sql import DataFrame, SparkSession

    from indextables.engines.spark.versions import seam

    if hasattr(DataFrame, "toArrow"):
        return
    original = SparkSession.createDataFrame

    def create(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, pa.Table):
            return seam.from_arrow(self, data)
        return original(self, data, *args, **kwargs)

    SparkSession.createDataFrame = create
    DataFrame.toArrow = lambda self: seam.to_arrow(self)


@pytest.fixture
def configured(spark: Any) -> Iterator[Any]:
    """Sets a setting of the session until the end of the test."""
    before: dict[str, str] = {}

    def configure(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield configure
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A classic session on two cores, with tables of this project enabled."""
    from pyspark.sql import SparkSession

    from indextables.engines.spark.session import enable

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        # hundreds of small queries, none of which runs for long: compiling them well costs more than it gives
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.maxMetadataStringLength", "1000")  # temporary directories have long names
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    _takes_and_gives_arrow()
    yield enable(session)
    session.stop()
