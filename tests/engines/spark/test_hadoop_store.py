"""The Hadoop store, through Hadoop's own client, against a name node that speaks WebHDFS."""

from __future__ import annotations

import pytest

from indextables.engines.spark.place.hadoop import HadoopStore
from indextables.errors import ObjectNotFoundError, ReadOnlyStoreError, StorageError

# the promises every store makes; pytest runs them here with the fixture below
from storage.test_conformance import (  # noqa: F401
    test_a_deleted_key_is_free_again,
    test_a_listing_is_in_byte_order_of_whole_keys,
    test_a_prefix_is_text_not_a_directory,
    test_a_range_ends_where_the_object_ends,
    test_a_store_travels_to_another_process,
    test_an_empty_object_is_an_object,
    test_an_empty_store_lists_nothing,
    test_of_eight_threads_exactly_one_wins,
    test_only_a_missing_object_is_not_found,
    test_put_if_absent_never_replaces,
    test_put_replaces,
    test_there_are_no_temporaries_after_normal_work,
    test_what_is_no_key_is_refused_before_anything_happens,
    test_what_is_put_is_what_is_read,
)
from support.webhdfs import webhdfs  # noqa: F401 - a fixture

ODD_KEYS = [
    "data/0-ab/day=a%2Fb%3A c/x.parquet",
    "a b&c=d?e#f+g;h,i@j'k\"l",
    "é/ü/日本/😀",
    ".hidden",
    "%25%2e%2e/x",
]


@pytest.fixture
def store(spark, webhdfs):  # noqa: F811
    """An empty directory on the name node."""
    return HadoopStore(webhdfs.uri("my table%20é"))


@pytest.mark.parametrize("key", ODD_KEYS, ids=ascii)
def test_a_name_goes_to_hadoop_and_back_unchanged(store, key):
    """Neither Hadoop's Path nor the URI in its listings may encode or decode a name on the way."""
    store.put_if_absent(key, b"x")
    assert [meta.key for meta in store.list("")] == [key]
    assert store.get(key) == b"x"


def test_a_colon_is_refused_before_anything_is_written(store):
    """Hadoop would read it as the end of a scheme."""
    with pytest.raises(StorageError, match="colon"):
        store.put("data/12:30", b"x")
    assert list(store.list("")) == []


def test_a_rename_whose_answer_is_lost_is_a_failure_that_hides_nothing(store, webhdfs):  # noqa: F811
    """The writer cannot know; reading the object back shows that it is there, whole."""
    webhdfs.misbehaviour.lose_answers = 1
    with pytest.raises(StorageError) as caught:
        store.put_if_absent("log/0", b"all of it")
    assert not isinstance(caught.value, ObjectNotFoundError)
    assert store.get("log/0") == b"all of it"


def test_a_scheme_whose_rename_is_not_exclusive_can_only_be_read(spark, tmp_path):
    """Hadoop's local file system looks first and renames then: two writers can both win."""
    (tmp_path / "x").write_bytes(b"here")
    store = HadoopStore(f"file://{tmp_path}")
    assert store.get("x") == b"here"
    assert [meta.key for meta in store.list("")] == ["x"]
    for put in (store.put, store.put_if_absent):
        with pytest.raises(ReadOnlyStoreError, match="file://"):
            put("y", b"no")
    assert [meta.key for meta in store.list("")] == ["x"]


def test_a_viewfs_is_judged_by_what_it_points_to(spark, tmp_path, webhdfs):  # noqa: F811
    """The same viewfs may hold a directory that can be written safely and one that cannot."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    prefix = "fs.viewfs.mounttable.cluster.link"
    conf.set(f"{prefix}./safe", webhdfs.uri("mounted"))
    conf.set(f"{prefix}./local", f"file://{tmp_path}")
    webhdfs.mkdirs("/" + conf.get(f"{prefix}./safe").split("/", 3)[3])
    HadoopStore("viewfs://cluster/safe/t").put_if_absent("log/0", b"1")
    assert HadoopStore("viewfs://cluster/safe/t").get("log/0") == b"1"
    with pytest.raises(ReadOnlyStoreError):
        HadoopStore("viewfs://cluster/local/t").put_if_absent("log/0", b"1")
