"""Every store makes the same promises: one body of tests, once per store."""

from __future__ import annotations

import pickle
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indextables.errors import IndexTablesError, ObjectExistsError, ObjectNotFoundError, StorageError
from indextables.storage import LogStore
from indextables.storage.base import temporary_name, why_not_a_key

ODD_KEYS = [
    "a b.parquet",
    "100%.parquet",
    "a%20b",
    "%2e%2e/x",
    "day=2024-01-01/x",
    "q?x=1#frag&y+z,@:;'\"<>|~^`{}[]*!$()",
    "é/ü/日本/😀",
    "a\ufffdb",
    "\ue000",
    "...",
    ".hidden",
    "_transaction_log/000000000000000000.json",
    " leading and trailing ",
    "x" * 200,
]
BAD_KEYS = [
    "",
    ".",
    "..",
    "/a",
    "a/",
    "a//b",
    "a/../b",
    "../x",
    "./a",
    "a\0b",
    "a\nb",
    "a\\b",
    "\x7f",
    "\x85",
    "\ud800",
]
# '-' and '.' sort before '/', '0' after: walking directories by name gets these wrong
ORDERED = ["a-b", "a.c", "a/b-c/d", "a/b.x", "a/b/c", "a0", "aé", "b/z", "b\ufffdx", "b😀"]

key_texts = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=8),
    min_size=1,
    max_size=3,
).map("/".join)


def keys_of(store: LogStore, prefix: str = "", after: str | None = None) -> list[str]:
    return [meta.key for meta in store.list(prefix, start_after=after)]


def test_what_is_put_is_what_is_read(store):
    """get, get_range, head and list agree about an object."""
    before = time.time() * 1000
    store.put("data/x", b"0123456789")
    assert store.get("data/x") == b"0123456789"
    meta = store.head("data/x")
    assert (meta.key, meta.size) == ("data/x", 10)
    assert before - 2000 <= meta.modified_ms <= time.time() * 1000 + 2000
    assert [(m.key, m.size) for m in store.list("")] == [("data/x", 10)]


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 3, b"012"),
        (7, 3, b"789"),
        (7, 100, b"789"),
        (0, 0, b""),
        (10, 1, b""),
        (99, 5, b""),
        (9, 1, b"9"),
        (10, 0, b""),
    ],
)
def test_a_range_ends_where_the_object_ends(store, start, length, expected):
    """A range is cut at the end of the object, and empty behind it."""
    store.put("x", b"0123456789")
    assert store.get_range("x", start, length) == expected


def test_a_range_that_runs_backwards_is_refused(store):
    """Negative numbers never mean 'from the end'."""
    store.put("x", b"0123456789")
    for start, length in ((-1, 2), (0, -1)):
        with pytest.raises(StorageError):
            store.get_range("x", start, length)


def test_an_empty_object_is_an_object(store):
    """Zero bytes are not 'missing', not even for ranges and listings."""
    store.put_if_absent("x", b"")
    assert store.get("x") == b""
    assert store.get_range("x", 0, 5) == b""
    assert store.head("x").size == 0
    assert keys_of(store) == ["x"]


def test_put_replaces(store):
    """put is the call that may overwrite."""
    store.put("x", b"old and longer")
    store.put("x", b"new")
    assert store.get("x") == b"new"


def test_put_if_absent_never_replaces(store):
    """The second writer gets ObjectExistsError and the bytes of the first stay."""
    store.put_if_absent("log/0", b"first")
    with pytest.raises(ObjectExistsError) as caught:
        store.put_if_absent("log/0", b"second")
    assert store.get("log/0") == b"first"
    assert caught.value.key == "log/0"
    assert keys_of(store) == ["log/0"]


def test_a_deleted_key_is_free_again(store):
    """delete is idempotent and makes room for an exclusive put."""
    store.put_if_absent("x", b"1")
    store.delete("x")
    store.delete("x")
    store.delete("never/was/there")
    with pytest.raises(ObjectNotFoundError):
        store.get("x")
    store.put_if_absent("x", b"2")
    assert store.get("x") == b"2"


def test_only_a_missing_object_is_not_found(store):
    """A missing key, a directory and a path through a file are all 'no such object'."""
    store.put("dir/file", b"1")
    for key in ("nothing", "dir", "dir/file/below", "dir/other", "no/such/dir"):
        for call in (
            store.get,
            store.head,
            lambda k: store.get_range(k, 0, 1),
            lambda k: store.get_range(k, 5, 0),
        ):
            with pytest.raises(ObjectNotFoundError):
                call(key)


def test_a_listing_is_in_byte_order_of_whole_keys(store):
    """Also where a file's name sorts between a directory's name and its contents."""
    for key in reversed(ORDERED):
        store.put(key, b"x")
    assert ORDERED == sorted(ORDERED, key=str.encode)
    assert keys_of(store) == ORDERED


def test_a_prefix_is_text_not_a_directory(store):
    """`a/b` lists 'a/b-c/d', 'a/b.x' and 'a/b/c'; a missing directory lists nothing."""
    for key in ORDERED:
        store.put(key, b"x")
    for prefix in (
        "",
        "a",
        "a/",
        "a/b",
        "a/b/",
        "a/b-",
        "a0",
        "aé",
        "b/z",
        "z",
        "no/such/",
        "a/b/c/d",
        "b\ufffd",
    ):
        assert keys_of(store, prefix) == [key for key in ORDERED if key.startswith(prefix)], prefix


def test_start_after_leaves_out_keys_up_to_and_including_it(store):
    """Whether or not an object with that key exists."""
    for key in ORDERED:
        store.put(key, b"x")
    for after in [*ORDERED, "a", "a/", "a/a", "a/b/", "a1", "b", "zzz", "A", "a/b-c", "a/b/c/d"]:
        for prefix in ("", "a/", "a"):
            expected = [key for key in ORDERED if key.startswith(prefix) and key > after]
            assert keys_of(store, prefix, after) == expected, (prefix, after)


def test_an_empty_store_lists_nothing(store):
    """A table that does not exist yet can be looked at."""
    assert keys_of(store) == []
    assert keys_of(store, "_transaction_log/") == []


@pytest.mark.parametrize("key", ODD_KEYS, ids=ascii)
def test_odd_names_are_kept_as_they_are(store, key):
    """No store encodes, decodes, trims or normalises a name."""
    store.put_if_absent(key, b"x")
    assert keys_of(store) == [key]
    assert store.get(key) == b"x"
    assert store.head(key).key == key
    with pytest.raises(ObjectExistsError):
        store.put_if_absent(key, b"y")
    store.delete(key)
    assert keys_of(store) == []


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_what_is_no_key_is_refused_before_anything_happens(store, key):
    """Each call raises StorageError, never 'not found', and nothing is written anywhere."""
    calls = [
        store.get,
        store.head,
        store.delete,
        lambda k: store.get_range(k, 0, 1),
        lambda k: store.put(k, b"x"),
        lambda k: store.put_if_absent(k, b"x"),
    ]
    for call in calls:
        with pytest.raises(StorageError) as caught:
            call(key)
        assert not isinstance(caught.value, ObjectNotFoundError)
    assert keys_of(store) == []


def test_a_name_that_listings_hide_cannot_be_written(store):
    """Else an object would be there and in no listing."""
    for put in (store.put, store.put_if_absent):
        with pytest.raises(StorageError):
            put(f"data/{temporary_name()}", b"x")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.sets(key_texts, max_size=6), data=st.binary(max_size=100))
def test_any_text_is_a_key_or_refused(store, keys, data):
    """For any text: either the object is stored, listed and read under exactly it, or nothing happens."""
    stored = set()
    for key in keys:
        if why_not_a_key(key) is None and not any(
            k.startswith(f"{key}/") or key.startswith(f"{k}/") for k in stored
        ):
            store.put(key, data)
            stored.add(key)
        elif why_not_a_key(key):
            with pytest.raises(StorageError):
                store.put(key, data)
    try:
        assert keys_of(store) == sorted(stored, key=str.encode)
        assert all(store.get(key) == data for key in stored)
    finally:
        for key in stored:
            store.delete(key)


def test_of_eight_threads_exactly_one_wins(store):
    """The exclusive put has one winner, and its bytes are the ones that stay."""
    for round_ in range(5):
        key, winners, barrier = f"log/{round_}", [], threading.Barrier(8)

        def race(
            number: int,
            key: str = key,
            winners: list[int] = winners,
            barrier: threading.Barrier = barrier,
        ):
            barrier.wait()
            try:
                store.put_if_absent(key, b"%d" % number * 10_000)
            except ObjectExistsError:
                return
            winners.append(number)

        threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(winners) == 1
        assert store.get(key) == b"%d" % winners[0] * 10_000


def test_a_large_object_arrives_whole(store):
    """More than one part of an upload, more than one read of a file."""
    data = bytes(range(256)) * 48 * 1024  # 12 MB
    store.put("big", data)
    assert store.get("big") == data
    assert store.get_range("big", 11_000_000, 10) == data[11_000_000:11_000_010]


def test_a_store_travels_to_another_process(store):
    """Pickled and back, it shows the same objects."""
    store.put("x", b"1")
    again = pickle.loads(pickle.dumps(store))
    assert again.get("x") == b"1"
    assert again.uri == store.uri


def test_repr_names_the_place_and_nothing_else(store):
    """No credentials, no options; the URI has no slash at its end."""
    assert repr(store) == f"{type(store).__name__}({store.uri.removeprefix('memory://')!r})"
    assert not store.uri.endswith("/")


def test_errors_can_be_pickled(store):
    """An error of a worker process reaches the driver with its facts."""
    with pytest.raises(ObjectNotFoundError) as caught:
        store.get("nothing")
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, IndexTablesError)
    assert again.key == "nothing"


def test_there_are_no_temporaries_after_normal_work(store):
    """Every put cleans up behind itself, also the one that lost."""
    store.put("a/x", b"1")
    store.put_if_absent("a/y", b"1")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a/y", b"2")
    assert list(store.stale_temporaries(modified_before_ms=2**62)) == []
    store.sync_files(["a/x", "a/y"])
