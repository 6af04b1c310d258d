"""A table in Daft: its filters and columns reach the planner, and only the files they need are opened.

pip install indextables daft
python examples/daft_source.py

Daft needs an older PyArrow than the tests of this library run with, so this is run by hand.
"""

import math
from collections.abc import AsyncIterator
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

import daft
import pyarrow as pa
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch
from daft.schema import Schema

import indextables as it


class Part(DataSourceTask):
    """One split, or one slice whose files are merged."""

    def __init__(self, fragment: Any, columns: list[str]) -> None:
        self.fragment, self.columns = fragment, columns

    @property
    def schema(self) -> Schema:
        whole = self.fragment.physical_schema
        return Schema.from_pyarrow_schema(pa.schema([whole.field(name) for name in self.columns]))

    async def read(self) -> AsyncIterator[RecordBatch]:
        for batch in self.fragment.to_batches(columns=self.columns):
            yield RecordBatch.from_arrow_record_batches([batch], batch.schema)


class TableSource(DataSource):
    """One version of a table; Daft filters the rows itself, we leave out files."""

    def __init__(self, table: it.Table) -> None:
        self.dataset = table.to_dataset()

    @property
    def name(self) -> str:
        return repr(self.dataset)

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self.dataset.schema)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[DataSourceTask]:
        wanted, columns = None, pushdowns.columns or self.dataset.schema.names
        if pushdowns.filters is not None:
            columns = [*columns, *pushdowns.filter_required_column_names()]
            with suppress(Exception):  # what PyArrow has no form for keeps every file
                wanted = pushdowns.filters.to_arrow_expr()
        for fragment in self.dataset.get_fragments(wanted):
            yield Part(fragment, list(dict.fromkeys(columns)))


SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("score", pa.float64()), ("city", pa.string())]
)

with TemporaryDirectory() as directory:
    table = it.Table.create(f"{directory}/visits", SCHEMA, record_key=["id"])
    for start in (0, 1000, 2000):
        ids = range(start, start + 1000)
        scores = [None if i % 7 == 0 else math.nan if i % 11 == 0 else i / 10 for i in ids]
        table.append(pa.table({"id": ids, "score": scores, "city": ["Lima", "Oslo"] * 500}, SCHEMA))
    table.upsert(pa.table({"id": [1500], "score": [99.5], "city": ["Quito"]}, SCHEMA))

    visits = TableSource(table).read()
    with it.query_stats() as stats:
        found = visits.where((daft.col("id") >= 2990) & (daft.col("city") == "Oslo")).sort("id")
        assert found.to_pydict()["id"] == [2991, 2993, 2995, 2997, 2999]
    print("data files opened:", stats.data_files_opened, "of", table.snapshot().num_files)
    assert stats.data_files_opened == 1

    everything = daft.from_arrow(table.scan().to_arrow())
    score = daft.col("score")
    for wanted in (
        score > 250,
        ~(score > 250),
        score < 5,
        score.is_null(),
        score == daft.lit(math.nan),
    ):
        rows = [frame.where(wanted).sort("id").to_arrow() for frame in (visits, everything)]
        assert repr(rows[0].to_pylist()) == repr(rows[1].to_pylist()), wanted

    # without a source: the planner gets the condition, Daft the rows
    few = daft.from_arrow(table.scan("id < 10", columns=["id"]).to_arrow())
    assert few.count_rows() == 10
