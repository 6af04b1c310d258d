"""Rewrites keep the three-valued result for every row, and never run out of stack."""

from __future__ import annotations

import itertools
import math

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
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.predicate.tree import columns_of, distinct, flatten, fold, gather_lists
from support.truth import truth

A, B = Ref(("a",)), Ref(("b",))
VALUES = (None, -1.0, 0.0, 1.0, 2.0, math.nan)
ROWS = [{A.path: a, B.path: b} for a, b in itertools.product(VALUES, VALUES)]

refs = st.sampled_from([A, B])
points = st.sampled_from([-1.0, 0.0, -0.0, 1.0, 2.0, math.nan]).map(Literal)
rules = st.sampled_from(NanRule)
leaves = st.one_of(
    st.builds(Compare, st.sampled_from(["=", "=", "<>", "<>", "<", ">="]), refs, points, rules),
    st.builds(IsIn, refs, st.lists(points | st.just(Literal(None)), max_size=3).map(tuple), rules),
    st.builds(IsNull, refs),
    st.builds(Constant, st.sampled_from([True, False, None])),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=4).map(lambda parts: Or(tuple(parts))),
        st.builds(Not, inner),
        st.builds(IsTrue, inner),
    ),
    max_leaves=12,
)


@given(trees)
def test_flattening_changes_no_truth_value(tree: Predicate) -> None:
    """Merged ANDs and ORs, dropped double NOTs: the same TRUE, FALSE and NULL."""
    flat = flatten(tree)
    assert [truth(flat, row) for row in ROWS] == [truth(tree, row) for row in ROWS]
    assert flatten(flat) == flat


@given(trees)
def test_gathering_lists_changes_no_truth_value(tree: Predicate) -> None:
    """Equalities become lists, also with NaN under both rules and with NULL in a list."""
    gathered = gather_lists(flatten(tree))
    assert [truth(gathered, row) for row in ROWS] == [truth(tree, row) for row in ROWS]


def test_an_empty_list_never_joins_others() -> None:
    """`c IN ()` is FALSE for NULL, `c IN (1)` is not."""
    alone = IsIn(A, ())
    both = Or((alone, Compare("=", A, Literal(1))))
    assert gather_lists(both) == both


def test_the_two_nan_rules_do_not_share_a_list() -> None:
    """NaN is in one list and not in the other."""
    spark = Compare("=", A, Literal(math.nan), NanRule.SPARK)
    ieee = Compare("=", A, Literal(math.nan), NanRule.IEEE)
    assert gather_lists(Or((spark, ieee))) == Or((spark, ieee))


def _deep(levels: int) -> Predicate:
    tree: Predicate = BoolRef(A)
    for i in range(levels):
        tree = (Not, IsTrue, lambda t: And((t,)), lambda t: Or((t, BoolRef(B))))[i % 4](tree)
    return tree


def test_fifty_thousand_levels_need_no_stack() -> None:
    """Depth is data here, not recursion."""
    tree = _deep(50_000)
    assert fold(tree, lambda _, inner: 1 + sum(inner)) > 50_000
    assert columns_of(tree) == (A.path, B.path)
    assert columns_of(gather_lists(flatten(tree))) == (A.path, B.path)


def test_a_fold_sees_children_before_parents_in_order() -> None:
    """Results of the children arrive left to right."""
    tree = And((Constant(True), Or((Constant(False), Constant(None)))))
    seen: list[str] = []

    def visit(node: Predicate, inner: tuple[str, ...]) -> str:
        seen.append(type(node).__name__)
        return f"{type(node).__name__}({','.join(inner)})"

    assert fold(tree, visit) == "And(Constant(),Or(Constant(),Constant()))"
    assert seen == ["Constant", "Constant", "Constant", "Or", "And"]


def test_every_leaf_names_its_columns() -> None:
    """Each once, in the order of appearance, also those an opaque part reads."""
    c, d = ("c", "x"), ("d",)
    tree = And(
        (
            Compare("<", A, B),
            Compare("<", Literal(1), Ref(c)),
            IsNan(A),
            StartsWith(B, "x"),
            Opaque("f(d)", (d, A.path)),
        )
    )
    assert columns_of(tree) == (A.path, B.path, c, d)


def test_a_value_is_listed_once_and_null_last() -> None:
    """Two zeros are one value; NULL closes the list."""
    given_values = (Literal(None), Literal(0.0), Literal(-0.0), Literal(1), Literal(None))
    assert distinct(given_values) == (Literal(0.0), Literal(1), Literal(None))
