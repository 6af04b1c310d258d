"""S3, against a real server process: races, lost answers, and servers that cannot be trusted."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from support.s3 import CREDENTIALS, Misbehaviour, free_port, misbehaving, options_for

from indextables.errors import ObjectExistsError, ObjectNotFoundError, ReadOnlyStoreError, StorageError
from indextables.storage import open_store

RACER = """
import sys, time
from indextables.errors import ObjectExistsError
from indextables.storage import open_store
uri, endpoint, name, start = sys.argv[1:4] + [float(sys.argv[4])]
store = open_store(uri, options={"endpoint": endpoint, "access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"})
while time.time() < start:
    pass
for number in range(25):
    try:
        store.put_if_absent(f"_transaction_log/{number:018}.json", name.encode() * 1000)
        print(number)
    except ObjectExistsError:
        pass
"""


def test_of_two_processes_exactly_one_wins_each_version(s3_server):
    """Two writers race for 25 versions on S3: each version has one winner, whose bytes are there."""
    uri, start = s3_server.uri("race"), time.time() + 2
    racers = {
        name: subprocess.Popen(
            [sys.executable, "-c", RACER, uri, s3_server.endpoint, name, str(start)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    }
    won = {
        name: [int(n) for n in racer.communicate(timeout=60)[0].split()]
        for name, racer in racers.items()
    }
    assert sorted(won["one"] + won["two"]) == list(range(25))
    store = open_store(uri, options=s3_server.options)
    for name, numbers in won.items():
        assert all(store.get(f"_transaction_log/{n:018}.json") == name.encode() * 1000 for n in numbers)


def test_a_server_that_ignores_conditions_is_read_only(s3_server):
    """Two exclusive puts of one key succeed there: nothing is written, and reading still works."""
    uri = s3_server.uri("careless")
    open_store(uri, options=s3_server.options).put("x", b"1")
    with misbehaving(s3_server, Misbehaviour(ignore_conditions=True)) as careless:
        store = open_store(uri, options=careless.options)
        assert store.get("x") == b"1"
        writes = [
            lambda: store.put_if_absent("log/0", b"x"),
            lambda: store.put("log/0", b"x"),
            lambda: store.filesystem().open_output_stream("log/0"),
        ]
        for write in writes:
            with pytest.raises(ReadOnlyStoreError, match="ignores conditional writes") as caught:
                write()
        assert caught.value.endpoint == careless.endpoint
        assert "If-None-Match" in caught.value.hint
        assert [meta.key for meta in store.list("")] == ["x"]
    assert _everything(s3_server, uri) == ["x"]


def test_a_custom_endpoint_is_asked_once_and_only_before_a_write(s3_server):
    """Reading asks nothing; the first write asks with two puts and cleans up; later ones do not ask."""
    how, uri = Misbehaviour(), s3_server.uri("asked")
    with misbehaving(s3_server, how) as proxy:
        store = open_store(uri, options=proxy.options)
        assert list(store.list("")) == []
        assert [request for request in how.requests if request.startswith("PUT")] == []
        store.put_if_absent("log/0", b"x")
        assert sum(".indextables-" in r and r.startswith("PUT") for r in how.requests) == 2
        how.requests.clear()
        open_store(uri, options=proxy.options).put_if_absent("log/1", b"x")
        assert len(how.requests) == 1
    assert _everything(s3_server, uri) == ["log/0", "log/1"]


def test_after_a_lost_answer_the_own_object_looks_like_anothers(s3_server):
    """The server stores and says 500, the client repeats and finds its own object: why callers read back."""
    how = Misbehaviour(lose_answers=1, only="log/0")
    with misbehaving(s3_server, how) as proxy:
        store = open_store(s3_server.uri("lost"), options=proxy.options)
        with pytest.raises(ObjectExistsError):
            store.put_if_absent("log/0", b"mine")
        assert how.lose_answers == 0
        assert store.get("log/0") == b"mine"


def test_when_every_answer_is_lost_the_error_is_not_a_conflict(s3_server):
    """A put that never got a clear answer raises StorageError, though the object may be there."""
    how = Misbehaviour(lose_answers=100, only="plain")
    with misbehaving(s3_server, how) as proxy:
        store = open_store(s3_server.uri("lost"), options=proxy.options)
        with pytest.raises(StorageError) as caught:
            store.put("plain", b"mine")
        assert not isinstance(caught.value, ObjectExistsError | ObjectNotFoundError)
        assert store.get("plain") == b"mine"


def test_a_missing_bucket_is_not_a_missing_object(s3_server):
    """A typing error in the bucket's name fails every call: REPAIR must not take it for lost files."""
    store = open_store("s3://no-such-bucket/t", options=s3_server.options)
    calls = [
        lambda: store.get("x"),
        lambda: store.get_range("x", 0, 1),
        lambda: store.head("x"),
        lambda: list(store.list("")),
        lambda: store.delete("x"),
        lambda: store.put("x", b"1"),
        lambda: store.put_if_absent("x", b"1"),
    ]
    for call in calls:
        with pytest.raises(StorageError) as caught:
            call()
        assert not isinstance(caught.value, ObjectNotFoundError | ObjectExistsError)


def test_a_server_that_is_down_is_an_error_of_one_line():
    """Not 'missing', not pages of debug output, and soon enough."""
    store = open_store("s3://b/t", options=options_for(f"http://127.0.0.1:{free_port()}"))
    for call in (
        lambda: store.get("x"),
        lambda: store.head("x"),
        lambda: store.put_if_absent("x", b"1"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert not isinstance(caught.value, ObjectNotFoundError | ObjectExistsError)
        assert "\n" not in caught.value.message
        assert "Debug" not in str(caught.value)


def test_markers_of_directories_are_not_objects(s3_server):
    """Consoles and Hadoop leave empty objects named 'data/'; a listing does not show them as files."""
    uri = s3_server.uri("markers")
    prefix = uri.removeprefix(f"s3://{s3_server.bucket}/")
    for key in ("", "data/", "empty/"):
        s3_server.boto().put_object(Bucket=s3_server.bucket, Key=f"{prefix}/{key}", Body=b"")
    store = open_store(uri, options=s3_server.options)
    store.put("data/x", b"1")
    store.put("data/really-empty", b"")
    assert [meta.key for meta in store.list("")] == ["data/really-empty", "data/x"]


def test_an_object_that_no_key_can_name_fails_the_listing_with_its_name(s3_server):
    """The client cannot step over 'a//b'; the error says which object to remove."""
    uri = s3_server.uri("slashes")
    prefix = uri.removeprefix(f"s3://{s3_server.bucket}/")
    s3_server.boto().put_object(Bucket=s3_server.bucket, Key=f"{prefix}/a//b", Body=b"")
    with pytest.raises(StorageError, match="a//b") as caught:
        list(open_store(uri, options=s3_server.options).list(""))
    assert "delete" in caught.value.hint


def test_tables_whose_names_start_alike_are_apart(s3_server):
    """`s3://b/t` does not show what is in `s3://b/t2`."""
    uri = s3_server.uri("t")
    open_store(f"{uri}2", options=s3_server.options).put("x", b"1")
    assert list(open_store(uri, options=s3_server.options).list("")) == []


def test_a_probe_that_died_is_hidden_and_found(s3_server):
    """A process killed between its two questions leaves a temporary object for vacuum."""
    uri = s3_server.uri("probe")
    prefix = uri.removeprefix(f"s3://{s3_server.bucket}/")
    name = f".indextables-{'0' * 32}.tmp"
    s3_server.boto().put_object(Bucket=s3_server.bucket, Key=f"{prefix}/{name}", Body=b"?")
    store = open_store(uri, options=s3_server.options)
    assert list(store.list("")) == []
    assert list(store.stale_temporaries(modified_before_ms=0)) == []
    assert [meta.key for meta in store.stale_temporaries(modified_before_ms=2**62)] == [name]
    store.delete(name)
    assert list(store.stale_temporaries(modified_before_ms=2**62)) == []


def test_credentials_and_endpoint_can_come_from_the_environment(s3_server, monkeypatch):
    """Nothing but the URI is needed where AWS's variables are set; http:// needs no second permission."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    store = open_store(s3_server.uri("environment"))
    store.put_if_absent("x", b"1")
    assert store.get("x") == b"1"


def test_switched_off_conditions_make_a_store_read_only(s3_server):
    """Whoever turns conditional writes off cannot commit; the hint names the option."""
    store = open_store(
        s3_server.uri("off"), options={**s3_server.options, "conditional_put": "disabled"}
    )
    with pytest.raises(ReadOnlyStoreError, match="exclusively") as caught:
        store.put_if_absent("x", b"1")
    assert "conditional_put" in caught.value.hint


def test_plain_http_can_be_forbidden(s3_server):
    """An explicit allow_http=False wins over what the endpoint's spelling implies."""
    options = {"endpoint": s3_server.endpoint, **CREDENTIALS, "allow_http": False}
    with pytest.raises(StorageError):
        open_store(s3_server.uri("strict"), options=options).get("x")


def _everything(server, uri: str) -> list[str]:
    prefix = uri.removeprefix(f"s3://{server.bucket}/") + "/"
    found = server.boto().list_objects_v2(Bucket=server.bucket, Prefix=prefix).get("Contents", [])
    return [item["Key"].removeprefix(prefix) for item in found]
