"""The pruner keeps the fewest splits that the statistics allow: compared with brute force."""

import functools
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from indextables.core.prune.evaluate import evaluate, may_match, must_match
from support.truth import truth
from indextables.core.types import DecimalType, PrimitiveType
from support.worlds import TINY, UNIVERSES, Universe, bounded_pair_of, pair_of, world_of

C = Ref(("c",))
OPS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
world = functools.cache(world_of)


def leaves_over(universe, ref=C):
    """Every kind of leaf a bound condition can have on this column."""
    literals = st.sampled_from(universe.literals).map(lambda v: Literal(v, universe.type))
    nulls = st.just(Literal(None, universe.type))
    rules = st.sampled_from(NanRule)
    kinds = [
        st.builds(Compare, st.sampled_from(OPS), st.just(ref), literals | nulls, rules),
        st.builds(Compare, st.sampled_from(OPS), st.just(ref), st.just(ref), rules),
        st.builds(
            lambda values, rule: IsIn(ref, tuple(values), rule),
            st.lists(literals | nulls, max_size=4),
            rules,
        ),
        st.just(IsNull(ref)),
        st.builds(Constant, st.sampled_from((True, False, None))),
    ]
    if universe.type.__class__.__name__ == "PrimitiveType":
        match universe.type.name:
            case "float" | "double":
                kinds.append(st.just(IsNan(ref)))
            case "boolean":
                kinds.append(st.just(BoolRef(ref)))
            case "string" | "binary":
                prefixes = st.sampled_from((universe.literals[0][:0], *universe.literals))
                kinds.append(prefixes.map(lambda p: StartsWith(ref, p)))
    return st.one_of(kinds)


def trees_over(leaves, size=6):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(IsTrue, inner),
            st.builds(lambda c: And(tuple(c)), st.lists(inner, max_size=3)),
            st.builds(lambda c: Or(tuple(c)), st.lists(inner, max_size=3)),
        ),
        max_leaves=size,
    )


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda u: u.name)
@given(data=st.data())
def test_one_column_keeps_exactly_what_some_consistent_split_needs(universe, data):
    """TRUE, FALSE and NULL are each possible in a split iff a split with these statistics can have it."""
    here = world(universe)
    p = data.draw(trees_over(leaves_over(universe)))
    masks = evaluate(p, here.index)
    expected = here.expected(lambda state: truth(p, {C.path: state}))
    assert masks.true.tolist() == expected[True]
    assert masks.false.tolist() == expected[False]
    assert masks.null.tolist() == expected[None]
    assert may_match(p, here.index).tolist() == expected[True]
    other = zip(expected[False], expected[None], strict=True)
    assert must_match(p, here.index).tolist() == [not (f or n) for f, n in other]


A, B = Ref(("a",)), Ref(("b",))
BY_NAME = {u.name: u for u in UNIVERSES}
pair = functools.cache(lambda left, right: pair_of(BY_NAME[left], BY_NAME[right]))


def over(name, ref):
    return trees_over(leaves_over(BY_NAME[name], ref), size=3)


@pytest.mark.parametrize("names", [("boolean", "decimal"), ("byte_edges", "float")], ids="-".join)
@given(data=st.data())
def test_an_and_of_one_column_conditions_keeps_the_minimum(names, data):
    """Whatever way conditions on two columns are mixed under ANDs, no split is kept in vain."""
    here = pair(*names)
    parts = data.draw(st.lists(over(names[0], A) | over(names[1], B), min_size=2, max_size=3))
    nested = And((parts[0], And(tuple(parts[1:])), Not(Or((Not(parts[-1]), Constant(False))))))
    expected = here.expected(lambda a, b: truth(nested, {A.path: a, B.path: b}))
    assert may_match(nested, here.index).tolist() == expected[True]


@pytest.mark.parametrize("names", [("boolean", "decimal"), ("byte_edges", "float")], ids="-".join)
@given(data=st.data())
def test_any_tree_over_two_columns_never_denies_a_possible_outcome(names, data):
    """Three bitsets may say too much of correlated parts, but never too little."""
    here = pair(*names)
    leaves = leaves_over(BY_NAME[names[0]], A) | leaves_over(BY_NAME[names[1]], B)
    p = data.draw(trees_over(leaves))
    masks = evaluate(p, here.index)
    expected = here.expected(lambda a, b: truth(p, {A.path: a, B.path: b}))
    for mask, outcome in ((masks.true, True), (masks.false, False), (masks.null, None)):
        assert not [i for i, e in enumerate(expected[outcome]) if e and not mask[i]]
    assert may_match(p, here.index).tolist() == masks.true.tolist()
    assert must_match(p, here.index).tolist() == (~(masks.false | masks.null)).tolist()


NEIGHBOURS = {
    "boolean": Universe("", PrimitiveType("boolean"), (False, True), ()),
    "integers": Universe("", PrimitiveType("integer"), (0, 1, 2, 3), ()),
    "longs": Universe("", PrimitiveType("long"), (0, 1, 2, 3), ()),
    "doubles": Universe("", PrimitiveType("double"), (-TINY, 0.0, TINY, math.nan), ()),
    "texts": Universe("", PrimitiveType("string"), ("a", "a\0", "a\0\0"), ()),
    "binaries": Universe("", PrimitiveType("binary"), (b"", b"\0", b"\0\0"), ()),
    "decimals": Universe("", DecimalType(3, 1), (Decimal("0.0"), Decimal("0.1"), Decimal("0.2")), ()),
    "wide": Universe("", DecimalType(38, 1), (Decimal("0.0"), Decimal("0.1"), Decimal("0.2")), ()),
}
"""Values with nothing between them: then two columns can meet only where their universe says so."""


@functools.cache
def neighbours(left, right):
    counts = ((), ("nullCount",), ("nanCount",), ("nullCount", "nanCount"))
    if left == right == "boolean":  # the whole type is in the universe: its bounds may be lost too
        return pair_of(
            NEIGHBOURS[left], NEIGHBOURS[right], (*counts, ("min",), ("max",), ("min", "max"))
        )
    return bounded_pair_of(NEIGHBOURS[left], NEIGHBOURS[right], counts)


@pytest.mark.parametrize("rule", NanRule)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "names",
    [("boolean", "boolean"), ("integers", "longs"), ("doubles", "doubles"), ("texts", "texts")]
    + [("binaries", "binaries"), ("decimals", "decimals"), ("wide", "decimals")],
    ids="-".join,
)
def test_two_columns_compared_have_exactly_the_outcomes_their_bounds_allow(names, op, rule):
    """Each cell of the column-against-column table, with NaN, NULL and lost counts."""
    here = neighbours(*names)
    p = Compare(op, A, B, rule)
    masks = evaluate(p, here.index)
    expected = here.expected(lambda a, b: truth(p, {A.path: a, B.path: b}))
    assert masks.true.tolist() == expected[True]
    assert masks.false.tolist() == expected[False]
    assert masks.null.tolist() == expected[None]


@pytest.mark.parametrize("rule", NanRule)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "names",
    [("float", "double"), ("byte_edges", "byte"), ("decimal", "wide_decimal"), ("byte", "double")],
    ids="-".join,
)
def test_columns_of_different_types_never_deny_a_possible_outcome(names, op, rule):
    """Different widths and scales meet on one line; types without one may have any outcome."""
    here = pair(*names)
    p = Compare(op, A, B, rule)
    masks = evaluate(p, here.index)
    expected = here.expected(lambda a, b: truth(p, {A.path: a, B.path: b}))
    for mask, outcome in ((masks.true, True), (masks.false, False), (masks.null, None)):
        assert not [i for i, e in enumerate(expected[outcome]) if e and not mask[i]]
