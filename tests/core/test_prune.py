"""The pruner: leaf tables cell by cell, trees of any depth, and what it owes to every kind of statistics."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.core.bind.bind import bind
from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Or,
    Ref,
    StartsWith,
)
from indextables.core.prune.evaluate import evaluate, may_match, must_match, prune
from indextables.core.predicate.tree import fold, rebuild
from indextables.core.stats.split_stats import SplitStats, from_wire, to_wire
from indextables.core.stats import collect_stats
from indextables.core.stats.truncate import TruncationOptions, TruncationRule, truncate_stats
from indextables.core.types import (
    Field,
    ListType,
    PrimitiveType,
    StructType,
    is_float,
    leaves,
)
from indextables.core.stats.values import to_physical
from indextables.sql.conditions.parser import parse_predicate
from support.strategies import ORDERED_TYPES, tables, values_of
from support.truth import truth

CASES = Path(__file__).parent / "cases"
C = ("c",)


# -- the leaf tables ---------------------------------------------------------------------------------


def leaf_cases():
    header = None
    for line in (CASES / "leaf_tables.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            name, dtype, states = re.match(r"@ (\w+) (\w+): (.*)", line).groups()
            header = (name, PrimitiveType(dtype), words(states))
        elif line and not line.startswith("#"):
            rule, condition, *outcomes, why = (part.strip() for part in line.split("|"))
            yield pytest.param(
                header,
                rule,
                condition,
                [set(words(o)) for o in outcomes],
                id=f"{rule}: {condition} ({why})",
            )


def words(text):
    return re.findall(r"'[^']*'|\S+", text)


def state(text, dtype):
    if text == "null":
        return None
    if text.startswith("'"):
        return text[1:-1]
    return {"boolean": lambda t: t == "true", "integer": int, "double": float}[dtype.name](text)


def only(value, path=C):
    """The statistics of a split all of whose rows have this one value."""
    if value is None:
        return SplitStats(3, null_count={path: 3}, nan_count={path: 0})
    counts = {"null_count": {path: 0}, "nan_count": {path: 0}}
    if isinstance(value, float) and math.isnan(value):
        return SplitStats(3, null_count={path: 0}, nan_count={path: 3})
    return SplitStats(3, {path: value}, {path: value}, **counts)


def with_rule(predicate, rule):
    def visit(node, inner):
        rebuilt = rebuild(node, inner)
        return replace(rebuilt, nan=rule) if isinstance(node, Compare | IsIn) else rebuilt

    return fold(predicate, visit)


@pytest.mark.parametrize(("column", "rule", "condition", "outcomes"), list(leaf_cases()))
def test_a_leaf_may_be_true_false_and_null_exactly_where_its_table_says(
    column, rule, condition, outcomes
):
    """One split per state, three columns of the table: every cell."""
    name, dtype, states = column
    schema = StructType((Field(name, dtype),))
    splits = [only(state(text, dtype), (name,)) for text in states]
    index = ColumnStatsIndex(source_of(splits, schema))
    predicate = with_rule(parse_predicate(condition), NanRule(rule))
    masks = evaluate(bind(predicate, schema), index)
    found = [
        {text for text, bit in zip(states, mask, strict=True) if bit}
        for mask in (masks.true, masks.false, masks.null)
    ]
    assert found == outcomes


# -- a pruned split holds no matching row ------------------------------------------------------------

OPS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
flat = st.sampled_from(ORDERED_TYPES)
nested = st.lists(flat, min_size=1, max_size=2).map(
    lambda types: StructType(tuple(Field(f"f{i}", t) for i, t in enumerate(types)))
)
schemas = st.lists(flat | flat | nested, min_size=1, max_size=3).map(
    lambda types: StructType(tuple(Field(f"c{i}", t) for i, t in enumerate(types)))
)


def physical_rows(schema, data):
    """Each row as a mapping of every path, structs too, to its physical value."""
    return [dict(_paths(schema, row, ())) for row in data.to_pylist()]


def _paths(struct, row, prefix):
    for f in struct:
        value, path = None if row is None else row[f.name], (*prefix, f.name)
        if isinstance(f.type, StructType):
            yield path, value
            yield from _paths(f.type, value, path)
        else:
            yield path, None if value is None else to_physical(value, f.type)


@st.composite
def tables_and_conditions(draw):
    """Splits of one schema, their statistics after truncation and loss, and a bound condition."""
    schema = draw(schemas)
    splits = draw(st.lists(tables(st.just(schema), max_rows=4), min_size=1, max_size=3))
    data = [table for _, table in splits]
    rule = TruncationRule(
        draw(st.integers(13, 20)), draw(st.sampled_from(("drop", "truncate", "bound")))
    )
    stats = [draw(worn(collected(table, schema, rule))) for table in data]
    rows = [physical_rows(schema, table) for table in data]
    condition = draw(conditions(schema, [row for split in rows for row in split]))
    return schema, stats, rows, condition


def collected(table, schema, rule):
    paths = [leaf.path for leaf in leaves(schema)]
    stats, _ = truncate_stats(
        collect_stats(table, schema, paths), schema, TruncationOptions(default=rule)
    )
    return from_wire(json.loads(json.dumps(to_wire(stats, schema))), schema)


def worn(stats):
    """The statistics with anything missing, as older logs and other writers leave them."""
    maps = ("min_values", "max_values", "null_count", "nan_count")
    subset = {
        name: st.lists(st.sampled_from(sorted(getattr(stats, name))), unique=True).map(set)
        if getattr(stats, name)
        else st.just(set())
        for name in maps
    }

    def lose(lost, records):
        kept = {
            name: {p: v for p, v in getattr(stats, name).items() if p not in lost[name]}
            for name in maps
        }
        return replace(stats, num_records=stats.num_records if records else None, **kept)

    return st.just(stats) | st.builds(lose, st.fixed_dictionaries(subset), st.booleans())


def conditions(schema, rows):
    return st.recursive(
        st.one_of([leaf_conditions(leaf, rows, schema) for leaf in leaves(schema)])
        | st.sampled_from([IsNull(Ref((f.name,))) for f in schema])
        | st.builds(Constant, st.sampled_from((True, False, None))),
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(IsTrue, inner),
            st.builds(lambda c: And(tuple(c)), st.lists(inner, max_size=3)),
            st.builds(lambda c: Or(tuple(c)), st.lists(inner, max_size=3)),
        ),
        max_leaves=8,
    )


def leaf_conditions(leaf, rows, schema):
    ref, rules = Ref(leaf.path), st.sampled_from(NanRule)
    present = sorted({repr(row[leaf.path]): row[leaf.path] for row in rows}.items())
    values = values_of(leaf.type).map(lambda v: to_physical(v, leaf.type))
    if present:
        values |= st.sampled_from([value for _, value in present])
    literals = values.map(lambda v: Literal(v, leaf.type))
    same = [Ref(other.path) for other in leaves(schema) if other.type == leaf.type]
    kinds = [
        st.builds(Compare, st.sampled_from(OPS), st.just(ref), literals | st.sampled_from(same), rules),
        st.builds(lambda v, n: IsIn(ref, tuple(v), n), st.lists(literals, max_size=12), rules),
        st.just(IsNull(ref)),
    ]
    if is_float(leaf.type):
        kinds.append(st.just(IsNan(ref)))
    if leaf.type == PrimitiveType("boolean"):
        kinds.append(st.just(BoolRef(ref)))
    if leaf.type in (PrimitiveType("string"), PrimitiveType("binary")):
        prefixes = st.builds(
            lambda v, n: v[:n], values.filter(lambda v: v is not None), st.integers(0, 3)
        )
        kinds.append(st.builds(StartsWith, st.just(ref), prefixes, st.just(True)))
    return st.one_of(kinds)


@given(tables_and_conditions())
def test_a_pruned_split_holds_no_matching_row(case):
    """Nasty values, truncated and lost statistics, any condition: whatever a row says, its bit is set."""
    schema, stats, rows, condition = case
    index = ColumnStatsIndex(source_of(stats, schema))
    masks, must = evaluate(condition, index), must_match(condition, index)
    for i, split in enumerate(rows):
        outcomes = {truth(condition, row) for row in split}
        assert bool(masks.true[i]) >= (True in outcomes)
        assert bool(masks.false[i]) >= (False in outcomes)
        assert bool(masks.null[i]) >= (None in outcomes)
        assert not must[i] or outcomes <= {True}
    assert may_match(condition, index).tolist() == masks.true.tolist()


# -- size --------------------------------------------------------------------------------------------

NUMBERS = StructType((Field("n", PrimitiveType("long")), Field("s", PrimitiveType("string"))))
N, S = Ref(("n",)), Ref(("s",))


def ranges_index(pairs, as_text="{:02d}".format):
    stats = [
        SplitStats(
            9,
            {("n",): low, ("s",): as_text(low)},
            {("n",): high, ("s",): as_text(high)},
            {("n",): 0, ("s",): 0},
        )
        for low, high in pairs
    ]
    return ColumnStatsIndex(source_of(stats, NUMBERS))


def padded(number):
    return f"a common and rather long beginning {number + 500:04d}"


@pytest.mark.parametrize("negated", [False, True], ids=["IN", "NOT IN"])
@pytest.mark.parametrize("as_text", [padded, lambda v: f"{v + 500:04d}"], ids=["stem", "plain"])
@given(
    members=st.lists(st.integers(-50, 50), min_size=6, max_size=40, unique=True),
    pairs=st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 9)), max_size=30),
)
def test_a_long_list_keeps_only_ranges_that_hold_a_member(negated, as_text, members, pairs):
    """Not the list's own min and max: each split's range is searched for a member, in numbers and text."""
    ranges = [(low, low + width) for low, width in pairs]
    index = ranges_index(ranges, as_text)
    for ref, literal in ((N, lambda v: v), (S, as_text)):
        condition = IsIn(ref, tuple(Literal(literal(v)) for v in members))
        kept = may_match(Not(condition) if negated else condition, index).tolist()
        if not negated:
            assert kept == [any(low <= m <= high for m in members) for low, high in ranges]
        elif ref is N:
            assert kept == [not set(range(low, high + 1)) <= set(members) for low, high in ranges]
        else:  # between any two texts there is a third
            assert kept == [low != high or low not in members for low, high in ranges]


@given(
    texts=st.lists(
        st.tuples(st.text(st.sampled_from("ab\0\x7f\U0001d403"), max_size=12), st.booleans()),
        max_size=20,
    ),
    stem=st.sampled_from(("", "stem", "a" * 9)),
    data=st.data(),
)
def test_texts_are_compared_in_full_where_their_first_bytes_tie(texts, stem, data):
    """Eight bytes after the common beginning decide most comparisons, never all."""
    bounds = [stem + text if known else None for text, known in texts]
    stats = [
        SplitStats(9, {("s",): b}, {("s",): b}) if b is not None else SplitStats(9) for b in bounds
    ]
    index = ColumnStatsIndex(source_of(stats, NUMBERS))
    present = [b for b in bounds if b is not None] or [stem]
    wanted = data.draw(
        st.lists(st.sampled_from(present) | st.text("ab\0", max_size=14), min_size=1, max_size=12)
    )
    key = lambda text: text.encode()
    for op, holds in (
        ("<", lambda a, b: a < b),
        (">=", lambda a, b: a >= b),
        ("=", lambda a, b: a == b),
    ):
        kept = may_match(Compare(op, S, Literal(wanted[0])), index).tolist()
        unknown = (op, wanted[0]) != ("<", "")  # nothing is below the empty text, whatever the split
        assert kept == [unknown if b is None else holds(key(b), key(wanted[0])) for b in bounds]
    kept = may_match(IsIn(S, tuple(Literal(w) for w in wanted)), index).tolist()
    assert kept == [b is None or b in wanted for b in bounds]


@given(
    pairs=st.lists(
        st.tuples(st.none() | st.text("ab\0", max_size=11), st.none() | st.text("b", max_size=9)),
        max_size=20,
    ),
    wanted=st.lists(st.text("ab\0", max_size=11), min_size=5, max_size=12, unique=True),
)
def test_a_long_list_keeps_what_its_members_keep_one_by_one(pairs, wanted):
    """Also where one bound is unknown: such a split starts below, or reaches above, every member."""
    stats = [
        SplitStats(9, {} if low is None else {S.path: low}, {} if tail is None else {S.path: high})
        for low, tail in pairs
        for high in [f"{low or ''}{tail or ''}"]
    ]
    index = ColumnStatsIndex(source_of(stats, NUMBERS))
    each = [may_match(Compare("=", S, Literal(text)), index) for text in wanted]
    kept = may_match(IsIn(S, tuple(map(Literal, wanted))), index)
    assert kept.tolist() == np.logical_or.reduce(each).tolist()


DEEP = 100_000


def chain(wrap, leaf, depth=DEEP):
    for level in range(depth):
        leaf = wrap(level, leaf)
    return leaf


@pytest.mark.parametrize(
    "wrap",
    [
        lambda _, p: Not(p),
        lambda _, p: IsTrue(Not(p)),
        lambda i, p: And((p, Compare("<>", N, Literal(100 + i)))),
        lambda i, p: Or((Compare("=", N, Literal(100 + i)), p)),
    ],
    ids=["NOT", "IS TRUE of NOT", "AND", "OR"],
)
def test_a_tree_of_a_hundred_thousand_levels_is_evaluated(wrap):
    """Depth is the user's to choose; Python's stack is not involved."""
    predicate = chain(wrap, Compare(">", N, Literal(12)))
    assert may_match(predicate, ranges_index([(1, 9), (11, 19)])).tolist() == [False, True]


@pytest.mark.parametrize(
    "leaf", [Compare("=", N, Literal(15)), Compare("<=>", S, Literal("15"))], ids=["one", "two"]
)
def test_alternating_and_and_or_go_as_deep(leaf):
    """No level merges with the next; with two columns each is a bitset of its own."""
    predicate = chain(
        lambda i, p: (And if i % 2 else Or)((p, leaf)), Compare(">", N, Literal(12)), DEEP // 5
    )
    assert may_match(predicate, ranges_index([(1, 9), (11, 19)])).tolist() == [False, True]


def test_a_wide_and_of_one_column_is_folded_once():
    """All legs on one column are one set of states, built in one sweep."""
    legs = tuple(Compare("<>", N, Literal(i)) for i in range(DEEP // 5))
    index = ranges_index([(5, 9), (DEEP // 5 - 1, DEEP)])
    assert may_match(And(legs), index).tolist() == [False, True]


# -- parts that belong together ----------------------------------------------------------------------


def test_a_plan_needs_one_reading_for_all_its_answers():
    """Kept at all, kept by partition values alone, and which columns were asked."""
    schema = StructType((*NUMBERS.fields, Field("day", PrimitiveType("date"))))
    stats = [SplitStats(9, {("n",): low}, {("n",): low + 1}) for low in (1, 1, 5, 5)]
    days = [{"day": day} for day in ("2024-01-01", "2024-01-02", "2024-01-01", None)]
    source = source_of(stats, schema, partition_columns=["day"], partition_values=days)
    where = bind(parse_predicate("day = '2024-01-01' AND n > 3 AND s LIKE 'x%'"), schema)
    found = prune(where, ColumnStatsIndex(source))
    assert found.kept.tolist() == [False, False, True, False]
    assert found.kept_by_partition.tolist() == [True, False, True, False]
    assert found.columns == (("n",), ("s",))


def test_a_constant_says_the_same_of_every_split_that_has_rows():
    """Of a split without rows nothing can be said, and nothing has to be read."""
    index = ColumnStatsIndex(source_of([SplitStats(0), SplitStats(1), SplitStats()], NUMBERS))
    for value, expected in ((True, [False, True, True]), (False, [False] * 3), (None, [False] * 3)):
        assert may_match(Constant(value), index).tolist() == expected
    assert must_match(Constant(True), index).tolist() == [True] * 3
    assert must_match(Constant(None), index).tolist() == [True, False, False]
    assert np.array_equal(must_match(Not(Constant(False)), index), [True] * 3)


def test_values_without_an_order_can_only_be_null():
    """Binding makes such leaves opaque; one that comes without binding may still be anything."""
    schema = StructType((Field("l", ListType(PrimitiveType("long"))),))
    ref = Ref(("l",))
    index = ColumnStatsIndex(
        source_of([SplitStats(3, null_count={ref.path: n}) for n in (0, 3)], schema)
    )
    for leaf in (Compare("<", ref, Literal([1])), IsIn(ref, (Literal([1]),)), StartsWith(ref, "x")):
        masks = evaluate(leaf, index)
        assert (masks.true & masks.false & masks.null).all()
    assert may_match(Not(IsNull(ref)), index).tolist() == [True, False]


def test_a_table_without_splits_plans_to_nothing():
    """Every array is empty and no comparison stumbles over it."""
    index = ColumnStatsIndex(source_of([], NUMBERS))
    for condition in (
        Compare("=", N, Literal(1)),
        IsIn(N, tuple(Literal(i) for i in range(9))),
        IsIn(S, tuple(Literal(str(i)) for i in range(9))),
        Compare("<", S, Literal("x")),
        IsNull(S),
        Compare("<", N, N),
    ):
        assert may_match(condition, index).tolist() == []


def _longs(*pairs, dtype="long"):
    schema = StructType((Field("a", PrimitiveType(dtype)), Field("b", PrimitiveType(dtype))))
    stats = [
        SplitStats(10, {("a",): low, ("b",): 1}, {("a",): high, ("b",): 1}, {("a",): 0, ("b",): 0})
        for low, high in pairs
    ]
    return schema, ColumnStatsIndex(source_of(stats, schema))


TOP = 2**63 - 1


@pytest.mark.parametrize(
    ("condition", "sure"),
    [
        ("abs(a) >= 0", [True, True, True]),
        ("a + 1 > 0", [True, True, False]),
        ("a + 1 > 0 OR a >= 0", [True, True, False]),
        ("a + 1 > 0 OR b = 1", [True, True, False]),
        ("b = 1 OR a + b > 5", [True, True, False]),
        ("NOT (a + 1 <= 0 AND b = 2)", [True, True, False]),
        ("a % 10 < 10", [True, True, True]),
        ("a div 10 = 1", [False, True, False]),
    ],
)
def test_every_row_matches_only_where_no_part_of_the_condition_may_raise(condition, sure):
    """An engine may come to that part first, whatever the other parts are."""
    schema, index = _longs((0, 9), (10, 19), (5, TOP))
    bound = bind(parse_predicate(condition), schema)
    assert must_match(bound, index).tolist() == sure


def test_a_split_that_may_only_raise_is_kept_unless_it_is_said_not_to():
    """The first of the two bounds of the third split has no successor in its type."""
    schema, index = _longs((0, 9), (10, 19), (TOP, TOP))
    bound = bind(parse_predicate("a + 1 = 5"), schema)
    assert prune(bound, index).kept.tolist() == [True, False, True]
    assert prune(bound, index, keep_errors=False).kept.tolist() == [True, False, False]
