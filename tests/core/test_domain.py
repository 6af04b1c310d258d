"""Domains: RFC-58's markers and ranges, an exact algebra, and the way from conditions and back."""

import datetime as dt
import functools
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import (
    And,
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
    Ref,
    StartsWith,
)
from indextables.core.prune.evaluate import may_match
from indextables.core.types import DecimalType, Field, ListType, PrimitiveType, StructType
from indextables.domain import Bound, ColumnDomain, Domain, Marker, Range
from indextables.errors import PredicateError, UnknownColumnError
from support.truth import truth
from support.worlds import LOSSES, Universe, world_of

NAN = math.nan
BELOW, EXACTLY, ABOVE = Bound.BELOW, Bound.EXACTLY, Bound.ABOVE


@pytest.mark.parametrize(
    ("found", "low", "high"),
    [
        (Range.greater_than(34), Marker(34, ABOVE), Marker(None, BELOW)),
        (Range.at_least(34), Marker(34, EXACTLY), Marker(None, BELOW)),
        (Range.less_than(34), Marker(None, ABOVE), Marker(34, BELOW)),
        (Range.at_most(34), Marker(None, ABOVE), Marker(34, EXACTLY)),
        (Range.equal(34), Marker(34, EXACTLY), Marker(34, EXACTLY)),
    ],
    ids=["col1 > 34", "col1 >= 34", "col1 < 34", "col1 <= 34", "col1 = 34"],
)
def test_a_range_has_the_markers_the_rfc_gives_it(found, low, high):
    """The five examples of RFC-58, marker by marker."""
    assert found == Range(low, high)


def test_markers_stand_in_the_order_of_the_line():
    """-∞ < below 1 < on 1 < above 1 < below 2 < +∞."""
    line = [
        Marker(None, ABOVE),
        *(Marker(v, b) for v in (1, 2) for b in (BELOW, EXACTLY, ABOVE)),
        Marker(None, BELOW),
    ]
    assert sorted(reversed(line)) == line
    assert all(a < b for a, b in zip(line, line[1:], strict=False))


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: Marker(None, EXACTLY), "stands at an end of the line"),
        (lambda: Marker(NAN, EXACTLY), "NaN cannot be the end"),
        (lambda: Marker(Decimal("NaN"), EXACTLY), "NaN cannot be the end"),
        (lambda: Range(Marker(5, ABOVE), Marker(5, BELOW)), "no value between"),
        (lambda: Range(Marker(5, EXACTLY), Marker(5, BELOW)), "no value between"),
        (lambda: Range.between(5, 4), "no value between"),
        (lambda: Range(Marker(5, BELOW), Marker(6, EXACTLY)), "starts EXACTLY at or ABOVE"),
        (lambda: Range(Marker(5, EXACTLY), Marker(6, ABOVE)), "ends EXACTLY at or BELOW"),
        (lambda: Range.between(5, "x"), "must compare with each other"),
        (lambda: Domain.of(1).union(Domain.of("x")), "must compare with each other"),
        (
            lambda: Domain.of(dt.datetime(2024, 1, 1)).intersect(
                Domain.of(dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
            ),
            "must compare with each other",
        ),
    ],
)
def test_a_domain_that_means_nothing_cannot_be_built(build, why):
    """Errors come where the domain is made, not where it silently prunes wrongly."""
    with pytest.raises(PredicateError, match=why):
        build()


@pytest.mark.parametrize(
    ("ranges", "normal"),
    [
        ([Range.between(1, 2), Range.between(2, 3)], [Range.between(1, 3)]),
        ([Range.less_than(2), Range.at_least(2)], [Range.all()]),
        ([Range.less_than(2), Range.greater_than(2)], [Range.less_than(2), Range.greater_than(2)]),
        ([Range.equal(7), Range.equal(3), Range.equal(7)], [Range.equal(3), Range.equal(7)]),
        ([Range.between(1, 9), Range.equal(4)], [Range.between(1, 9)]),
        ([Range.less_than(2), Range.equal(2)], [Range.at_most(2)]),
    ],
)
def test_ranges_are_kept_sorted_disjoint_and_merged(ranges, normal):
    """Two domains that hold the same are equal, however they were written."""
    assert Domain(ranges).ranges == tuple(normal)
    assert Domain(reversed(ranges)) == Domain(normal)
    assert hash(Domain(ranges)) == hash(Domain(normal))


POINTS = (-math.inf, -1.0, -0.5, 0.0, 0.5, 1, 1.5, 2, math.inf, NAN, None)
ends = st.sampled_from((-1, -0.0, 0.0, 1.0, 2))


@st.composite
def ranges(draw):
    low = draw(
        st.one_of(
            st.just(Marker(None, ABOVE)), st.builds(Marker, ends, st.sampled_from((EXACTLY, ABOVE)))
        )
    )
    high = draw(
        st.one_of(
            st.just(Marker(None, BELOW)), st.builds(Marker, ends, st.sampled_from((EXACTLY, BELOW)))
        )
    )
    return Range(low, high) if low <= high else Range.equal(draw(ends))


domains = st.builds(Domain, st.lists(ranges(), max_size=4), st.booleans(), st.booleans())


def members(domain):
    return [point in domain for point in POINTS]


@given(domains, domains)
def test_the_algebra_of_domains_is_that_of_sets(a, b):
    """Union, intersection, complement, overlap and containment agree with membership."""
    ours, theirs = members(a), members(b)
    assert members(a.union(b)) == [x or y for x, y in zip(ours, theirs, strict=True)]
    assert members(a.intersect(b)) == [x and y for x, y in zip(ours, theirs, strict=True)]
    assert members(a.complement()) == [not x for x in ours]
    assert a.complement().complement() == a
    assert a.overlaps(b) is any(members(a.intersect(b)))
    assert a.contains(b) is not any(y and not x for x, y in zip(ours, theirs, strict=True))
    assert a.union(a.complement()) == Domain.all()
    assert a.intersect(a.complement()) == Domain.none()


C, D = Ref(("c",)), Ref(("d",))


@given(domains)
def test_a_domain_as_a_condition_is_true_for_its_members_only(domain):
    """NULL and NaN stay explicit on the way to SQL, where an open range would take NaN in."""
    p = ColumnDomain({"c": domain}).to_predicate()
    assert [truth(p, {C.path: v if v is None else float(v)}) is True for v in POINTS] == members(domain)


literals = st.sampled_from((-1.0, -0.0, 0, 1, 2.0, NAN, None)).map(Literal)
ops = st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "<=>"))
rules = st.sampled_from(NanRule)


def leaves_on(ref):
    return st.one_of(
        st.builds(lambda op, k, n: Compare(op, ref, k, n), ops, literals, rules),
        st.builds(lambda op, k, n: Compare(op, k, ref, n), ops, literals, rules),
        st.builds(lambda v, n: IsIn(ref, tuple(v), n), st.lists(literals, max_size=3), rules),
        st.sampled_from((IsNull(ref), IsNan(ref))),
    )


def trees(leaves):
    return st.recursive(
        leaves | st.builds(Constant, st.sampled_from((True, False, None))),
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(IsTrue, inner),
            st.builds(lambda c: And(tuple(c)), st.lists(inner, max_size=3)),
            st.builds(lambda c: Or(tuple(c)), st.lists(inner, max_size=3)),
        ),
        max_leaves=6,
    )


FLOATS = StructType((Field("c", PrimitiveType("double")), Field("d", PrimitiveType("double"))))


def inside(domain, row):
    return not domain.is_none and all(row[path] in domain.domain(path) for path in row)


def agrees(p, domain, rest, row):
    return (truth(p, row) is True) == (inside(domain, row) and truth(rest, row) is True)


@pytest.mark.parametrize("schema", [None, FLOATS], ids=["face value", "typed"])
@given(p=trees(leaves_on(C)), other=trees(leaves_on(C) | leaves_on(D)))
def test_a_condition_is_its_domain_and_the_rest(schema, p, other):
    """TRUE for a row iff the row is in the domain and the part it could not express is TRUE."""
    both = And((p, other))
    domain, rest = ColumnDomain.from_predicate(both, schema)
    floats = [v if v is None else float(v) for v in POINTS]
    assert all(agrees(both, domain, rest, {C.path: c, D.path: d}) for c in floats for d in floats)
    _, nothing = ColumnDomain.from_predicate(p, schema)
    assert nothing == Constant(True)


@given(p=trees(leaves_on(C)))
def test_a_domain_of_a_condition_turns_back_into_it(p):
    """From a condition to a domain, to a condition, to the same domain."""
    domain, _ = ColumnDomain.from_predicate(p, FLOATS)
    again, rest = ColumnDomain.from_predicate(domain.to_predicate(), FLOATS)
    assert (again, rest) == (domain, Constant(True))
    assert ColumnDomain.from_predicate(domain.bind(FLOATS))[0] == domain


@given(p=trees(leaves_on(C)))
def test_a_domain_keeps_the_splits_its_condition_keeps(p):
    """One evaluator for both roads, over every statistics a small universe can produce."""
    index = doubles().index
    domain, _ = ColumnDomain.from_predicate(p, index.source.schema)
    by_condition = may_match(bind(p, index.source.schema), index)
    assert may_match(domain.bind(index.source.schema), index).tolist() == by_condition.tolist()


@functools.cache
def doubles():
    values = (-math.inf, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 9.0, NAN)
    return world_of(Universe("doubles", PrimitiveType("double"), values, ()), LOSSES[:6])


def test_what_a_domain_cannot_express_is_left_to_check():
    """Two columns in one leg, an unreadable condition and an inexact prefix all remain."""
    both = Or((Compare("=", C, Literal(1)), Compare("=", D, Literal(1))))
    opaque, like = Opaque("rand() < 0.5"), StartsWith(C, "ab", exact=False, pattern="ab%c")
    domain, rest = ColumnDomain.from_predicate(And((both, opaque, like, IsNull(D))))
    assert domain == ColumnDomain(
        {"c": Domain([Range(Marker("ab", EXACTLY), Marker("ac", BELOW))]), "d": Domain.of(None)}
    )
    assert rest == And((both, opaque, like))


def test_conditions_whose_values_do_not_compare_stay_conditions():
    """`c > 5 AND c < 'x'` is for SQL to coerce: a domain takes values as they are."""
    number, text = Compare(">", C, Literal(5)), Compare("<", C, Literal("x"))
    domain, rest = ColumnDomain.from_predicate(And((number, text)))
    assert domain == ColumnDomain({"c": Domain([Range.greater_than(5)], nan_allowed=True)})
    assert rest == text
    assert ColumnDomain.from_predicate(Or((number, text))) == (ColumnDomain.all(), Or((number, text)))


UTC = dt.UTC
TYPED = StructType(
    tuple(
        Field(name, dtype)
        for name, dtype in {
            "n": PrimitiveType("integer"),
            "x": PrimitiveType("double"),
            "f": PrimitiveType("float"),
            "flag": PrimitiveType("boolean"),
            "day": PrimitiveType("date"),
            "at": PrimitiveType("timestamp"),
            "local": PrimitiveType("timestamp_ntz"),
            "price": DecimalType(5, 2),
            "name": PrimitiveType("string"),
            "raw": PrimitiveType("binary"),
            "tags": ListType(PrimitiveType("string")),
            "st": StructType((Field("a", PrimitiveType("long")),)),
        }.items()
    )
)


@pytest.mark.parametrize(
    ("op", "column", "value", "expected"),
    [
        (">", "n", Decimal("2.5"), Domain([Range.at_least(3)])),
        ("<", "n", 3, Domain([Range.at_most(2)])),
        ("<=", "n", 2**31 - 1, Domain([Range.all()])),
        ("=", "n", "7", Domain.of(7)),
        ("=", "x", Decimal("0.1"), Domain.of(0.1)),
        (">", "x", 1.0, Domain([Range.at_least(1.0000000000000002)], nan_allowed=True)),
        ("<", "x", -1.0, Domain([Range.at_most(-1.0000000000000002)])),
        ("=", "f", 0.5, Domain.of(0.5)),
        ("=", "flag", True, Domain([Range.at_least(True)])),
        ("=", "day", "2024-01-05", Domain.of(dt.date(2024, 1, 5))),
        ("=", "at", "2024-01-05 00:00:00", Domain.of(dt.datetime(2024, 1, 5, tzinfo=UTC))),
        ("=", "local", "2024-01-05", Domain.of(dt.datetime(2024, 1, 5))),
        ("<", "price", Decimal("1.005"), Domain([Range.at_most(Decimal("1.00"))])),
        (">", "name", "é", Domain([Range.greater_than("é")])),
        ("<", "name", "é", Domain([Range.less_than("é")])),
        ("=", "name", "a", Domain.of("a")),
        ("<=", "raw", b"\xff", Domain([Range.at_most(b"\xff")])),
    ],
)
def test_a_typed_domain_has_natural_values_of_the_column(op, column, value, expected):
    """Literals are coerced as SQL does before they become markers."""
    p = Compare(op, Ref((column,)), Literal(value))
    domain, rest = ColumnDomain.from_predicate(p, TYPED)
    assert domain == ColumnDomain({column: expected})
    assert rest == Constant(True)
    assert ColumnDomain.from_predicate(domain.bind(TYPED))[1] == Constant(True)


def test_values_python_cannot_name_stay_a_condition():
    """A day in the year 10000 is a bound like any other, but no datetime.date."""
    p = Compare(">", Ref(("day",)), Literal(3_000_000, PrimitiveType("date")))
    assert ColumnDomain.from_predicate(p, TYPED) == (ColumnDomain.all(), p)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("day", "2024-01-05"),
        ("day", dt.datetime(2024, 1, 5)),
        ("day", 19000),
        ("at", dt.datetime(2024, 1, 5)),
        ("local", dt.datetime(2024, 1, 5, tzinfo=UTC)),
        ("n", 2.5),
        ("n", True),
        ("flag", 1),
        ("x", Decimal("0.1")),
        ("x", 2**53 + 1),
        ("x", 10**400),
        ("f", 0.1),
        ("f", 1e300),
        ("name", b"x"),
        ("raw", "x"),
        ("price", 1.5),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_way_out(column, value):
    """Silently comparing a text with dates would skip the wrong splits."""
    domain = ColumnDomain({column: Domain.of(value)})
    with pytest.raises(PredicateError, match=f"not a value of column '{column}'") as error:
        domain.bind(TYPED)
    assert "from_predicate(p, schema)" in error.value.hint


@pytest.mark.parametrize(
    ("column", "value"),
    [("x", 5), ("f", 0.5), ("f", math.inf), ("price", 3), ("price", Decimal("0.155")), ("n", 2**70)],
)
def test_a_value_that_needs_no_rounding_is_taken(column, value):
    """An int is a double if it is one exactly; a number outside the type is still a number."""
    bound = ColumnDomain({column: Domain.of(value)}).bind(TYPED)
    assert bound == bind(IsIn(Ref((column,)), (Literal(value),)), TYPED)


def test_names_follow_the_tables_spelling_and_unknown_ones_are_errors():
    """A domain is resolved as a condition is."""
    assert ColumnDomain({"ST.A": Domain.of(3)}).bind(TYPED) == ColumnDomain(
        {("st", "a"): Domain.of(3)}
    ).bind(TYPED)
    with pytest.raises(UnknownColumnError, match="nmae"):
        ColumnDomain({"nmae": Domain.of("x")}).bind(TYPED)


A1, A2 = Domain.of(1), Domain.of(2)


def test_column_domains_combine_as_boxes():
    """Intersection is exact; union and complement are the smallest box around the result."""
    both = ColumnDomain({"a": A1, "b": A1})
    assert both.intersect(ColumnDomain({"b": A2})) == ColumnDomain.none()
    assert both.union(ColumnDomain({"a": A2, "b": A2})) == ColumnDomain(
        {"a": Domain.of(1, 2), "b": Domain.of(1, 2)}
    )
    assert both.union(ColumnDomain({"a": A2})) == ColumnDomain({"a": Domain.of(1, 2)})
    assert ColumnDomain({"a": A1}).complement() == ColumnDomain({"a": A1.complement()})
    assert both.complement() == ColumnDomain.all()
    assert ColumnDomain.all().complement() == ColumnDomain.none()
    assert ColumnDomain.none().complement() == ColumnDomain.all()
    assert ColumnDomain.none().union(both) == both == both.union(ColumnDomain.none())
    assert both.overlaps(ColumnDomain({"c": A1}))
    assert not both.overlaps(ColumnDomain({"a": A2}))
    assert ColumnDomain({"a": A1}).contains(both)
    assert not both.contains(ColumnDomain({"a": A1}))
    assert ColumnDomain({"a": Domain.all()}) == ColumnDomain.all()
    assert ColumnDomain({"a": Domain.none(), "b": A1}).is_none
    assert both.only(["a"]) == ColumnDomain({"a": A1})
    assert both.contains(ColumnDomain.none())
    assert not ColumnDomain.none().contains(both)


def test_nothing_and_everything_are_conditions_too():
    """No row, and every row."""
    assert ColumnDomain.none().to_predicate() == ColumnDomain.none().bind(TYPED) == Constant(False)
    assert ColumnDomain.all().to_predicate() == Constant(True)
    assert ColumnDomain.from_predicate(Constant(None))[0] == ColumnDomain.none()
    assert ColumnDomain.from_predicate(Not(IsTrue(Constant(None))))[0] == ColumnDomain.all()


def test_a_condition_on_a_function_is_a_domain_of_its_column_and_left_to_check():
    """With a schema its types are known; without one the whole condition is left."""
    from indextables.core.types import Field, PrimitiveType, StructType
    from indextables.sql.conditions.parser import parse_predicate

    condition = parse_predicate("id + 1 > 5")
    schema = StructType((Field("id", PrimitiveType("long")),))
    domain, rest = ColumnDomain.from_predicate(condition, schema)
    assert domain.columns == (("id",),)
    assert rest == condition
    assert ColumnDomain.from_predicate(condition) == (ColumnDomain.all(), condition)
