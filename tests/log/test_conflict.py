"""Every cell of the conflict table, with two real writers on one log."""

from dataclasses import replace

import pytest

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import And, Compare, Literal, Ref
from indextables.core.types import DecimalType, Field, PrimitiveType, StructType
from indextables.errors import CommitConflictError, ProtocolError, SchemaMismatchError
from indextables.log.wire.actions import Protocol, Remove, Unknown
from indextables.log.commit.conflict import Conflict, Rebase, Replan, Skip, _stricter
from indextables.log.commit.intent import (
    Analyze,
    Append,
    ChangeSchema,
    CommitPlan,
    Compact,
    Group,
    Maintain,
    Optimize,
    Rewrite,
    Upsert,
)
from indextables.log.transaction_log import TransactionLog
from support.logs import METADATA, NO_CHECKPOINTS, SCHEMA, add_of, file_of, new_log, paths

# Split i holds ids 10i…10i+9 and is the base of group g<i>. The table has splits 0-3.


def base(number, group=None, **changes):
    return add_of(number, file_group=group or f"g{number}", kind="base", block="data", **changes)


def log_file(number, group, block="data", **changes):
    return add_of(number, file_group=group, kind="log", block=block, **changes)


def gone(number, *, data_change=True):
    return Remove(file_of(number), 1, data_change)


def ids(low, high):
    """id BETWEEN low AND high, bound to the table."""
    both = And((Compare(">=", Ref(("id",)), Literal(low)), Compare("<=", Ref(("id",)), Literal(high))))
    return bind(both, SCHEMA)


def wider(**changes):
    fields = tuple(replace(f, type=DecimalType(20, 0)) if f.name == "id" else f for f in SCHEMA)
    defaults = {"schema": StructType(fields), "schema_id": 1, "past_schemas": {0: SCHEMA}}
    return replace(METADATA, **(defaults | changes))


NARROWER = wider(schema=StructType(tuple(f for f in SCHEMA if f.name != "name")))
REPARTITIONED = wider(schema=SCHEMA, partition_columns=())
REQUIRED = wider(
    schema=StructType((*SCHEMA.fields, Field("must", PrimitiveType("long"), nullable=False)))
)

WINNERS = {
    "append far": CommitPlan(Append(), "APPEND", (base(50),)),
    "append near": CommitPlan(Append(), "APPEND", (base(51, stats=add_of(1).stats),)),
    "append unknown": CommitPlan(Append(), "APPEND", (add_of(52, stats=None),)),
    "delete file 1": CommitPlan(Rewrite(), "DELETE", (gone(1),)),
    "delete file 2": CommitPlan(Rewrite(), "DELETE", (gone(2),)),
    "copy on write of file 2": CommitPlan(Rewrite(), "DELETE", (gone(2), base(53, "g2", stats=add_of(2).stats))),
    "copy on write of file 1": CommitPlan(Rewrite(), "DELETE", (gone(1), base(54, "g1", stats=add_of(1).stats))),
    "delete log in g1": CommitPlan(Rewrite(), "DELETE", (log_file(55, "g1", "delete", stats=None),)),
    "upsert far into g1": CommitPlan(Upsert(), "UPSERT", (log_file(56, "g1"),)),
    "upsert near into g1": CommitPlan(Upsert(), "UPSERT", (log_file(57, "g1", stats=add_of(1).stats),)),
    "upsert the first keys into g0": CommitPlan(Upsert(), "UPSERT", (log_file(64, "g0", stats=add_of(0).stats),)),
    "upsert far into g2": CommitPlan(Upsert(), "UPSERT", (log_file(58, "g2"),)),
    "upsert near into a new group": CommitPlan(Upsert(), "UPSERT", (base(59, "new", stats=add_of(1).stats),)),
    "compact file 1": CommitPlan(Compact(), "COMPACT", (gone(1, data_change=False), base(60, "g1", stats=add_of(1).stats, data_change=False, seq=0))),
    "compact file 2": CommitPlan(Compact(), "COMPACT", (gone(2, data_change=False), base(61, "g2", stats=add_of(1).stats, data_change=False, seq=0))),
    "optimize files 1 and 2": CommitPlan(Optimize(), "OPTIMIZE", (gone(1, data_change=False), gone(2, data_change=False), base(62, "o", data_change=False))),
    "optimize files 2 and 3": CommitPlan(Optimize(), "OPTIMIZE", (gone(2, data_change=False), gone(3, data_change=False), base(63, "o", stats=add_of(1).stats, data_change=False))),
    "analyze file 1": CommitPlan(Analyze(), "ANALYZE", (base(1, data_change=False, seq=0),)),
    "analyze file 2": CommitPlan(Analyze(), "ANALYZE", (base(2, data_change=False, seq=0),)),
    "widen a column": CommitPlan(ChangeSchema(), "CHANGE", (wider(),)),
    "drop a column": CommitPlan(ChangeSchema(), "CHANGE", (NARROWER,)),
    "change the partitioning": CommitPlan(ChangeSchema(), "CHANGE", (REPARTITIONED,)),
    "add a required column": CommitPlan(ChangeSchema(), "CHANGE", (REQUIRED,)),
    "unknown action": CommitPlan(Append(), "?", (Unknown("mark", b'{"mark":1}'),)),
}  # fmt: skip

COMPACT_1 = Group(
    "one",
    frozenset({file_of(1)}),
    (gone(1, data_change=False), base(71, "g1", data_change=False, seq=0)),
    frozenset({"g1"}),
)
COMPACT_3 = Group(
    "three",
    frozenset({file_of(3)}),
    (gone(3, data_change=False), base(73, "g3", data_change=False, seq=0)),
    frozenset({"g3"}),
)

ME = {
    "append": CommitPlan(Append(), "APPEND", (base(70),)),
    # reads ids 10-19, and replaces file 1
    "delete": CommitPlan(Rewrite(ids(10, 19)), "DELETE", (gone(1), base(75, "g1"))),
    "overwrite all": CommitPlan(Rewrite(), "OVERWRITE", (gone(0), gone(1), gone(2), gone(3), base(76))),
    # writes keys 10-19 into group g1
    "upsert": CommitPlan(Upsert(ids(10, 19), frozenset({"g1"})), "UPSERT", (log_file(77, "g1"),)),
    # puts the keys 10-19, which it has found nowhere, into a new group
    "insert": CommitPlan(Upsert(ids(10, 19), inserted=ids(10, 19)), "UPSERT", (base(78, "mine"),)),
    # sets some columns of the keys 10-19 in group g1
    "partial upsert": CommitPlan(
        Upsert(ids(10, 19), frozenset({"g1"}), partial=True), "UPSERT", (log_file(79, "g1"),)
    ),
    # writes keys 10-19 into group g1, with values computed from the rows that were there
    "derived upsert": CommitPlan(
        Upsert(ids(10, 19), frozenset({"g1"}), derived=True), "UPSERT", (log_file(84, "g1"),)
    ),
    # has found ids 10-19 in group g1 only, and deletes their keys
    "delete by key": CommitPlan(Rewrite(ids(10, 19)), "DELETE", (log_file(80, "g1", "delete"),)),
    # the same, and puts ids 0-9, which it has found nowhere, into a new group
    "overwrite by key": CommitPlan(
        Rewrite(ids(10, 19), inserted=ids(0, 9)),
        "OVERWRITE",
        (log_file(81, "g1", "delete"), base(82, "mine")),
    ),
    "compact": CommitPlan(Compact(), "COMPACT", groups=(COMPACT_1, COMPACT_3)),
    "optimize": CommitPlan(Optimize(), "OPTIMIZE", groups=(COMPACT_1, COMPACT_3)),
    "analyze": CommitPlan(
        Analyze(),
        "ANALYZE",
        groups=(
            Group("one", frozenset({file_of(1)}), (base(1, data_change=False, seq=0, size=5),)),
            Group("three", frozenset({file_of(3)}), (base(3, data_change=False, seq=0, size=5),)),
        ),
    ),
    "schema": CommitPlan(ChangeSchema(), "CHANGE", (wider(properties={"me": "1"}),)),
    "vacuum": CommitPlan(Maintain(), "VACUUM", (Unknown("mark", b'{"mark":2}'),)),
}

OK, REPLAN, SKIP, ERROR = "ok", "re-plan", "skip", "error"

OTHER_SCHEMA = dict.fromkeys(
    ("widen a column", "drop a column", "change the partitioning", "add a required column"), REPLAN
)
NEAR = dict.fromkeys(("append near", "append unknown", "upsert near into a new group"), REPLAN)

# me: the winners this verb does not simply follow; every winner that is not named is "ok"
TABLE = {
    "append": {"drop a column": ERROR, "change the partitioning": ERROR, "add a required column": ERROR},
    "delete": {
        "append near": REPLAN,
        "append unknown": REPLAN,
        "delete file 1": REPLAN,
        "copy on write of file 1": REPLAN,
        "delete log in g1": REPLAN,
        "upsert far into g1": REPLAN,
        "upsert near into g1": REPLAN,
        "upsert near into a new group": REPLAN,
        "compact file 1": REPLAN,
        "optimize files 1 and 2": REPLAN,
        "widen a column": REPLAN,
        "drop a column": REPLAN,
        "change the partitioning": REPLAN,
        "add a required column": REPLAN,
    },
    "overwrite all": {
        name: REPLAN
        for name in WINNERS
        if name not in {"analyze file 1", "analyze file 2", "unknown action"}
    },
    "upsert": {
        "append near": REPLAN,
        "append unknown": REPLAN,
        "delete file 1": REPLAN,
        "upsert near into a new group": REPLAN,
        "optimize files 1 and 2": REPLAN,
        "widen a column": REPLAN,
        "drop a column": REPLAN,
        "change the partitioning": REPLAN,
        "add a required column": REPLAN,
    },
    "insert": {
        **OTHER_SCHEMA,
        **NEAR,
        # the key was there when the winner began, and gone when this one did
        "upsert near into g1": REPLAN,
        "copy on write of file 1": REPLAN,
    },
    "partial upsert": {
        **OTHER_SCHEMA,
        **NEAR,
        "delete file 1": REPLAN,
        # the columns it does not set were those of a row that is gone
        "copy on write of file 1": REPLAN,
        "delete log in g1": REPLAN,
        "optimize files 1 and 2": REPLAN,
    },
    "derived upsert": {
        **OTHER_SCHEMA,
        **NEAR,
        "delete file 1": REPLAN,
        "copy on write of file 1": REPLAN,
        "delete log in g1": REPLAN,
        # the rows it was computed from are others now
        "upsert near into g1": REPLAN,
        "optimize files 1 and 2": REPLAN,
    },
    "delete by key": {
        **OTHER_SCHEMA,
        **NEAR,
        "delete file 1": REPLAN,
        "copy on write of file 1": REPLAN,
        "delete log in g1": REPLAN,
        # a row of g1 that no longer satisfies the condition would be deleted
        "upsert far into g1": REPLAN,
        "upsert near into g1": REPLAN,
        "optimize files 1 and 2": REPLAN,
    },
    "overwrite by key": {
        **OTHER_SCHEMA,
        **NEAR,
        "delete file 1": REPLAN,
        "copy on write of file 1": REPLAN,
        "delete log in g1": REPLAN,
        "upsert far into g1": REPLAN,
        "upsert near into g1": REPLAN,
        "optimize files 1 and 2": REPLAN,
        "upsert the first keys into g0": REPLAN,
    },
    "compact": {
        "delete file 1": SKIP,
        "copy on write of file 1": SKIP,
        "compact file 1": SKIP,
        "optimize files 1 and 2": SKIP,
        "optimize files 2 and 3": SKIP,
        "analyze file 1": SKIP,
    },
    "optimize": {
        "delete file 1": SKIP,
        "copy on write of file 1": SKIP,
        "delete log in g1": SKIP,
        "upsert far into g1": SKIP,
        "upsert near into g1": SKIP,
        "compact file 1": SKIP,
        "optimize files 1 and 2": SKIP,
        "optimize files 2 and 3": SKIP,
        "analyze file 1": SKIP,
    },
    "analyze": {
        "delete file 1": SKIP,
        "copy on write of file 1": SKIP,
        "compact file 1": SKIP,
        "optimize files 1 and 2": SKIP,
        "optimize files 2 and 3": SKIP,
        "analyze file 1": SKIP,
    },
    "schema": {
        "widen a column": ERROR,
        "drop a column": ERROR,
        "change the partitioning": ERROR,
        "add a required column": ERROR,
    },
    "vacuum": {},
}  # fmt: skip


def race(mine, winner):
    """The loser's outcome, how often it planned, and the table afterwards."""
    log = new_log(None, *(base(i) for i in range(4)))
    me = TransactionLog(log.store, NO_CHECKPOINTS, pause=lambda _: None)
    stale = me.snapshot()
    TransactionLog(log.store, NO_CHECKPOINTS).commit(lambda s: winner)
    planned = []

    def planner(snapshot):
        planned.append(snapshot.version)
        return (
            mine
            if len(planned) == 1
            else CommitPlan(mine.verb, mine.operation, (Unknown("again", b'{"again":1}'),))
        )

    done = me.commit(planner, snapshot=stale)
    return done, planned


CELLS = [(me, winner, TABLE[me].get(winner, OK)) for me in ME for winner in WINNERS]


@pytest.mark.parametrize(
    ("me", "winner", "expected"), CELLS, ids=[f"{m} after {w}" for m, w, _ in CELLS]
)
def test_the_loser_does_what_the_table_says(me, winner, expected):
    """Two writers read version 0; the winner takes version 1."""
    if expected == ERROR:
        with pytest.raises((SchemaMismatchError, CommitConflictError), match="version 1"):
            race(ME[me], WINNERS[winner])
        return
    done, planned = race(ME[me], WINNERS[winner])
    assert done.version == 2
    assert planned == ([0, 1] if expected == REPLAN else [0])
    skipped = {"three"} if winner == "optimize files 2 and 3" else {"one"}
    assert done.skipped == (skipped if expected == SKIP else set())
    if expected in (OK, SKIP):
        left_out = {path for g in ME[me].groups if g.name in done.skipped for path in _added(g)}
        added = {path for path in _added_by(ME[me])} - left_out
        assert added <= paths(done.snapshot)


def _added(group):
    return {a.path for a in group.actions if hasattr(a, "size")}


def _added_by(plan):
    return {a.path for a in plan.all_actions() if hasattr(a, "size")}


def test_the_two_tables_of_this_test_name_the_same_winners():
    """A winner misspelled in a row would silently mean ok."""
    assert all(set(row) <= set(WINNERS) for row in TABLE.values())
    assert set(TABLE) == set(ME)


def test_several_winners_are_judged_one_by_one_and_the_strictest_counts():
    """Skips add up."""
    log = new_log(None, *(base(i) for i in range(4)))
    stale = log.snapshot()
    log.commit(lambda s: WINNERS["append far"])
    log.commit(lambda s: WINNERS["delete file 1"])
    log.commit(lambda s: CommitPlan(Rewrite(), "DELETE", (gone(3),)))
    done = TransactionLog(log.store, NO_CHECKPOINTS).commit(lambda s: ME["compact"], snapshot=stale)
    assert done.no_op
    assert done.skipped == {"one", "three"}
    assert done.version == 3


def test_nothing_is_left_of_an_analyze_whose_columns_changed_but_other_columns_stay():
    """The statistics of a widened column would be spelled in its old type."""
    done, _ = race(ME["analyze"], WINNERS["widen a column"])
    split = done.snapshot.split(file_of(1))
    assert ("id",) not in split.stats.min_values
    assert ("name",) in split.stats.min_values
    assert split.size == 5


def test_rows_written_before_a_column_was_widened_are_still_readable_and_pruned():
    """Their statistics are spelled in the old type, and read in the new one."""
    done, _ = race(ME["append"], WINNERS["widen a column"])
    split = done.snapshot.split(file_of(70))
    assert split.schema_id == 0
    assert int(split.stats.min_values["id",]) == 700


def test_an_append_that_changes_the_schema_itself_is_planned_again():
    """Its new schema must follow the winner's, not replace it."""
    mine = CommitPlan(Append(), "APPEND", (wider(), base(70, schema_id=1)))
    done, planned = race(mine, WINNERS["widen a column"])
    assert planned == [0, 1]
    assert done.version == 2


def test_a_winner_that_raises_the_protocol_makes_everybody_plan_again_or_give_up():
    """What it asks for may be what this plan violates."""
    done, planned = race(
        ME["append"],
        CommitPlan(
            ChangeSchema(),
            "UPGRADE",
            (Protocol(2, 2, ("mergeOnRead",), ("commitTrailer", "mergeOnRead")),),
        ),
    )
    assert planned == [0, 1]
    with pytest.raises(ProtocolError):
        race(ME["append"], CommitPlan(ChangeSchema(), "UPGRADE", (Protocol(2, 9),)))


def test_the_winner_is_judged_by_its_actions_not_by_the_name_of_its_operation():
    """Other writers call things by other names."""
    odd = replace(WINNERS["delete file 1"], operation="APPEND")
    _, planned = race(ME["delete"], odd)
    assert planned == [0, 1]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Rebase(), Rebase(), Rebase()),
        (Rebase(), Skip(frozenset("a")), Skip(frozenset("a"))),
        (Skip(frozenset("a")), Skip(frozenset("b")), Skip(frozenset("ab"))),
        (Skip(frozenset("a")), Replan("x"), Replan("x")),
        (Replan("x"), Skip(frozenset("a")), Replan("x")),
        (Replan("x"), Rebase(), Replan("x")),
        (Replan("x"), Conflict(ValueError("y")), "conflict"),
        (Conflict(ValueError("y")), Replan("x"), "conflict"),
    ],
)
def test_the_stricter_of_two_demands(left, right, expected):
    """Conflict over re-plan over skip over rebase."""
    found = _stricter(left, right)
    assert isinstance(found, Conflict) if expected == "conflict" else found == expected
