"""Properties and the description of a table change in one commit, unless rows would then mean something else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from indextables.errors import ConfigError
from indextables.table.table import Table

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), ("s", pa.string())])
STATS = "spark.indextables.stats.columns"


def made(path, **options):
    return Table.create(str(path), SCHEMA, **options)


def test_properties_are_set_and_removed_in_one_commit_each(tmp_path):
    """Others stay as they are, also those that a writer set in between."""
    table, other = made(tmp_path, properties={"a": "1"}), Table(str(tmp_path))
    other.set_properties({"b": "2"})
    assert table.set_properties({"c": True}, remove=["a", "never there"]).version == 2
    assert dict(Table(str(tmp_path)).properties) == {"b": "2", "c": "true"}
    history = table.history()[0]
    assert history.parameters["properties"] == {"c": "true"}


def test_nothing_is_committed_if_nothing_changes(tmp_path):
    """A job that sets its properties each day leaves no trail of versions."""
    table = made(tmp_path, properties={"a": "1"})
    assert not table.set_properties({"a": "1"}, remove=["b"]).committed
    assert table.version == 0


@pytest.mark.parametrize(
    ("properties", "remove"),
    [
        ({"recordKey": '["s"]'}, []),
        ({"mergeMode": "columns"}, []),
        ({}, ["recordKey"]),
        ({"record_key": "s"}, []),
        ({"spark.indextables.stats.truncation.maxLength": "many"}, []),
    ],
)
def test_a_property_that_would_change_what_rows_mean_is_refused(tmp_path, properties, remove):
    """Neither the key of a table, nor a value with which every later write would fail."""
    table = made(tmp_path, record_key=["n"])
    with pytest.raises(ConfigError):
        table.set_properties(properties, remove=remove)
    assert table.version == 0
