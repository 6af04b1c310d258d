"""Paths and URIs as Spark's users write them."""

from __future__ import annotations

import pytest

from indextables.engines.spark.place.hadoop import HadoopStore
from indextables.engines.spark.place.hadoop import place_of
from indextables.errors import ObjectExistsError, StorageError
from support.webhdfs import webhdfs  # noqa: F401 - a fixture


@pytest.fixture
def hadoop(spark):
    """The Hadoop configuration, restored afterwards."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    set_keys = {}

    class Settings:
        def set(self, key, value):
            set_keys.setdefault(key, conf.get(key))
            conf.set(key, value)

    yield Settings()
    for key, before in set_keys.items():
        conf.unset(key) if before is None else conf.set(key, before)


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/tables/a b%20", "file:///tables/a b%20"),
        ("file:///tables/a%20b", "file:///tables/a b"),
        ("file:/tables/t/", "file:///tables/t"),
        ("s3a://bucket/t/", "s3a://bucket/t"),
        ("s3://bucket/t", "s3a://bucket/t"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("webhdfs://127.0.0.1:1/t", "webhdfs://127.0.0.1:1/t"),
    ],
)
def test_a_place_has_a_store_and_hadoops_own_name(spark, path, root):
    """Spark writes the data under one name, the log goes through the store."""
    assert place_of(spark, path).root == root


def test_a_path_without_a_scheme_is_one_of_the_default_file_system(spark, hadoop, webhdfs):  # noqa: F811
    """As for every other path that Spark is given."""
    hadoop.set("fs.defaultFS", f"webhdfs://{webhdfs.address}")
    place = place_of(spark, "/tables/t")
    assert isinstance(place.store, HadoopStore)
    assert place.root == f"webhdfs://{webhdfs.address}/tables/t"


def test_s3_takes_its_credentials_from_hadoop(spark, hadoop, s3_server):
    """A cluster that is set up for s3a:// needs no second set of options for the log."""
    hadoop.set("fs.s3a.endpoint", s3_server.endpoint)
    hadoop.set("fs.s3a.access.key", "wrong for this bucket")
    hadoop.set(f"fs.s3a.bucket.{s3_server.bucket}.access.key", "test")
    hadoop.set("fs.s3a.secret.key", "test")
    store = place_of(spark, s3_server.uri().replace("s3://", "s3a://")).store
    store.put_if_absent("log/0", b"1")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("log/0", b"2")


@pytest.mark.parametrize(("path", "why"), [("memory://x/t", "JVM"), ("nosuch://x/t", "no store")])
def test_a_place_spark_cannot_reach_is_one_clear_error(spark, path, why):
    """Not a class that Java did not find."""
    with pytest.raises(StorageError, match=why):
        place_of(spark, path)
