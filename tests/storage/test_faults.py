"""The stores that fail on purpose do what the tests built on them believe."""

from __future__ import annotations

from uuid import uuid4

import pytest
from support.faults import CrashingStore, FaultyStore, SimulatedCrash

from indextables.errors import StorageError
from indextables.storage import LogStore, open_store


@pytest.fixture
def inner():
    return open_store(f"memory://{uuid4().hex}")


def scenario(store: LogStore) -> None:
    """One of each call, in a fixed order."""
    store.put("a", b"1")
    store.put_if_absent("b", b"2")
    store.get("a")
    store.get_range("a", 0, 1)
    store.head("a")
    list(store.list(""))
    store.sync_files(["a", "b"])
    list(store.stale_temporaries(modified_before_ms=0))
    with store.filesystem().open_output_stream("c") as stream:
        stream.write(b"3")
    store.delete("a")


CALLS = [
    "put",
    "put_if_absent",
    "get",
    "get_range",
    "head",
    "list",
    "sync_files",
    "stale_temporaries",
    "put",
    "delete",
]
OBJECTS = [[], ["a"], ["a", "b"], *[["a", "b"]] * 6, ["a", "b", "c"], ["b", "c"]]


def test_recording_names_every_call(inner):
    """Without a fault the scenario runs, and each call of it is on record."""
    store = FaultyStore(inner)
    scenario(store)
    assert [name for name, _ in store.calls] == CALLS
    assert not store.failed


@pytest.mark.parametrize("number", range(len(CALLS)))
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
def test_a_fault_happens_at_its_call_before_or_after_the_effect(inner, kind, when, number):
    """The objects show exactly the effects of the calls up to the fault."""
    store = kind(inner, fail_at=number, when=when)
    with pytest.raises(StorageError if kind is FaultyStore else SimulatedCrash):
        scenario(store)
    assert store.failed
    assert [meta.key for meta in inner.list("")] == OBJECTS[number + (when == "after")]


def test_a_crashed_process_makes_no_further_call(inner):
    """A finally or a handler that tries to clean up does not get through."""
    store = CrashingStore(inner, fail_at=0)
    with pytest.raises(SimulatedCrash):
        store.put("a", b"1")
    with pytest.raises(SimulatedCrash):
        store.delete("a")
    assert not isinstance(SimulatedCrash(), Exception)


def test_a_fault_passes_unless_told_to_stay(inner):
    """One call fails by default; `times` makes an outage, `only` aims at some methods."""
    store = FaultyStore(inner, fail_at=0)
    with pytest.raises(StorageError):
        store.put("a", b"1")
    store.put("a", b"1")
    outage = FaultyStore(inner, fail_at=1, times=None, only=["get"])
    outage.put("b", b"1")
    outage.get("a")
    for _ in range(3):
        with pytest.raises(StorageError):
            outage.get("a")
