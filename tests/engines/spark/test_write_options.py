"""Options of a write: which setting wins, and what is refused."""

from __future__ import annotations

import logging

import pytest

from indextables.engines.spark.place.tables_and_options import settings_of
from indextables.engines.spark.place.tables_and_options import WriteOptions
from indextables.errors import ConfigError
from indextables.table.table import Table

LENGTH = "spark.indextables.stats.truncation.maxLength"


@pytest.fixture
def levels(spark):
    """Sets the option on a level, and takes all of it back afterwards."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()

    class Levels:
        def hadoop(self, value):
            hadoop.set(LENGTH, value)

        def session(self, value):
            spark.conf.set(LENGTH, value)

        def clear(self):
            hadoop.unset(LENGTH)
            spark.conf.unset(LENGTH)

    yield Levels()
    Levels().clear()


def kept(path):
    """The longest text the newest split's statistics keep; 0 if none."""
    stats = Table(path).snapshot().splits()[-1].stats
    return max((len(value) for value in stats.max_values.values()), default=0)


def test_each_level_wins_over_the_ones_below_it(spark, tmp_path, levels):
    """Write option, then session, then Hadoop, then the table's property, then the default."""
    path = str(tmp_path / "t")
    text = spark.createDataFrame([("x" * 500,)], "t string").coalesce(1)
    properties = {LENGTH: "1", "spark.indextables.stats.truncation.strategy": "bound"}
    Table.create(path, text.schema, properties=properties)

    def append(**options):
        text.write.format("indextables").mode("append").options(**options).save(path)
        return kept(path)

    assert append() == 1
    levels.hadoop("20")
    assert append() == 20
    levels.session("30")
    assert append() == 30
    assert append(**{LENGTH: "40"}) == 40
    assert append(**{LENGTH.lower(): 50}) == 50
    levels.clear()
    assert append() == 1
    for length, found in ((1024, 1024), (1025, 0)):
        plain = str(tmp_path / str(length))
        spark.createDataFrame([("x" * length,)], "t string").write.format("indextables").save(plain)
        assert kept(plain) == found


def test_keys_are_compared_without_case_on_every_level(spark, levels):
    """Spark lower-cases some keys on their way."""
    levels.session("30")
    assert settings_of(spark, {LENGTH.upper(): "40"}) == {LENGTH.upper(): "40"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({LENGTH: "many"}, "cannot be 'many'"),
        ({"spark.indextables.stats.truncation.strategy": "truncate", LENGTH: "12"}, "truncate"),
        ({"mergeSchema": "yes"}, "true or false"),
        ({"partitionOverwriteMode": "sometimes"}, "static"),
        ({"mergeSchemas": "true"}, "did you mean 'mergeSchema'"),
        ({"replaceWhere": "id = 1"}, "overwrite"),
        ({"txnAppId": "a"}, "both must be given"),
    ],
)
def test_a_bad_option_is_an_error_before_anything_is_written(spark, tmp_path, options, message):
    """ConfigError with what the option can be, and an empty directory."""
    with pytest.raises(ConfigError, match=message):
        spark.range(3).write.format("indextables").options(**options).save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_an_unknown_option_of_ours_is_a_warning_with_a_suggestion(spark, tmp_path, caplog):
    """A newer version may know it; a typing error should still be seen."""
    key = "spark.indextables.stats.truncation.maxlenght"
    with caplog.at_level(logging.WARNING, "indextables"):
        spark.range(3).write.format("indextables").option(key, 1).save(str(tmp_path / "t"))
    assert f"Unknown option '{key}' is ignored; did you mean '{LENGTH}'?" in caplog.text


def test_a_truncation_override_for_a_column_the_table_lacks_is_a_warning(spark, tmp_path, caplog):
    """The same one as for a write without Spark."""
    key = "spark.indextables.stats.truncation.column.idd.maxLength"
    with caplog.at_level(logging.WARNING, "indextables"):
        spark.range(3).write.format("indextables").option(key, 5).save(str(tmp_path / "t"))
    said = [m for m in caplog.messages if "column.idd" in m.lower()]
    assert len(said) == 1
    assert said[0].endswith("is ignored: no column 'idd'; did you mean 'id'?")


def test_options_are_sorted_by_who_reads_them():
    """Ours, those of this library's settings, and those of Spark's Parquet writer."""
    options = WriteOptions.of({"MERGESCHEMA": "True", LENGTH: "1", "compression": "zstd", "path": "/x"})
    assert (options.merge_schema, options.path) == (True, "/x")
    assert options.settings == {LENGTH: "1"}
    assert options.parquet == {"compression": "zstd"}
