"""The machine of `tests/table/test_keyed_model.py` with Spark reading and writing, for a few short histories.

Faults and races are left to the embedded engine: they need a store that Spark does not go through.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import indextables as it
from support.keyed_model import KeyedMachine, Row


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_spark_keeps_up_with_a_dict_of_rows(spark, mode):
    """UPSERT as a mode and as MERGE, DELETE, COMPACT, and every read, in any order with all the rest."""
    with tempfile.TemporaryDirectory(prefix="keyed-") as directory:

        class SparkMachine(KeyedMachine):
            """Changes and reads through SQL and DataFrames."""

            only_mode = mode
            crash = race = vacuum_at_once = repair = reopen = evolve = None

            def new_uri(self) -> str:
                return str(Path(directory) / uuid4().hex)

            def upsert(self, table: it.Table, data: pa.Table) -> Any:
                if not data.num_rows:
                    return super().upsert(table, data)
                frame = spark.createDataFrame(data)
                if len(self.versions) % 2 or data.num_columns < len(self.names):
                    return frame.write.format("indextables").mode("upsert").save(self.uri)
                view = f"new_rows_{uuid4().hex}"
                frame.createOrReplaceTempView(view)
                on = " AND ".join(f"t.{name} = s.{name}" for name in self.key)
                try:
                    return spark.sql(
                        f"MERGE INTO indextables.`{self.uri}` t USING {view} s ON {on} "
                        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                    ).collect()
                finally:
                    spark.catalog.dropTempView(view)

            def delete(self, table: it.Table, where: str) -> Any:
                return spark.sql(f"DELETE FROM indextables.`{self.uri}` WHERE {where}").collect()

            def compact(self, table: it.Table) -> Any:
                return spark.sql(f"COMPACT INDEXTABLES '{self.uri}'").collect()

            def rows(self, where: str | None = None, version: int | None = None) -> list[Row]:
                reader = spark.read.format("indextables")
                if version is not None:
                    reader = reader.option("versionAsOf", version)
                frame = reader.load(self.uri)
                return (frame if where is None else frame.where(where)).toArrow().to_pylist()

        run_state_machine_as_test(
            seed(4)(SparkMachine),  # short histories with deletes and merged reads in them
            settings=settings(
                max_examples=max(2, settings().max_examples // 1000),
                stateful_step_count=9,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
