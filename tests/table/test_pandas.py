"""pandas frames in and out of tables: what a frame holds is what is written, and what is read."""

from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import SchemaMismatchError

SCHEMA = pa.schema([("k", pa.int64()), ("a", pa.int64())])
ROWS = [{"k": 5, "a": 1}, {"k": 6, "a": 2}]


@pytest.fixture
def table():
    return it.Table.create(f"memory://{uuid4()}", SCHEMA)


@pytest.mark.parametrize("merge_schema", [False, True])
def test_a_named_index_is_a_column(table, merge_schema):
    """What set_index took out of the columns is written, and not NULL in its place."""
    table.append(pd.DataFrame(ROWS).set_index("k"), merge_schema=merge_schema)
    assert table.scan().to_arrow().to_pylist() == ROWS


def test_only_levels_with_a_name_are_columns(table):
    """An index that nobody named is the place of a row, and stays behind."""
    levels = pd.MultiIndex.from_tuples([(8, 5), (9, 6)], names=[None, "k"])
    table.append(pd.DataFrame({"a": [1, 2]}, index=levels))
    table.append(pd.DataFrame(ROWS, index=[7, 7]))
    table.append(pd.DataFrame(ROWS, index=pd.MultiIndex.from_tuples([(1, 2), (3, 4)])))
    assert table.scan().to_arrow().to_pylist() == ROWS * 3


def test_an_index_the_table_does_not_have_is_named(table):
    """Rather than left out without a word."""
    with pytest.raises(SchemaMismatchError, match="'day' is not in the table"):
        table.append(pd.DataFrame(ROWS, index=pd.Index([1, 2], name="day")))


def test_an_index_with_the_name_of_a_column_is_refused(table):
    """Which of the two is meant nobody knows."""
    with pytest.raises(SchemaMismatchError):
        table.append(pd.DataFrame(ROWS, index=pd.Index([1, 2], name="k")))
    assert table.version == 0


def test_integers_beside_null_keep_their_digits_in_pandas(table):
    """As doubles they would be other numbers; where doubles hold them they stay what pandas makes them."""
    table.append(pa.table({"k": [2**53 + 1, None, -(2**63)], "a": [1, None, 2**53]}, SCHEMA))
    for frame in (table.scan().to_pandas(), table.read(it.QueryBuilder()).data):
        assert frame["k"].tolist() == [2**53 + 1, pd.NA, -(2**63)]
        assert frame["a"].dtype == "float64"
