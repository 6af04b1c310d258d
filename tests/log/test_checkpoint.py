"""Checkpoints: the same table as the log they stand for."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.config import Config
from indextables.core.types import DecimalType, Field, PrimitiveType, StructType
from indextables.log.wire.actions import Txn, Unknown, Vacuum
from indextables.log.open.checkpoint import write_checkpoint
from indextables.log.wire.files import LogNames
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from support.logs import same_state
from indextables.log.wire.files import Whole, verify
from indextables.log.transaction_log import TransactionLog
from support.logs import (
    add_of,
    appending,
    file_of,
    foreign_add,
    foreign_metadata,
    fresh_store,
    new_log,
    numbers,
    remove_of,
    rewriting,
    text_of,
    write_foreign,
)

NAMES = LogNames()
EVER = 0
"""Removes are kept for ever."""

WIDER = {
    "id": DecimalType(20, 0),
    "st": StructType(
        (
            Field("a", DecimalType(20, 0)),
            Field("b", PrimitiveType("string")),
            Field("c", PrimitiveType("double")),
        )
    ),
}

steps = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(0, 8), min_size=1, max_size=3)),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 8), min_size=1, max_size=3)),
    st.tuples(st.just("replace"), st.integers(0, 8)),
    st.tuples(st.just("odd"), st.integers(0, 8)),
    st.tuples(st.just("txn"), st.sampled_from("ab")),
    st.tuples(st.just("unknown"), st.integers(0, 3)),
    st.tuples(st.just("vacuum"), st.integers(0, 5)),
    st.tuples(st.just("schema"), st.sampled_from(["id", "st", "new", "property"])),
)


def plan_for(step, snapshot):
    """One commit of a random history."""
    match step:
        case "add", which:
            return appending(*(add_of(i, schema_id=snapshot.metadata.schema_id) for i in which))
        case "remove", which:
            return rewriting(*(remove_of(i, when=2_000_000_000_000) for i in which))
        case "replace", i:
            return rewriting(remove_of(i), add_of(i + 100, seq=0, file_group="g", kind="base"))
        case "odd", i:
            return appending(
                add_of(
                    i,
                    path=f"ä %{i}.parquet",
                    stats=None,
                    tags={"t": "1"},
                    extra={"n": {"z": [i], "a": None}},
                )
            )
        case "txn", app:
            return appending(Txn(app, snapshot.version, extra={"who": "me"}))
        case "unknown", i:
            return appending(Unknown("mark", orjson.dumps({"mark": {"i": i}})))
        case "vacuum", version:
            return appending(Vacuum(min(version, snapshot.version)))
        case "schema", what:
            return CommitPlan(ChangeSchema(), "CHANGE", (changed(snapshot.metadata, what),))


def changed(metadata, what):
    if what == "property":
        return replace(metadata, properties={**metadata.properties, f"p{metadata.schema_id}": "x"})
    fields = tuple(replace(f, type=WIDER[what]) if f.name == what else f for f in metadata.schema)
    if what == "new":
        fields += (Field(f"c{metadata.schema_id}", PrimitiveType("double")),)
    return replace(
        metadata,
        schema=StructType(fields),
        schema_id=metadata.schema_id + 1,
        past_schemas={**metadata.past_schemas, metadata.schema_id: metadata.schema},
    )


@pytest.mark.parametrize("form", ["json", "parquet"])
@settings(max_examples=15, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6))
def test_a_snapshot_from_any_checkpoint_equals_the_one_replayed_from_version_0(form, history):
    """For every version, from every checkpoint at or before it."""
    log = new_log(None, add_of(0), add_of(1))
    for step in history:
        log.commit(lambda s, step=step: plan_for(step, s))
    replayed = {v: log.snapshot(version=v) for v in range(len(history) + 1)}
    for at, base in replayed.items():
        write_checkpoint(log.store, NAMES, base, keep_removes_after=EVER, form=form)
        for version in range(at, len(history) + 1):
            assert same_state(TransactionLog(log.store).snapshot(version=version), replayed[version])
        log.store.delete(NAMES.checkpoint(at))
    assert same_state(log.snapshot(), replayed[len(history)])


def test_a_checkpoint_is_lines_of_actions_and_a_trailer():
    """As a commit is, so that the same code verifies both."""
    log = new_log(None, add_of(1), add_of(2))
    log.commit(lambda s: rewriting(remove_of(1, when=2_000_000_000_000), Txn("app", 3)))
    written = log.checkpoint()
    data = log.store.get("_transaction_log/000000000000000001.checkpoint.json")
    names = [next(iter(orjson.loads(line))) for line in data.splitlines()]
    assert names == ["protocol", "metaData", "txn", "remove", "add", "commitInfo"]
    verdict = verify(data)
    assert isinstance(verdict, Whole)
    assert verdict.info.commit_id == log.snapshot().commit_id
    assert (written.version, written.size_in_bytes, written.num_files) == (1, len(data), 1)


def test_last_checkpoint_has_the_fields_readers_expect():
    """Version, size, parts, sizeInBytes, numOfAddFiles and checkpointSchema."""
    log = new_log(None, add_of(1))
    written = log.checkpoint()
    assert orjson.loads(log.store.get("_transaction_log/_last_checkpoint")) == {
        "version": 0,
        "size": 1,
        "parts": None,
        "sizeInBytes": written.size_in_bytes,
        "numOfAddFiles": 1,
        "checkpointSchema": None,
    }


def test_removes_older_than_two_retentions_are_forgotten_by_a_checkpoint():
    """Vacuum waits half a retention longer than one, and a file without a version in its name needs its remove."""
    now, week = 10_000_000_000_000, 7 * 24 * 3600 * 1000
    clock = [now - 3 * week]
    log = new_log(None, add_of(1), add_of(2), add_of(3), now_ms=lambda: clock[0])
    for number, moment in ((1, now - 2 * week - 1), (2, now - 2 * week + 1)):
        clock[0] = moment
        log.commit(lambda s, number=number: rewriting(remove_of(number)))
    clock[0] = now
    log.checkpoint()
    assert TransactionLog(log.store).snapshot().tombstones.column("key").to_pylist() == [file_of(2)]


def test_a_checkpoint_is_written_every_so_many_commits():
    """By default ten; the table's own property counts, a write option counts more."""
    log = new_log(config=Config.of(write={"spark.indextables.checkpoint.interval": 3}))
    for i in range(7):
        log.commit(lambda s, i=i: appending(add_of(i)))
    found = [
        meta.key[-23:] for meta in log.store.list("_transaction_log/") if "checkpoint.json" in meta.key
    ]
    assert [int(name[-24:-16]) for name in found] == [3, 6]
    assert numbers(TransactionLog(log.store).snapshot()) == list(range(7))


def test_a_checkpoint_that_cannot_be_written_does_not_fail_the_commit(caplog):
    """The rows are in the table; only opening it is slower."""
    from support.faults import FaultyStore

    log = new_log(None, config=Config.of(write={"spark.indextables.checkpoint.interval": 1}))
    store = FaultyStore(log.store, fail_at=0, only=["put"], times=None)
    done = TransactionLog(store, Config.of(write={"spark.indextables.checkpoint.interval": 1})).commit(
        lambda s: appending(add_of(1))
    )
    assert done.version == 1
    assert "no checkpoint of version 1" in caplog.text
    assert numbers(TransactionLog(log.store).snapshot()) == [1]


def test_a_checkpoint_of_another_writer_is_read_although_nothing_proves_it_whole():
    """Unverified, as its commits are."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], 1: [foreign_add(1)], 2: [foreign_add(2)]})
    text = text_of([foreign_metadata(), foreign_add(1), foreign_add(7)])
    store.put(NAMES.checkpoint(1), text)
    snapshot = TransactionLog(store).snapshot()
    assert snapshot.version == 2
    assert numbers(snapshot) == [1, 2, 7]


def test_infinities_and_long_texts_survive_a_checkpoint():
    """JSON has no infinity; the checkpoint writes it as the commit did."""
    from indextables.core.stats import SplitStats

    stats = SplitStats(
        1,
        {("score",): -float("inf"), ("name",): "ä" * 9000},
        {("score",): float("inf"), ("name",): "\U0010ffff\x00\n"},
    )
    log = new_log(None, add_of(1, stats=stats))
    log.checkpoint()
    log.store.delete(NAMES.commit(0))
    [split] = TransactionLog(log.store).snapshot().splits()
    assert split.stats == stats


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_a_checkpoint_of_any_size_is_read_back(count):
    """More than one batch of rows, too."""
    log = new_log(None, *(add_of(i) for i in range(count)))
    log.checkpoint()
    before = log.snapshot()
    log.store.delete(NAMES.commit(0))
    assert same_state(TransactionLog(log.store).snapshot(), before)
