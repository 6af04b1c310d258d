"""Parquet parts: written once, read by column, used again by later checkpoints."""

from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.config import Config
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Compare, Literal, Ref
from indextables.core.prune.evaluate import may_match
from indextables.core.types import Field, PrimitiveType, StructType, schema_from_arrow
from indextables.errors import IndexTablesError, LogCorruptedError
from indextables.log.open.checkpoint import choose_parts, parts_of, write_checkpoint
from indextables.log.open.load import list_log
from indextables.log.wire.files import LogNames
from indextables.log.state.parts import part_of
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from indextables.log.state.snapshot import Files
from indextables.log.state.segments import Segment
from support.logs import same_state
from indextables.log.transaction_log import TransactionLog
from support.faults import CrashingStore, FaultyStore, SimulatedCrash
from support.logs import (
    METADATA,
    add_of,
    appending,
    copy_of,
    file_of,
    fresh_store,
    new_log,
    numbers,
    remove_of,
    rewriting,
)

NAMES = LogNames()
PARQUET = Config.of(
    write={"spark.indextables.checkpoint.interval": 0, "spark.indextables.checkpoint.format": "parquet"}
)


def table_of(count, **options):
    return new_log(None, *(add_of(i) for i in range(count)), config=PARQUET, **options)


def manifest(store, version):
    return [orjson.loads(line) for line in store.get(NAMES.checkpoint(version)).splitlines()]


def parts(store):
    return {meta.key for meta in store.list("_transaction_log/") if meta.key.endswith(".parquet")}


def test_a_manifest_names_its_parts_with_size_checksum_and_rows():
    """The adds themselves are in the part."""
    log = table_of(100)
    written = log.checkpoint()
    lines = manifest(log.store, 0)
    assert [next(iter(line)) for line in lines] == [
        "protocol",
        "metaData",
        "checkpointPart",
        "commitInfo",
    ]
    part = lines[2]["checkpointPart"]
    assert part["rows"] == 100
    assert part["size"] == len(log.store.get(f"_transaction_log/{part['name']}"))
    assert written.parts == 1
    hint = orjson.loads(log.store.get(NAMES.hint))
    assert (hint["parts"], hint["numOfAddFiles"]) == (1, 100)
    assert hint["sizeInBytes"] > part["size"]


def test_auto_writes_json_up_to_two_thousand_splits_and_parts_above():
    """Small tables stay readable with a text editor."""
    for count, expected in ((2_000, 0), (2_001, 1)):
        log = new_log(None, *(add_of(i, stats=None) for i in range(count)))
        log.checkpoint()
        assert len(parts(log.store)) == expected
        assert TransactionLog(log.store).snapshot().num_files == count


def test_the_next_checkpoint_names_the_same_part_again_with_its_dead_rows():
    """Its cost follows what changed, not the size of the table."""
    log = table_of(1000)
    log.checkpoint()
    first = parts(log.store)
    log.commit(lambda s: rewriting(remove_of(3), remove_of(999), add_of(2000)))
    for handle in (log, TransactionLog(log.store, PARQUET)):
        handle.checkpoint()
        assert first < parts(log.store)
        names = [line["checkpointPart"] for line in manifest(log.store, 1) if "checkpointPart" in line]
        assert sorted(part["rows"] for part in names) == [1, 1000]
        reopened = TransactionLog(log.store).snapshot()
        assert numbers(reopened) == [i for i in range(1000) if i not in (3, 999)] + [2000]
        assert same_state(reopened, log.snapshot())


def test_a_part_is_written_anew_once_a_fifth_of_it_is_dead():
    """Else removes would make it useless little by little."""
    log = table_of(100)
    log.checkpoint()
    log.commit(lambda s: rewriting(*(remove_of(i) for i in range(20))))
    log.checkpoint()
    assert len(parts(log.store)) == 1
    log.commit(lambda s: rewriting(remove_of(20)))
    log.checkpoint()
    rows = [
        line["checkpointPart"]["rows"] for line in manifest(log.store, 2) if "checkpointPart" in line
    ]
    assert rows == [79]
    assert numbers(TransactionLog(log.store).snapshot()) == list(range(21, 100))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_many_small_checkpoints_leave_few_parts_and_write_each_row_few_times(sizes):
    """Like carrying in a binary counter: at most a logarithm of the rows."""
    log = table_of(0)
    written, number = 0, 0
    for size in sizes:
        adds = [add_of(number + i, stats=None) for i in range(size)]
        number += size
        log.commit(lambda s, adds=adds: appending(*adds))
        before = parts(log.store)
        log.checkpoint()
        segments = log.snapshot().state.segments
        written += sum(
            len(s.dead) for s in segments if f"_transaction_log/{part_of(s).ref.name}" not in before
        )
        assert len(segments) <= 2 + np.log2(number)
    assert written <= number * (2 + np.log2(number))
    assert numbers(TransactionLog(log.store).snapshot()) == list(range(number))


def test_choosing_parts_never_loses_a_segment():
    """Every segment is either used again or written anew."""
    log = table_of(50)
    log.checkpoint()
    log.commit(lambda s: appending(*(add_of(i) for i in range(50, 60))))
    kept, fresh = choose_parts(log.snapshot().state.segments)
    assert {id(s) for s in kept} | {id(s) for s in fresh} == {
        id(s) for s in log.snapshot().state.segments
    }
    assert (len(kept), len(fresh)) == (1, 1)


# -- reading ------------------------------------------------------------------------------------------


class Metered(FaultyStore):
    """Counts the bytes that are read."""

    bytes_read = 0

    def get(self, key):
        data = super().get(key)
        self.bytes_read += len(data)
        return data

    def get_range(self, key, start, length):
        data = super().get_range(key, start, length)
        self.bytes_read += len(data)
        return data


ROWS = 150_000


@pytest.fixture(scope="module")
def large():
    """A part of 150,000 rows in three row groups; 96 bytes of every row are a text nobody can compress."""
    snapshot = new_log(None, *(add_of(i) for i in range(1000)), config=PARQUET).snapshot()
    table = pa.concat_tables([snapshot.files()] * (ROWS // 1000)).combine_chunks()
    noise = np.random.default_rng(1).bytes(ROWS * 48).hex()
    columns = {
        "key": pa.array([f"data/{i:07}.parquet" for i in range(ROWS)]),
        "seq": pa.array(np.arange(ROWS) // 1000),
        "extra": pa.array([f'{{"n":"{noise[96 * i : 96 * i + 96]}"}}' for i in range(ROWS)]),
    }
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    state = Files((Segment.alive(table, snapshot.state.segments[0].shape),), snapshot.tombstones)
    store = fresh_store()
    write_checkpoint(store, NAMES, replace(snapshot, state=state), keep_removes_after=0, form="parquet")
    return store


def test_opening_reads_the_manifest_and_a_plan_reads_only_its_columns(large):
    """What it does not ask for stays in the store."""
    [part] = [large.head(key) for key in parts(large)]
    store = Metered(large)
    snapshot = TransactionLog(store).snapshot()
    assert snapshot.num_files == ROWS
    assert store.bytes_read < 10_000
    mask = may_match(bind(Compare("=", Ref(("id",)), Literal(1234)), snapshot.schema), snapshot.index())
    assert mask.sum() == ROWS // 1000
    assert store.bytes_read < part.size / 2


def test_the_splits_of_a_plan_come_from_their_row_groups_only(large):
    """Not from the whole part."""
    snapshot = TransactionLog(large).snapshot()
    mask = np.zeros(snapshot.num_files, bool)
    chosen = [5, 70_000, 70_001, ROWS - 1]
    mask[chosen] = True
    assert [split.path for split in snapshot.splits(mask)] == [f"data/{i:07}.parquet" for i in chosen]
    assert "_files" not in snapshot.__dict__
    store = Metered(large)
    snapshot = TransactionLog(store).snapshot()
    mask[:] = False
    mask[5] = True
    assert len(snapshot.splits(mask)) == 1
    assert store.bytes_read < large.head(min(parts(large))).size * 0.7


def test_splits_by_mask_are_the_rows_of_files_whatever_the_segments_are():
    """Over parts, dead rows, memory and an order that is not that of the segments."""
    log = table_of(40)
    log.checkpoint()
    log.commit(
        lambda s: rewriting(remove_of(7), remove_of(8), add_of(50, seq=0), add_of(3, size=1, seq=0))
    )
    for handle in (log, TransactionLog(log.store), TransactionLog(log.store, PARQUET)):
        if handle is not log:
            handle.checkpoint()
        snapshot = TransactionLog(log.store).snapshot()
        everything = snapshot.splits()
        for seed in range(5):
            mask = np.random.default_rng(seed).random(snapshot.num_files) < 0.3
            assert snapshot.splits(mask) == [
                s for s, keep in zip(everything, mask, strict=True) if keep
            ]


def test_a_part_written_before_the_schema_changed_is_read_by_the_new_one():
    """Without being written again."""
    log = table_of(100)
    log.checkpoint()
    fields = (*METADATA.schema, Field("more", PrimitiveType("long")))
    wide = replace(METADATA, schema=StructType(fields), schema_id=1, past_schemas={0: METADATA.schema})
    log.commit(lambda s: CommitPlan(ChangeSchema(), "CHANGE", (wide,)))
    log.checkpoint()
    assert len(parts(log.store)) == 1
    snapshot = TransactionLog(log.store).snapshot()
    assert snapshot.stats_source().absent(("more",)).all()
    replayed = copy_of(log.store)
    for version in (0, 1):
        replayed.delete(NAMES.checkpoint(version))
    assert same_state(snapshot, TransactionLog(replayed).snapshot())


def test_an_unpartitioned_table_without_statistics_is_stored_too():
    """Parquet cannot hold a struct without fields."""
    from indextables.log.wire.actions import Add, Metadata, Protocol
    from indextables.log.commit.intent import Append

    schema = schema_from_arrow(pa.schema([("l", pa.list_(pa.int64()))]))
    log = TransactionLog(fresh_store(), PARQUET)
    log.create(
        CommitPlan(Append(), "CREATE", (Protocol(), Metadata("x", schema), Add("a", 1), Add("b", 2)))
    )
    log.checkpoint()
    before = log.snapshot(version=0)
    log.store.delete(NAMES.commit(0))
    assert same_state(TransactionLog(log.store).snapshot(), before)


# -- damage -------------------------------------------------------------------------------------------


DAMAGE = {
    "missing": lambda store, key: store.delete(key),
    "cut": lambda store, key: store.put(key, store.get(key)[:-100]),
    "empty": lambda store, key: store.put(key, b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_part_that_is_gone_or_cut_makes_its_checkpoint_useless_and_nothing_else(damage):
    """The commits are still there."""
    log = table_of(100)
    log.checkpoint()
    log.commit(lambda s: appending(add_of(100)))
    [key] = parts(log.store)
    DAMAGE[damage](log.store, key)
    assert numbers(TransactionLog(log.store).snapshot()) == list(range(101))


def test_a_flipped_byte_in_a_part_is_noticed_when_the_page_is_read():
    """Every page has a checksum; opening does not read them all."""
    log = table_of(3000)
    log.checkpoint()
    [key] = parts(log.store)
    size = len(log.store.get(key))
    noticed = 0
    for position in range(1000, size - 3000, size // 9):
        store = copy_of(log.store)
        data = bytearray(store.get(key))
        data[position] ^= 0xFF
        store.put(key, bytes(data))
        try:
            snapshot = TransactionLog(store).snapshot()
            snapshot.files()
        except LogCorruptedError as error:
            noticed += 1
            assert error.file == key.rpartition("/")[2]
            continue
        assert same_state(snapshot, log.snapshot())
    assert noticed >= 5
    part_of(log.snapshot().state.segments[0]).check_bytes()
    with pytest.raises(LogCorruptedError, match="checksum"):
        part = part_of(TransactionLog(store).snapshot().state.segments[0])
        part.check_bytes()


@pytest.mark.parametrize("part", [
    {"name": "../evil.parquet"}, {"name": "000000000000000000.json"}, {"rows": -1}, {"rows": "7"}, {"dead": "***"}, {"dead": "eJw="}, {"size": 1.5},
])  # fmt: skip
def test_a_manifest_with_a_nonsensical_part_is_not_used(part):
    """And never leads out of the log."""
    import zlib

    log = table_of(10)
    log.checkpoint()
    *lines, trailer = manifest(log.store, 0)
    lines[2]["checkpointPart"] |= part
    body = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    trailer["commitInfo"]["crc32"] = zlib.crc32(body)
    log.store.put(NAMES.checkpoint(0), body + orjson.dumps(trailer) + b"\n")
    assert numbers(TransactionLog(log.store).snapshot()) == list(range(10))


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
def test_a_failed_checkpoint_with_parts_leaves_the_same_table(kind):
    """At every call, before and after its effect."""
    log = table_of(30)
    log.checkpoint()
    log.commit(lambda s: rewriting(remove_of(0), *(add_of(i) for i in range(100, 140))))
    sound = log.snapshot()

    def run(store):
        return TransactionLog(store, PARQUET, pause=lambda _: None).checkpoint()

    calls = FaultyStore(copy_of(log.store))
    run(calls)
    for n in range(len(calls.calls)):
        for when in ("before", "after"):
            inner = copy_of(log.store)
            try:
                run(kind(inner, fail_at=n, when=when))
            except (IndexTablesError, SimulatedCrash):
                pass
            assert same_state(TransactionLog(inner).snapshot(), sound)
            run(inner)
            assert same_state(TransactionLog(inner).snapshot(), sound)


def test_parts_go_when_no_kept_checkpoint_names_them():
    """And stay while one does."""
    day = 24 * 3600 * 1000
    clock = [1000 * day]
    log = table_of(50, now_ms=lambda: clock[0])
    log.checkpoint()
    for i in range(1, 7):
        clock[0] += 50 * day
        log.commit(lambda s, i=i: rewriting(remove_of(i), *(add_of(100 * i + j) for j in range(2))))
        log.checkpoint()
    before = TransactionLog(log.store).snapshot()
    deleted = log.cleanup()
    listing = list_log(log.store, NAMES)
    used = {key for file in listing.checkpoints for key in parts_of(log.store, file)}
    assert used == {part.key for part in listing.parts}
    assert any(key.endswith(".parquet") for key in deleted)
    assert same_state(TransactionLog(log.store).snapshot(), before)
    assert file_of(1) not in set(before.column("key").to_pylist())
