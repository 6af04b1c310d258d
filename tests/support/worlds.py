"""Every split a small universe of values allows, and what its statistics leave possible: brute force.

A universe holds the literals that conditions may use and one value for each gap around them, so
that a condition can tell apart no two values that the universe cannot. Counts are zero, some or all.
"""

import itertools
import math
from dataclasses import dataclass, replace
from decimal import Decimal

from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import DecimalType, Field, PrimitiveType, StructType

ROWS = 10
TINY = 5e-324
HUGE = Decimal(10**35)
ONE_STEP_UP = 1.0000001192092896  # the float32 after 1.0


@dataclass(frozen=True)
class Universe:
    """A column's type, its values in order (NaN last) and those of them that literals may be."""

    name: str
    type: object
    values: tuple
    literals: tuple

    @property
    def states(self):
        return (*self.values, None)


UNIVERSES = (
    Universe("boolean", PrimitiveType("boolean"), (False, True), (False, True)),
    Universe("byte", PrimitiveType("byte"), (-128, 0, 1, 2, 127), (0, 1, 2)),
    Universe("byte_edges", PrimitiveType("byte"), (-128, 5, 127), (-128, 127)),
    Universe("long_edges", PrimitiveType("long"), (-(2**63), 0, 2**63 - 1), (-(2**63), 2**63 - 1)),
    Universe("date", PrimitiveType("date"), (-9, -1, 0, 1, 9), (-1, 0, 1)),
    Universe("timestamp", PrimitiveType("timestamp"), (-9, -1, 0, 9), (-1, 0)),
    Universe(
        "decimal",
        DecimalType(3, 1),
        (Decimal("-9.0"), Decimal("0.0"), Decimal("0.1"), Decimal("5.0")),
        (Decimal("0.0"), Decimal("0.1")),
    ),
    Universe(
        "wide_decimal",
        DecimalType(38, 2),
        (-HUGE, Decimal("-0.01"), Decimal("0.00"), Decimal("7.00"), Decimal(2**66), HUGE),
        (Decimal("-0.01"), Decimal("0.00"), Decimal(2**66)),
    ),
    Universe(
        "double",
        PrimitiveType("double"),
        (-math.inf, -TINY, 0.0, TINY, 7.0, math.nan),
        (-TINY, -0.0, TINY, math.nan),
    ),
    Universe(
        "double_edges",
        PrimitiveType("double"),
        (-math.inf, 0.0, 1.7976931348623157e308, math.inf, math.nan),
        (-math.inf, 1.7976931348623157e308, math.inf, math.nan),
    ),
    Universe(
        "float",
        PrimitiveType("float"),
        (-2.0, 1.0, ONE_STEP_UP, 9.0, math.nan),
        (1.0, ONE_STEP_UP, math.nan),
    ),
    Universe("string", PrimitiveType("string"), ("", "a", "aa", "ab", "abc", "ac", "b"), ("a", "ab")),
    Universe(
        "string_neighbours",
        PrimitiveType("string"),
        ("", "a", "a\0", "a\0\0", "aa", "b"),
        ("a", "a\0"),
    ),
    Universe(
        "string_planes",
        PrimitiveType("string"),
        ("A", "\ufffd", "\ufffdA", "\uffff", "\U0001d403", "\U0001d403A", "\U0010ffff"),
        ("\ufffd", "\U0001d403"),
    ),
    Universe(
        "binary",
        PrimitiveType("binary"),
        (b"", b"\xfe", b"\xfe\x01", b"\xff", b"\xff\x01"),
        (b"\xfe", b"\xff"),
    ),
)


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def stats_of(present, path=("c",)):
    """The statistics of a split that holds these states, each at least once."""
    numbers = [v for v in present if v is not None and not is_nan(v)]
    kinds = [None in present, any(map(is_nan, present)), bool(numbers)]
    shares = {1: (ROWS,), 2: (4, 6), 3: (2, 3, 5)}[sum(kinds)]
    counts = iter(shares)
    null, nan, _ = (next(counts) if kind else 0 for kind in kinds)
    bounds = ({path: numbers[0]}, {path: numbers[-1]}) if numbers else ({}, {})
    return SplitStats(ROWS, *bounds, null_count={path: null}, nan_count={path: nan})


def erased(stats, what):
    """The same statistics with some of them lost."""
    lost = {
        "numRecords": {"num_records": None},
        "min": {"min_values": {}},
        "max": {"max_values": {}},
        "nullCount": {"null_count": {}},
        "nanCount": {"nan_count": {}},
    }
    for name in what:
        stats = replace(stats, **lost[name])
    return stats


def allows(stats, present, path=("c",)):
    """Whether a split that holds exactly these states could have these statistics."""
    numbers = [v for v in present if v is not None and not is_nan(v)]
    has_null, has_nan, has_value = None in present, any(map(is_nan, present)), bool(numbers)
    records, null, nan = stats.num_records, stats.null_count.get(path), stats.nan_count.get(path)
    for count, has, others in (
        (null, has_null, has_nan or has_value),
        (nan, has_nan, has_null or has_value),
    ):
        if count is None:
            continue
        if (count > 0) != has or (has and records is not None and (count < records) != others):
            return False
    if None not in (records, null, nan) and (null + nan < records) != has_value:
        return False
    for bounds, at in ((stats.min_values, 0), (stats.max_values, -1)):
        if path in bounds and not (numbers and numbers[at] == bounds[path]):
            return False
    return True


@dataclass(frozen=True)
class World:
    """All statistics one universe can produce, and for each the states some consistent split has."""

    universe: Universe
    index: ColumnStatsIndex
    possible: tuple

    def expected(self, outcome_of):
        """Per split and outcome, whether a row with that outcome may exist."""
        outcomes = [outcome_of(state) for state in self.universe.states]
        return {
            wanted: [any(outcomes[i] is wanted for i in states) for states in self.possible]
            for wanted in (True, False, None)
        }


PARTS = ("numRecords", "min", "max", "nullCount", "nanCount")
LOSSES = tuple(
    itertools.chain.from_iterable(itertools.combinations(PARTS, n) for n in (0, 1, 2, len(PARTS)))
)


def splits_of(universe):
    """The positions of all states a split may hold, fullest first among those that look alike."""
    numbers = [i for i, v in enumerate(universe.values) if not is_nan(v)]
    ranges = [(), *(tuple(numbers[a : b + 1]) for a in numbers for b in numbers[a:])]
    others = [i for i, v in enumerate(universe.states) if v is None or is_nan(v)]
    for size in range(len(others) + 1):
        for rest in itertools.combinations(others, size):
            yield from (held for values in ranges if (held := values + rest))


def world_of(universe, losses=LOSSES):
    """The world of a universe: every set of states it can hold, under every loss of statistics.

    Of all splits with the same bounds and counts only the one that holds everything between its bounds
    is looked at: what any of them has, it has.
    """
    splits = list(splits_of(universe))
    present = [[universe.states[i] for i in split] for split in splits]
    stats = [erased(stats_of(states), loss) for states in present for loss in losses]
    found = {repr(s): s for s in stats}
    possible = []
    for each in found.values():
        fitting = [s for s, states in zip(splits, present, strict=True) if allows(each, states)]
        possible.append(tuple(sorted(set(itertools.chain.from_iterable(fitting)))))
    schema = StructType((Field("c", universe.type),))
    return World(universe, ColumnStatsIndex(source_of(list(found.values()), schema)), tuple(possible))


@dataclass(frozen=True)
class Pair:
    """Two columns, a and b, of every statistics their universes can produce, in every combination.

    A row exists with one state in a and another in b iff each is possible in its column: statistics
    say nothing about which values meet in a row.
    """

    left: World
    right: World
    index: ColumnStatsIndex

    def expected(self, outcome_of):
        """Per split and outcome, whether a row with that outcome may exist."""
        outcomes = [
            [outcome_of(a, b) for b in self.right.universe.states] for a in self.left.universe.states
        ]
        return {
            wanted: [
                any(outcomes[i][j] is wanted for i in here for j in there)
                for here in self.left.possible
                for there in self.right.possible
            ]
            for wanted in (True, False, None)
        }


def pair_of(left, right, losses=((), ("max",), ("nullCount",))):
    """The world of two columns a and b; the number of rows is one for both, so it is never lost."""
    assert not any("numRecords" in loss for loss in losses)
    return _joined(world_of(left, losses), world_of(right, losses))


def bounded(world):
    """The same world without splits whose values may lie outside the universe: their bounds are lost."""
    has_values = [any(v is not None and not is_nan(v) for v in states) for states in _states(world)]
    stats = world.index.source.stats
    kept = [i for i, s in enumerate(stats) if not has_values[i] or (s.min_values and s.max_values)]
    source = source_of([stats[i] for i in kept], world.index.source.schema)
    return World(world.universe, ColumnStatsIndex(source), tuple(world.possible[i] for i in kept))


def _states(world):
    return [[world.universe.states[i] for i in positions] for positions in world.possible]


def bounded_pair_of(left, right, losses):
    """Like `pair_of`, for columns compared with each other: there every value is a literal."""
    return _joined(bounded(world_of(left, losses)), bounded(world_of(right, losses)))


def _joined(a, b):
    stats = [_both(one, other) for one in a.index.source.stats for other in b.index.source.stats]
    schema = StructType((Field("a", a.universe.type), Field("b", b.universe.type)))
    return Pair(a, b, ColumnStatsIndex(source_of(stats, schema)))


def _both(a, b):
    names = ("min_values", "max_values", "null_count", "nan_count")
    merged = {
        name: {(column,): v for column, s in (("a", a), ("b", b)) for v in getattr(s, name).values()}
        for name in names
    }
    return SplitStats(ROWS, **merged)
