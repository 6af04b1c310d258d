"""Snapshots: the last action on a file decides, whatever road leads there."""

import numpy as np
import pyarrow as pa
import pytest

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Compare, Literal, Ref
from indextables.core.prune.evaluate import may_match
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.log.wire.actions import Metadata, Txn, Unknown
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from support.logs import same_state
from indextables.log.transaction_log import TransactionLog
from support.logs import METADATA, add_of, appending, file_of, new_log, numbers, remove_of, rewriting


def test_a_snapshot_shows_what_was_added_and_not_removed():
    """Over several commits."""
    log = new_log(None, add_of(1), add_of(2))
    log.commit(lambda s: appending(add_of(3)))
    log.commit(lambda s: rewriting(remove_of(1), add_of(4)))
    snapshot = TransactionLog(log.store).snapshot()
    assert (snapshot.version, numbers(snapshot), snapshot.num_files) == (2, [2, 3, 4], 3)
    assert snapshot.total_bytes == 1002 + 1003 + 1004
    assert snapshot.tombstones.column("key").to_pylist() == [file_of(1)]


@pytest.mark.parametrize(
    ("actions", "live"),
    [
        ([add_of(1), remove_of(1)], []),
        ([remove_of(1), add_of(1)], [1]),
        ([add_of(1), remove_of(1), add_of(1)], [1]),
        ([add_of(1, size=1), add_of(1, size=2)], [1]),
    ],
)
def test_within_one_commit_the_last_line_on_a_file_wins(actions, live):
    """And over several commits the last commit."""
    together = new_log()
    together.commit(lambda s: rewriting(*actions))
    apart = new_log()
    for action in actions:
        apart.commit(lambda s, action=action: rewriting(action))
    for log in (together, apart):
        for handle in (log, TransactionLog(log.store)):
            assert numbers(handle.snapshot()) == live
            assert len(handle.snapshot().tombstones) == (0 if live else 1)


def test_an_add_of_a_live_file_replaces_its_entry():
    """This is how statistics are rebuilt: the file stays, what is known about it changes."""
    log = new_log(None, add_of(1))
    log.commit(lambda s: appending(add_of(1, size=77, seq=0)))
    [split] = log.snapshot().splits()
    assert (split.size, split.seq) == (77, 0)


def test_files_are_in_order_of_seq_and_key():
    """Every mask over files is in this order, so it must not depend on how the log was read."""
    log = new_log(None, add_of(5), add_of(3))
    log.commit(lambda s: appending(add_of(4), add_of(9, seq=0)))
    log.commit(lambda s: appending(add_of(1)))
    files = log.snapshot().files()
    order = list(zip(files.column("seq").to_pylist(), files.column("key").to_pylist(), strict=True))
    assert order == sorted(order)
    assert order == [
        (0, file_of(3)),
        (0, file_of(5)),
        (0, file_of(9)),
        (1, file_of(4)),
        (2, file_of(1)),
    ]


def test_an_incremental_snapshot_equals_one_read_from_scratch():
    """A handle that lives long sees what a new one sees."""
    log = new_log(None, *(add_of(i) for i in range(20)))
    for i in range(20, 60):
        log.commit(lambda s, i=i: rewriting(add_of(i), remove_of(i - 20)))
        if i % 7 == 0:
            assert same_state(log.snapshot(), TransactionLog(log.store).snapshot())


def test_splits_are_made_for_what_a_mask_selects():
    """With partition values, decoded statistics and the way back to an action."""
    log = new_log(None, *(add_of(i) for i in range(5)))
    snapshot = log.snapshot()
    [split] = snapshot.splits(np.array([False, False, True, False, False]))
    assert split.path == file_of(2)
    assert split.partition_values == {"day": "2024-01-03"}
    assert split.stats == add_of(2).stats
    assert split.to_add() == add_of(2, seq=0)
    assert snapshot.split(file_of(4)).size == 1004
    assert snapshot.split("nowhere") is None


def test_the_statistics_of_a_snapshot_prune():
    """In the order of its files, partition columns included."""
    snapshot = new_log(None, *(add_of(i) for i in range(10))).snapshot()
    for column, value, kept in (("id", 55, [5]), ("score", 12.25, [2]), ("day", "2024-01-04", [3])):
        condition = bind(Compare("=", Ref((column,)), Literal(value)), snapshot.schema)
        mask = may_match(condition, snapshot.index())
        assert [s.path for s in snapshot.splits(mask)] == [file_of(i) for i in kept]


def test_bounds_that_are_only_prefixes_are_marked_in_the_right_rows():
    """Splits 0, 3, 6, 9 have a max of `name` that is only a bound."""
    source = new_log(None, *(add_of(i) for i in range(10))).snapshot().stats_source()
    assert np.flatnonzero(source.inexact("max", ("name",))).tolist() == [0, 3, 6, 9]
    assert source.inexact("min", ("name",)) is None
    assert not source.inexact("max", ("id",)).any()


def evolved(*, wide: str, new: str) -> Metadata:
    """The table after `id` became wider and a column was added."""
    from dataclasses import replace

    fields = tuple(Field("id", wide_type(wide)) if f.name == "id" else f for f in METADATA.schema) + (
        Field(new, PrimitiveType("long")),
    )
    return replace(METADATA, schema=StructType(fields), schema_id=1, past_schemas={0: METADATA.schema})


def wide_type(name):
    from indextables.core.types import DecimalType

    return DecimalType(20, 0) if name == "decimal" else PrimitiveType(name)


@pytest.mark.parametrize("wide", ["decimal", "double"])
def test_statistics_written_before_a_column_was_widened_still_prune(wide):
    """Whether they are read before the change, after it, or from a checkpoint."""
    log = new_log(None, *(add_of(i) for i in range(5)))
    before = log.snapshot()
    assert before.files().num_rows == 5
    log.commit(lambda s: CommitPlan(ChangeSchema(), "CHANGE", (evolved(wide=wide, new="extra"),)))
    log.commit(lambda s: appending(add_of(7, schema_id=1)))
    handles = [log, TransactionLog(log.store)]
    assert same_state(*(handle.snapshot() for handle in handles))
    log.checkpoint()
    handles.append(TransactionLog(log.store))
    for handle in handles:
        snapshot = handle.snapshot()
        condition = bind(Compare("=", Ref(("id",)), Literal(42)), snapshot.schema)
        assert may_match(condition, snapshot.index()).tolist() == [False] * 4 + [True, False]
    assert same_state(handles[0].snapshot(), handles[2].snapshot())


def test_a_column_newer_than_a_split_is_known_to_be_null_there():
    """Which is more than not knowing its statistics."""
    log = new_log(None, add_of(1), add_of(2, schema_id=None))
    log.commit(lambda s: CommitPlan(ChangeSchema(), "CHANGE", (evolved(wide="double", new="extra"),)))
    log.commit(lambda s: appending(add_of(3, schema_id=1)))
    source = log.snapshot().stats_source()
    assert source.absent(("extra",)).tolist() == [True, False, False]
    assert source.absent(("id",)) is None


def test_the_last_txn_of_each_application_is_kept():
    """By application, not by commit."""
    log = new_log()
    for app, version in (("a", 1), ("b", 7), ("a", 2)):
        log.commit(lambda s, app=app, version=version: appending(Txn(app, version)))
    assert {app: txn.version for app, txn in log.snapshot().txns.items()} == {"a": 2, "b": 7}


def test_unknown_actions_are_kept_in_order():
    """They mean something to whoever wrote them."""
    raws = [b'{"skip":{"n":1}}', b'{"mark":[3]}', b'{"skip":{"n":2}}']
    log = new_log()
    for raw in raws:
        log.commit(lambda s, raw=raw: appending(Unknown(raw[2:6].decode(), raw)))
    assert [action.raw for action in TransactionLog(log.store).snapshot().unknown] == raws
    log.checkpoint()
    assert [action.raw for action in TransactionLog(log.store).snapshot().unknown] == raws


def test_a_segment_with_many_dead_rows_is_copied_and_one_with_few_is_not():
    """No column is copied on commit, but the dead do not pile up for ever either."""
    log = new_log(None, *(add_of(i) for i in range(10)))
    columns = log.snapshot().state.segments[0].table
    log.commit(lambda s: rewriting(remove_of(0)))
    assert log.snapshot().state.segments[0].table is columns
    assert log.snapshot().state.segments[0].dead.tolist() == [True] + [False] * 9


def test_a_handle_that_lives_long_does_not_collect_a_segment_per_commit():
    """Small segments are merged, large ones stay as they are."""
    log = new_log(None, *(add_of(i) for i in range(300)))
    large = log.snapshot().state.segments[0].table
    for i in range(300, 400):
        log.commit(lambda s, i=i: appending(add_of(i)))
    segments = log.snapshot().state.segments
    assert len(segments) <= 33
    assert segments[0].table is large
    assert numbers(log.snapshot()) == list(range(400))


def test_a_table_without_files_has_an_empty_snapshot():
    """Right after it was created."""
    snapshot = new_log().snapshot()
    assert (snapshot.num_files, snapshot.total_bytes, snapshot.splits()) == (0, 0, [])
    assert snapshot.files().num_rows == 0
    assert snapshot.index().num_rows == 0


def test_same_state_tells_two_tables_apart():
    """The property tests stand on it."""
    log = new_log(None, add_of(1))
    one = log.snapshot()
    log.commit(lambda s: rewriting(add_of(1, size=5)))
    assert not same_state(one, log.snapshot())
    assert same_state(one, log.snapshot(version=0))


def test_the_columns_of_a_snapshot_are_arrow_columns_of_fixed_types():
    """The contract with every reader of `files()`."""
    files = new_log(None, add_of(1)).snapshot().files()
    assert files.schema.names[:3] == ["key", "partition_values", "size"]
    assert files.schema.field("partition_values").type == pa.struct([("day", pa.string())])


def test_parts_of_a_version_are_told_apart_by_their_files():
    """An engine that caches the rows of one part must not show them as those of another."""
    whole = new_log(None, *(add_of(i) for i in range(3))).snapshot()
    first, last = (whole.subset(np.array(mask)) for mask in ([True, False, False], [False, True, True]))
    again = whole.subset(np.array([True, False, False]))
    assert len({whole.excerpt, first.excerpt, last.excerpt}) == 3
    assert again.excerpt == first.excerpt
    assert last.subset(np.array([True, False])).excerpt != last.subset(np.array([False, True])).excerpt
