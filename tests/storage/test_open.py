"""From what a user writes to a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from indextables.errors import ConfigError, StorageError
from indextables.storage import LogStore, open_store
from indextables.storage.local import LocalStore
from indextables.storage.memory import MemoryStore
from indextables.storage.object_store import ObjectStore

KEY = {"access_key_id": "k", "secret_access_key": "s"}
AZURE = {"account_key": "a2V5"}
STORES = [
    ("/t", {}, LocalStore, "/t"),
    ("/t/", {}, LocalStore, "/t"),
    ("/a/../t/.", {}, LocalStore, "/t"),
    ("/a b/100%/é", {}, LocalStore, "/a b/100%/é"),
    ("/a%20b", {}, LocalStore, "/a%20b"),
    ("file:///a%20b", {}, LocalStore, "/a b"),
    ("file:/t", {}, LocalStore, "/t"),
    ("file://localhost/t", {}, LocalStore, "/t"),
    (Path("/t"), {}, LocalStore, "/t"),
    (Path("/a:b"), {}, LocalStore, "/a:b"),
    ("memory://m", {}, MemoryStore, "memory://m"),
    ("memory://m/a/b/", {}, MemoryStore, "memory://m/a/b"),
    ("s3://b", KEY, ObjectStore, "s3://b"),
    ("s3://b/my table/", KEY, ObjectStore, "s3://b/my table"),
    ("s3a://b/t", KEY, ObjectStore, "s3a://b/t"),
    ("gs://b/t", {"skip_signature": True}, ObjectStore, "gs://b/t"),
    ("az://c/t", {"account_name": "a", **AZURE}, ObjectStore, "az://c/t"),
    ("abfss://c@a.dfs.core.windows.net/t", AZURE, ObjectStore, "abfss://c@a.dfs.core.windows.net/t"),
]


@pytest.mark.parametrize(
    ("uri", "options", "kind", "expected"), STORES, ids=[str(case[0]) for case in STORES]
)
def test_a_location_opens_the_right_store(uri, options, kind, expected):
    """Opening makes no request and touches no disk; the store says where it is as the user wrote it."""
    store = open_store(uri, options=options)
    assert type(store) is kind
    assert store.uri == expected
    assert isinstance(store, LogStore)


@pytest.mark.parametrize(
    "uri",
    [
        "hdfs://n/t",
        "ftp://h/t",
        "s3:/b/t",
        "s3://",
        "s3:///t",
        "file://host/t",
        "s3://b/a/../../x",
        "s3://b/a//b",
    ],
)
def test_a_location_without_a_store_says_so(uri):
    """A typed error that names the location."""
    with pytest.raises(StorageError) as caught:
        open_store(uri, options=KEY)
    assert uri in str(caught.value) or caught.value.key in uri


def test_a_relative_name_with_a_colon_is_a_local_path(tmp_path, monkeypatch):
    """Only Path says for sure that 'a:b' is no URI; a plain 'table' is relative."""
    monkeypatch.chdir(tmp_path)
    assert open_store("table").uri == str(tmp_path / "table")
    assert open_store(Path("a:b")).uri == str(tmp_path / "a:b")


def test_an_unknown_option_is_a_config_error():
    """A misspelt option never means the default silently."""
    with pytest.raises(ConfigError, match="acces_key"):
        open_store("s3://b/t", options={"acces_key": "x"})


def test_a_missing_account_is_an_error_with_a_hint():
    """What the client cannot be built without is asked for at once."""
    with pytest.raises(StorageError, match="Account") as caught:
        open_store("az://c/t")
    assert "options" in caught.value.hint


def test_stores_in_memory_with_one_name_share_their_objects():
    """Two handles, one space; a prefix is a directory of it, another name another space."""
    open_store("memory://shared-here").put("t/x", b"1")
    assert open_store("memory://shared-here/t").get("x") == b"1"
    assert list(open_store("memory://shared-there").list("")) == []
    assert list(open_store("memory://shared-here/other").list("")) == []
