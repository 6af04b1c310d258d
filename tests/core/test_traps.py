"""Every trap on which other pruners lose a row or keep a file in vain, straight through the index."""

import json

import pytest

from indextables.config import Config
from indextables.core.binding.bind import bind
from indextables.core.statistics.collect import stats_columns
from indextables.core.pruning.index import ColumnStatsIndex, source_of
from indextables.core.pruning.prune import may_match
from indextables.core.statistics.stats import collect_stats, from_wire, to_wire
from indextables.core.statistics.truncate import TruncationOptions, truncate_stats
from indextables.core.types import leaves
from indextables.sql.predicate import parse_predicate
from support.traps import load_traps

TRAPS = load_traps()


def statistics(split, trap):
    """What the log holds of a split, read by the schema the table has now."""
    config = Config.of(write=split.properties)
    columns = stats_columns(split.schema, trap.partition_by, config)
    found = collect_stats(split.data, split.schema, columns)
    found, _ = truncate_stats(
        found, split.schema, TruncationOptions.from_config(config), trap.partition_by
    )
    wire = merged(json.loads(json.dumps(to_wire(found, split.schema))), split.stats)
    return from_wire(wire, trap.schema)


def merged(value, patch):
    """RFC 7386: null removes, an object merges, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result


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
