"""The table that most tests of the command look at."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it

DAYS = (dt.date(2024, 1, 1), dt.date(2024, 1, 2))


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """A partitioned table of four commits after its creation, 100 rows each, with long texts."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
    table = it.Table.create(tmp_path / "articles", schema, partition_by=["day"])
    for i in range(4):
        ids = range(i * 100, i * 100 + 100)
        rows = {"id": ids, "text": [f"{'x' * 2000}{j}" for j in ids], "day": [DAYS[i % 2]] * 100}
        table.append(pa.table(rows, schema=schema))
    return tmp_path / "articles"
