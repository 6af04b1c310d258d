"""Every trap on which other pruners lose a row or keep a file in vain, straight through the index."""

import pytest

from indextables.core.bind.bind import bind
from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.prune.evaluate import may_match
from indextables.core.stats import from_wire
from indextables.core.types import leaves
from indextables.sql.conditions.parser import parse_predicate
from support.traps import load_traps, wire_statistics

TRAPS = load_traps()


def statistics(split, trap):
    """What the log holds of a split, read by the schema the table has now."""
    return from_wire(wire_statistics(split, trap), trap.schema)


def partition_values(split, trap):
    row = split.data.slice(0, 1).to_pylist()[0] if split.data.num_rows else {}
    return {name: None if row.get(name) in (None, "") else str(row[name]) for name in trap.partition_by}


def newer(split, trap):
    then = {leaf.path for leaf in leaves(split.schema)}
    return {leaf.path for leaf in leaves(trap.schema)} - then | split.dropped


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_keeps_exactly_the_splits_it_should(trap):
    """No split with a matching row is lost, and none is kept that statistics exclude."""
    source = source_of(
        [statistics(split, trap) for split in trap.splits],
        trap.schema,
        partition_columns=trap.partition_by,
        partition_values=[partition_values(split, trap) for split in trap.splits],
        newer=[newer(split, trap) for split in trap.splits],
    )
    where = bind(
        parse_predicate(trap.where, timezone=trap.timezone), trap.schema, timezone=trap.timezone
    )
    kept = may_match(where, ColumnStatsIndex(source))
    assert [i for i, bit in enumerate(kept) if bit] == trap.keeps, trap.why
    assert {split for split, _ in trap.rows or ()} <= set(trap.keeps), "a row outside the kept splits"


def test_the_traps_are_all_there():
    """At least forty, each with a name of its own and a reason."""
    assert len(TRAPS) >= 40
    assert len({trap.name for trap in TRAPS}) == len(TRAPS)
    assert all(trap.why for trap in TRAPS)
