"""Listings of another system: for each kind of file, where skipping is right and where it would lose a row."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.core.types import Field, PrimitiveType, StructType
from indextables.errors import ConfigError
from indextables.slices import (
    Block,
    ListedFile,
    LogBlock,
    MergeMode,
    SliceCounts,
    SplitStats,
    State,
    Timeline,
    bind,
    index_of_listing,
    prune_slices,
    slices_from_listing,
)
from indextables.sql.conditions.parser import parse_predicate

LONG = PrimitiveType("long")
SCHEMA = StructType(
    (
        Field("id", LONG),
        Field("n", LONG),
        Field("m", LONG),
        Field("x", PrimitiveType("double")),
        Field("day", PrimitiveType("date")),
    )
)
DAY = {"day": "2024-10-18"}
DONE = Timeline(["001", "002", "003", "004", "005"])


def stats(**ends):
    """Of columns, (least, greatest) each; without NULLs."""
    known = {(name,): pair for name, pair in ends.items()}
    return SplitStats(
        10,
        {path: low for path, (low, _) in known.items()},
        {path: high for path, (_, high) in known.items()},
        dict.fromkeys(known, 0),
    )


def base(path="base", instant="001", *, group="g", day=DAY, **ends):
    found = stats(**ends) if ends else None
    return ListedFile(path, group, instant, stats=found, partition_values=day)


def log(path, version, *blocks, instant="001", group="g", columns=None, **ends):
    found = stats(**ends) if ends else None
    return ListedFile(path, group, instant, "log", version, blocks, found, DAY, columns)


def data(instant):
    return LogBlock("data", instant)


def delete(instant):
    return LogBlock("delete", instant)


def rollback(instant, target):
    return LogBlock("rollback", instant, target)


def pruned(files, text, timeline=DONE, mode=MergeMode.RECORD):
    slices = slices_from_listing(files, timeline, record_key=["id"])
    condition = bind(parse_predicate(text), SCHEMA)
    return prune_slices(slices, index_of_listing(files, SCHEMA, ["day"]), condition, mode)


def is_kept(files, text="n = 100", timeline=DONE, mode=MergeMode.RECORD):
    (kept,) = pruned(files, text, timeline, mode).kept
    return bool(kept)


LOW = base(n=(1, 9))
"""A base file that does not match."""


# -- the seed's question ----------------------------------------------------------------------------


def test_a_slice_with_a_rollback_block_is_skipped_if_nothing_in_it_matches():
    """A base file and five log files, one of them a rollback block: the rule before kept it for ever."""
    logs = [log(f"log {v}", v, data(f"00{v}"), n=(10 * v, 10 * v + 9)) for v in (1, 2, 3, 5)]
    found = pruned([LOW, *logs, log("undo", 4, rollback("004", "777"))], "n = 100")
    assert found.counts == SliceCounts(total=1, kept=0, kept_before=1)
    assert found.counts.skipped == 1
    assert str(found.counts) == "0 of 1 slices kept, 1 if every file without statistics kept its slice"
    assert not found.files.any()


def test_a_slice_with_a_delete_block_is_skipped_if_nothing_in_it_matches():
    """The seed's other example: a base file and three log files, one of them a delete block."""
    logs = [log(f"log {v}", v, data(f"00{v}"), n=(10 * v, 10 * v + 9)) for v in (1, 2)]
    found = pruned([LOW, *logs, log("deletes", 3, delete("003"))], "n = 100")
    assert found.counts == SliceCounts(1, kept=0, kept_before=1)


# -- data logs ---------------------------------------------------------------------------------------


def test_a_committed_data_log_counts():
    """Skipped if it cannot match; if it can, what the base says is of no use."""
    assert not is_kept([LOW, log("a", 1, data("002"), n=(20, 29))])
    assert is_kept([LOW, log("a", 1, data("002"), n=(90, 110))])


def test_a_committed_data_log_without_statistics_keeps_its_slice():
    """Missing from the index is no proof of anything, for rows that are there."""
    assert is_kept([LOW, log("a", 1, data("002"))])
    assert is_kept([LOW, ListedFile("a", "g", "001", "log", 1, None, None, DAY)]), "headers not read"
    assert not is_kept([LOW, log("a", 1)]), "a log without any block holds nothing"


@pytest.mark.parametrize("instant", ["006", "0035"])
def test_a_data_log_of_a_failed_commit_is_ignored(instant):
    """Whether the timeline shows it as pending or not at all."""
    pending = Timeline(["001", "002", "003", "004"], pending=["006"])
    files = [LOW, log("a", 1, data(instant), n=(90, 110))]
    assert not is_kept(files, timeline=pending)
    assert pruned(files, "n = 100", pending).counts.kept_before == 1


def test_a_data_log_older_than_the_timeline_is_committed():
    """It was archived; taken for a failed one, its rows would be lost."""
    assert is_kept([LOW, log("a", 1, data("000"), n=(90, 110))])
    short = Timeline(["004", "005"], start="003")
    assert is_kept([LOW, log("a", 1, data("002"), n=(90, 110))], timeline=short)
    assert not is_kept([LOW, log("a", 1, data("003"), n=(90, 110))], timeline=short)


def test_a_rolled_back_data_log_is_ignored():
    """With the instant gone from the timeline, or only cancelled by a rollback block."""
    files = [LOW, log("a", 1, data("003"), n=(90, 110))]
    undone = Timeline(["001", "002", "004"], rolled_back=["003"])
    assert not is_kept(files, timeline=undone)
    assert not is_kept([*files, log("b", 2, rollback("004", "003"))])


def test_an_instant_that_is_used_again_after_its_rollback_counts():
    """Only what came before the rollback block is cancelled: the second life has rows."""
    again = Timeline(["001", "003", "004"], rolled_back=["003"])
    first, undo = log("a", 1, data("003"), n=(90, 110)), log("b", 2, rollback("004", "003"))
    second = log("c", 3, data("003"), n=(95, 105))
    assert not is_kept([LOW, first, undo], timeline=again)
    assert is_kept([LOW, first, undo, second], timeline=again)
    found = pruned([LOW, first, undo, second], "n = 100", again)
    assert found.rows.tolist() == [False, False, False, True]


def test_rollback_blocks_cancel_inside_their_own_file_too():
    """Three blocks in one file: the last one is alive."""
    blocks = (data("003"), rollback("004", "003"), data("003"))
    assert not is_kept([LOW, log("a", 1, *blocks[:2], n=(90, 110))])
    assert is_kept([LOW, log("a", 1, *blocks, n=(90, 110))])


def test_a_rollback_block_cancels_nothing_in_other_groups():
    """The same commit may have failed here and be seen there."""
    files = [log("a", 1, data("003"), n=(90, 110)), log("b", 2, rollback("004", "003"), group="h")]
    assert pruned(files, "n = 100").kept.tolist() == [True, False]


# -- delete logs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [{}, {"id": (1, 9)}])
def test_a_delete_log_keeps_no_slice(ends):
    """It adds no row, whether or not the index knows its keys."""
    assert not is_kept([LOW, log("a", 1, delete("002"), **ends)])
    assert not is_kept([LOW, log("a", 1, delete("002"), **ends)], "n = 100 AND id = 5")


def test_a_delete_log_skips_no_slice():
    """A delete may lose: to a newer row of its key, or by rules of a merger that knows better."""
    match = base(id=(1, 1), n=(100, 100))
    assert is_kept([match, log("a", 1, delete("002"), id=(1, 1))])
    again = log("b", 2, data("003"), id=(1, 1), n=(100, 100))
    assert is_kept([base(id=(1, 1), n=(5, 5)), log("a", 1, delete("002"), id=(1, 1)), again])


@pytest.mark.parametrize("instant", ["009", "003"])
def test_a_delete_log_that_is_not_committed_hides_no_row(instant):
    """Read along, it would hide rows that are there."""
    undone = Timeline(["001", "002", "004"], pending=["009"], rolled_back=["003"])
    found = pruned(
        [base(id=(1, 9), n=(100, 100)), log("a", 1, delete(instant), id=(1, 9))], "n = 100", undone
    )
    assert found.kept.tolist() == [True]
    assert found.files.tolist() == found.bare.tolist() == [True, False]


def test_a_base_that_matches_is_read_with_the_log_that_changes_it():
    """Rows the log does not touch still match; those it does must not."""
    log_over = log("a", 1, data("002"), id=(1, 5), n=(500, 500))
    found = pruned([base(id=(1, 9), n=(100, 100)), log_over], "n = 100")
    assert found.rows.tolist() == [True, False]
    assert found.deltas.tolist() == [False, True]
    assert not found.bare.any()


# -- rollback blocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("instant", ["002", "009"])
def test_a_rollback_block_keeps_no_slice(instant):
    """Committed or failed, it has no rows."""
    pending = Timeline(["001", "002"], pending=["009"])
    assert not is_kept([LOW, log("a", 1, rollback(instant, "777"))], timeline=pending)


def test_a_rollback_that_failed_cancels_nothing():
    """The rows it aimed at are still there."""
    pending = Timeline(["001", "003"], pending=["009"])
    files = [LOW, log("a", 1, data("003"), n=(90, 110)), log("b", 2, rollback("009", "003"))]
    assert is_kept(files, timeline=pending)


# -- base files --------------------------------------------------------------------------------------


def test_a_committed_base_counts():
    """With statistics or without."""
    assert not is_kept([LOW])
    assert is_kept([base(n=(90, 110))])
    assert is_kept([base()])
    assert is_kept([base(n=(90, 110)), log("a", 1, data("002"), n=(1, 2))]), "not every row is replaced"


@pytest.mark.parametrize("instant", ["009", "003"])
def test_a_base_that_is_not_committed_is_ignored(instant):
    """Neither its rows nor its being newer than the base before count."""
    timeline = Timeline(["001", "002", "004"], pending=["009"], rolled_back=["003"])
    failed = base("new", instant, n=(90, 110))
    assert not is_kept([LOW, failed], timeline=timeline)
    assert is_kept([base(n=(90, 110)), base("new", instant, n=(1, 9))], timeline=timeline)


def test_a_slice_is_replaced_by_the_next_base_of_its_group():
    """Its files are of the past; but logs that wait for a base still to come are of the present."""
    old = [base(n=(90, 110)), log("a", 1, data("002"), n=(90, 110)), log("d", 2, delete("002"))]
    new = base("new", "003", n=(1, 9))
    assert is_kept(old)
    assert not is_kept([*old, new])
    assert pruned([*old, new], "n = 100").counts.kept_before == 0
    compacting = Timeline(["001", "002", "004"], pending=["003"])
    late = log("b", 1, data("004"), instant="003", n=(90, 110))
    assert is_kept([LOW, late], timeline=compacting)
    assert is_kept([new, late])
    assert is_kept([*old, new], timeline=compacting)


def named_by_its_commit(instant, **ends):
    """A log file as tables of version 8 and later name it; the base it lies over is not in its name."""
    return log(f".g_{instant}.log.1_0-1097-3150", 1, data(instant), instant=instant, **ends)


def test_a_log_that_was_completed_after_a_compaction_was_asked_for_is_not_of_the_past():
    """Regression: it began before the base that the compaction wrote, and was dropped with its rows."""
    compacted = base("new", "20251220210129235", n=(1, 9))
    old = base("old", "20251220210108078", n=(1, 9))
    late = named_by_its_commit("20251220210128625", n=(90, 110))
    instants = ["20251220210108078", "20251220210128625", "20251220210129235"]
    times = {instants[0]: "20251220210110000", instants[2]: "20251220210129883"}

    def completed(at):
        return Timeline(instants, completed_at={**times, instants[1]: at})

    for moment in ("20251220210129236", "20251220210129235"):
        assert is_kept([old, compacted, late], timeline=completed(moment))
    assert not is_kept([old, compacted, late], timeline=completed("20251220210129190"))
    # the same where the old base was cleaned, or there never was one
    assert is_kept([compacted, late], timeline=completed("20251220210129300"))
    assert not is_kept([compacted, late], timeline=completed("20251220210129190"))


def test_a_log_of_which_nobody_knows_when_it_was_completed_is_kept():
    """It may lie over the new base; only one that is named by an older base is surely of the past."""
    new = base("new", "003", n=(1, 9))
    unknown = named_by_its_commit("002", n=(90, 110))
    assert is_kept([base(n=(1, 9)), new, unknown])
    assert is_kept(
        [new, unknown], timeline=Timeline(["001", "002", "003"], completed_at={"003": "0035"})
    )
    assert not is_kept([base(n=(1, 9)), new, log("a", 1, data("002"), n=(90, 110))])


def test_an_older_delete_that_was_completed_later_is_read_with_the_new_base():
    """Its keys hide rows of the base, though it began before it."""
    new = base("new", "003", id=(1, 9), n=(90, 110))
    late = log(".g_002.log.1", 1, delete("002"), instant="002", id=(1, 9))
    times = Timeline(["001", "002", "003"], completed_at={"002": "0031"})
    assert pruned([new, late], "n = 100", timeline=times).deltas.tolist() == [False, True]
    early = Timeline(["001", "002", "003"], completed_at={"002": "0021"})
    assert pruned([new, late], "n = 100", timeline=early).deltas.tolist() == [False, False]


# -- other ways of merging ---------------------------------------------------------------------------


def test_partial_updates_are_judged_by_the_whole_slice():
    """`n = 1 AND m = 100` is true of the merged row alone."""
    files = [
        base(id=(1, 1), n=(1, 1), m=(5, 5)),
        log("a", 1, data("002"), columns=["m"], id=(1, 1), m=(100, 100)),
    ]
    both = "n = 1 AND m = 100"
    assert is_kept(files, both, mode=MergeMode.COLUMNS)
    whole = [files[0], log("a", 1, data("002"), id=(1, 1), n=(2, 2), m=(100, 100))]
    assert not is_kept(whole, both), "where rows win as a whole, no file has both"
    assert not is_kept(files, "n = 2 AND m = 100", mode=MergeMode.COLUMNS)
    assert not is_kept(files, "n = 1 AND m = 50 AND id = 2", mode=MergeMode.COLUMNS)
    assert not is_kept(files, "n = 1 AND m = 50", mode=MergeMode.COLUMNS), "in the gap between the two"
    assert is_kept(files, "n < m", mode=MergeMode.COLUMNS)
    assert not is_kept(files, "n > m", mode=MergeMode.COLUMNS), "column against column"


def test_a_column_that_a_partial_update_does_not_set_is_the_older_files():
    """Neither unknown, nor free to be anything."""
    files = [
        base(id=(1, 1), n=(1, 1), m=(5, 5)),
        log("a", 1, data("002"), columns=["m"], id=(1, 1), m=(7, 7)),
    ]
    assert not is_kept(files, "n = 2", mode=MergeMode.COLUMNS)
    unknown = [files[0], log("a", 1, data("002"), columns=["m"])]
    assert not is_kept(unknown, "n = 2", mode=MergeMode.COLUMNS)
    assert is_kept(unknown, "m = 100", mode=MergeMode.COLUMNS), (
        "this one it does set, to who knows what"
    )


def test_a_partial_update_after_a_delete_leaves_columns_null():
    """The base has no NULL, and yet the table may."""
    files = [
        base(id=(1, 1), n=(1, 1), m=(5, 5)),
        log("a", 1, delete("002"), id=(1, 1)),
        log("b", 2, data("003"), columns=["m"], id=(1, 1), m=(7, 7)),
    ]
    assert is_kept(files, "n IS NULL", mode=MergeMode.COLUMNS)
    assert not is_kept(files[:2], "n IS NULL", mode=MergeMode.COLUMNS)
    assert not is_kept(files, "m IS NULL", mode=MergeMode.COLUMNS)


def test_statistics_of_a_column_that_a_file_does_not_set_are_of_no_use():
    """They are those of placeholders in the file, not of rows of the table."""
    ends = {"id": (1, 1), "n": (0, 0), "m": (7, 7)}
    files = [base(id=(1, 1), n=(1, 1), m=(5, 5)), log("a", 1, data("002"), columns=["m"], **ends)]
    assert not is_kept(files, "n = 0", mode=MergeMode.COLUMNS)
    assert is_kept(files, "n IS NULL", mode=MergeMode.COLUMNS), "the update may be all that is left"


def test_every_file_has_the_key_whether_or_not_its_list_says_so():
    """A row cannot be without it."""
    files = [base(id=(1, 1), m=(5, 5)), log("a", 1, data("002"), columns=["m"], id=(50, 50), m=(7, 7))]
    assert is_kept(files, "id = 50 AND m = 7", mode=MergeMode.COLUMNS)
    assert not is_kept(files, "id = 50 AND m = 5", mode=MergeMode.COLUMNS)


def test_what_one_file_leaves_unknown_the_slice_does_not_know():
    """A missing bound, or a missing count of NaN."""
    files = [base(id=(1, 1), n=(1, 1), m=(5, 5), x=(1.0, 1.0)), log("a", 1, data("002"), columns=["n"])]
    assert is_kept(files, "n > m", mode=MergeMode.COLUMNS)
    assert is_kept(files, "x > 100", mode=MergeMode.COLUMNS), "NaN is greater, and was not counted"
    assert not is_kept(files, "x < 0", mode=MergeMode.COLUMNS)


def test_files_without_a_wanted_key_are_left_out_of_the_union():
    """A row is made of rows of its own key."""
    files = [
        base(id=(1, 5), n=(1, 1), m=(5, 5)),
        log("a", 1, data("002"), columns=["m"], id=(3, 5), m=(100, 100)),
    ]
    assert is_kept(files, "id = 4 AND m = 100", mode=MergeMode.COLUMNS)
    assert not is_kept(files, "id = 2 AND m = 100", mode=MergeMode.COLUMNS)
    found = pruned(files, "id = 2", mode=MergeMode.COLUMNS)
    assert found.bare.tolist() == found.files.tolist() == [True, False]


def test_a_custom_merger_is_skipped_by_partition_and_key_only():
    """What it makes of other columns, nobody knows."""
    files = [base(id=(1, 9), n=(1, 9)), log("a", 1, data("002"), id=(1, 9), n=(1, 9))]
    assert is_kept(files, "n = 100", mode=MergeMode.CUSTOM)
    assert not is_kept(files, "id = 100", mode=MergeMode.CUSTOM)
    assert is_kept(files, "id = 5 AND n = 100", mode=MergeMode.CUSTOM)
    assert not is_kept(files, "day = '2024-10-19'", mode=MergeMode.CUSTOM)
    found = pruned(files, "id = 5", mode=MergeMode.CUSTOM)
    assert found.rows.tolist() == [True, True]
    assert found.counts == SliceCounts(1, 1, 1)


# -- many at once, and random ones ---------------------------------------------------------------------


def test_slices_are_named_and_counted():
    """One answer for all groups."""
    files = [
        base("a", group="one", n=(90, 110)),
        base("b", group="two", n=(1, 9)),
        log("c", 1, delete("002"), group="two"),
        base("d", group="three", n=(1, 9)),
    ]
    slices = slices_from_listing(files, DONE)
    found = pruned(files, "n = 100")
    kept = [name for name, bit in zip(slices.names.to_pylist(), found.kept) if bit]
    assert kept == ["one"]
    assert found.counts == SliceCounts(total=3, kept=1, kept_before=2)
    assert pruned(files, "n = 100 AND day = '2024-01-01'").counts == SliceCounts(3, 0, 0)
    assert slices.block.tolist() == [Block.BASE, Block.BASE, Block.DELETE, Block.BASE]
    assert set(slices.state.tolist()) == {State.COMMITTED}


def test_an_empty_listing_has_no_slices():
    """Nothing to keep, nothing to fail."""
    for mode in MergeMode:
        assert pruned([], "n = 1", mode=mode).counts == SliceCounts()


_instants = st.sampled_from(["001", "002", "003", "004"])
_blocks = st.lists(
    st.one_of(
        st.builds(data, _instants),
        st.builds(delete, _instants),
        st.builds(rollback, st.sampled_from(["005", "006"]), _instants),
    ),
    max_size=3,
)


@st.composite
def _listings(draw):
    states = {i: draw(st.sampled_from(["completed", "pending", "rolled_back", None])) for i in "123456"}
    lists = {
        name: [f"00{i}" for i, state in states.items() if state == name]
        for name in ("completed", "pending", "rolled_back")
    }
    lists["rolled_back"] += draw(st.lists(_instants, max_size=1))
    blocks = draw(st.lists(_blocks, max_size=5))
    return [log(f"log {v}", v, *found) for v, found in enumerate(blocks)], Timeline(
        **lists, start="001"
    )


@settings(max_examples=max(300, settings().max_examples))
@given(_listings())
def test_files_with_rows_are_those_a_reader_finds_going_through_the_blocks(listing):
    """The other system's reader: in order, uncommitted blocks left out, a rollback taking back its target."""
    files, timeline = listing
    alive = []
    for file in files:
        for block in file.blocks:
            if block.kind == "rollback" and timeline.state_of(block.instant) is State.COMMITTED:
                alive = [(path, b) for path, b in alive if b.instant != block.target]
            elif block.kind == "data" and timeline.state_of(block.instant) is State.COMMITTED:
                alive.append((file.path, block))
    slices = slices_from_listing(files, timeline)
    holding = {file.path for file, rows in zip(files, slices.holds_rows) if rows}
    assert holding == {path for path, _ in alive}


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ([base("a"), base("a", group="h")], "listed twice"),
        ([base("a"), base("b", "002", day={"day": None})], "in two partitions"),
        ([ListedFile("a", "g", "001", "delta")], "of the kind 'delta'"),
        ([ListedFile("a", "g", 20241018)], "is not a text: 20241018"),
        ([ListedFile("a", "g", "001", blocks=[data("001")])], "base file 'a' has block headers"),
        ([log("a", 1, LogBlock("cdc", "001"))], "of the kind 'cdc'"),
        ([log("a", 1, LogBlock("rollback", "001"))], "rollback block of 'a' has the target None"),
        ([log("a", 1, LogBlock("data", "001", "000"))], "data block of 'a' has the target '000'"),
    ],
)
def test_a_listing_that_makes_no_sense_is_refused(files, match):
    """With the file and what is wrong with it."""
    with pytest.raises(ConfigError, match=match):
        slices_from_listing(files, DONE)


def test_a_timeline_that_makes_no_sense_is_refused():
    """Read in two looks, an instant can seem to be both."""
    with pytest.raises(ConfigError, match="'002' is both completed and pending"):
        Timeline(["001", "002"], pending=["002"])
    with pytest.raises(ConfigError, match="pending instants are not a list of texts"):
        Timeline(["001"], pending="002")
    with pytest.raises(ConfigError, match="completed instants are not a list of texts"):
        Timeline([1, 2])
    with pytest.raises(ConfigError, match="completed"):
        Timeline(["002"], completed_at={"002": "001"})


def test_a_file_needs_a_value_of_every_partition_column():
    """Left out, it would be read as NULL."""
    with pytest.raises(ConfigError, match="'a' has no value of the partition column 'day'"):
        index_of_listing([base("a", day={})], SCHEMA, ["day"])
