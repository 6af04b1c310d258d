"""Conditions of other engines come in and go out without losing a row."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conformance import NEW, conditions, make_table
from support.truth import truth

import indextables as it
from indextables.engines.arrow.conditions import Rules
from indextables.engines.arrow.conditions import predicate_of as of_pyarrow
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import And, Compare, IsIn, IsNull, Literal, Not, Opaque, Or, Ref
from indextables.core.types import schema_from_arrow
from indextables.domain import ColumnDomain, Domain, Range
from indextables.engines.exchange import (
    from_search_argument,
    from_substrait,
    from_tuple_domain,
    to_search_argument,
    to_tuple_domain,
)
from indextables.engines.exchange.blocks import decode_block, encode_block
from indextables.engines.polars import predicate_of as of_polars
from indextables.errors import PredicateError
from indextables.plan.planner import files_to_query, plan_files

SCHEMA = schema_from_arrow(NEW)
A, B = Ref(("a",)), Ref(("b",))

VALUES = {
    "id": st.integers(-(2**63), 2**63 - 1),
    "place.code": st.integers(-(2**31), 2**31 - 1),
    "flag": st.booleans(),
    "amount": st.integers(-(10**12) + 1, 10**12 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -3))
    ),
    "on": st.dates(),
    "local": st.datetimes(),
    "name": st.text(max_size=8),
    "raw": st.binary(max_size=8),
    "d": st.floats(allow_nan=False).map(lambda value: value + 0.0),
}


@st.composite
def domains(draw):
    """Column domains over columns of every type Trino has a form for."""
    found = {}
    for name in draw(st.lists(st.sampled_from(list(VALUES)), max_size=3, unique=True)):
        ends = sorted(draw(st.lists(VALUES[name], min_size=1, max_size=6)))
        ranges = [Range.between(low, high) for low, high in zip(ends[::2], ends[1::2], strict=False)]
        ranges += draw(
            st.sampled_from(
                [[], [Range.less_than(ends[0])], [Range.greater_than(ends[-1])], [Range.all()]]
            )
        )
        found[name] = Domain(ranges, draw(st.booleans()))
    return draw(st.just(ColumnDomain(found)) | st.just(ColumnDomain.none()))


@given(domains(), st.sampled_from(["presto", "trino"]))
def test_a_tuple_domain_comes_back_as_it_went_out(domain, form):
    """Both forms hold every range, whether NULL is in it, and nothing more, except that NaN may be."""
    back = from_tuple_domain(to_tuple_domain(domain, SCHEMA, form))
    assert back.contains(domain)
    assert back.is_none is domain.is_none
    for path in {*back.columns, *domain.columns}:
        ours, theirs = domain.domain(path), back.domain(path)
        assert (ours.ranges, ours.null_allowed) == (theirs.ranges, theirs.null_allowed)


def test_prestos_own_json_is_read():
    """`a > 34` as Presto writes it, value blocks included."""
    marker = {"type": "bigint", "valueBlock": "CgAAAExPTkdfQVJSQVkBAAAAACIAAAAAAAAA", "bound": "ABOVE"}
    values = {
        "@type": "sortable",
        "type": "bigint",
        "ranges": [{"low": marker, "high": {"type": "bigint", "bound": "BELOW"}}],
    }
    json = {
        "columnDomains": [
            {"column": {"name": "id"}, "domain": {"values": values, "nullAllowed": False}}
        ]
    }
    assert from_tuple_domain(json).domain(("id",)).ranges == (Range.greater_than(34),)


def test_a_domain_of_an_unknown_type_holds_everything():
    """What cannot be read must not exclude a row."""
    values = {"@type": "sortable", "type": "ipaddress", "inclusive": [True, True], "sortedRanges": "?"}
    json = {"columnDomains": [{"column": "id", "domain": {"values": values, "nullAllowed": False}}]}
    found = from_tuple_domain(json).domain(("id",))
    assert 5 in found
    assert None not in found


@pytest.mark.parametrize("value", [float("nan"), 7.0])
def test_nan_is_never_lost_on_the_way(value):
    """Trino knows NaN only in domains of all values, so a domain with NaN grows to that."""
    domain = ColumnDomain({"d": Domain.of(7.0, float("nan"))})
    assert value in from_tuple_domain(to_tuple_domain(domain, SCHEMA)).domain(("d",))


def test_blocks_of_repeated_and_shared_values_are_read():
    """Trino writes one value of a range twice as a run, and values of an IN list as a dictionary."""
    import base64
    import struct

    inner = base64.b64decode(encode_block("LONG_ARRAY", [5, 9]))
    run = (
        struct.pack("<i", 3)
        + b"RLE"
        + struct.pack("<i", 2)
        + base64.b64decode(encode_block("INT_ARRAY", [5]))
    )
    shared = (
        struct.pack("<i", 10)
        + b"DICTIONARY"
        + struct.pack("<i", 3)
        + inner
        + struct.pack("<3i", 1, 0, 1)
        + bytes(24)
    )
    assert decode_block(base64.b64encode(run).decode()) == [5, 5]
    assert decode_block(base64.b64encode(shared).decode()) == [9, 5, 9]


BLOCK_VALUES = {
    "BYTE_ARRAY": st.integers(-(2**7), 2**7 - 1),
    "SHORT_ARRAY": st.integers(-(2**15), 2**15 - 1),
    "INT_ARRAY": st.integers(-(2**31), 2**31 - 1),
    "LONG_ARRAY": st.integers(-(2**63), 2**63 - 1),
    "INT128_ARRAY": st.integers(-(2**127), 2**127 - 1),
    "VARIABLE_WIDTH": st.binary(max_size=5),
}


@given(
    st.sampled_from(list(BLOCK_VALUES)).flatmap(
        lambda name: st.tuples(
            st.just(name), st.lists(st.none() | BLOCK_VALUES[name], max_size=12).map(list)
        )
    ),
    st.sampled_from(["presto", "trino"]),
)
def test_blocks_are_read_whoever_wrote_them(block, form):
    """Nothing in a block says whether Presto or Trino wrote it, and its bytes fit only one of them."""
    encoding, values = block
    assert decode_block(encode_block(encoding, values, form)) == values


# Laid out by hand after Trino's own writers, as a user of its JSON would find them.
TRINOS = {
    "one end open, as in a > 34": (
        "CgAAAExPTkdfQVJSQVkCAAAAAUABAAAAIgAAAAAAAAA=",
        [34, None],
    ),
    "no upper end of a text": (
        "DgAAAFZBUklBQkxFX1dJRFRIAgAAAAEAAAADAAAAAUADAAAAYWRh",
        [b"ada", None],
    ),
    "a text without nulls": (
        "DgAAAFZBUklBQkxFX1dJRFRIAgAAAAIAAAABAAAAAgAAAAADAAAAYWJj",
        [b"a", b"bc"],
    ),
}


@pytest.mark.parametrize("case", TRINOS)
def test_trinos_own_blocks_are_read(case):
    """Numbers of the values that are not NULL come before them; texts have lengths, not ends."""
    text, values = TRINOS[case]
    assert decode_block(text) == values
    encoding = "VARIABLE_WIDTH" if isinstance(values[0], bytes) else "LONG_ARRAY"
    assert encode_block(encoding, values, "trino") == text


def test_a_dictionary_is_read_with_and_without_an_identity():
    """Newer versions of Trino no longer write one."""
    import base64
    import struct

    inner = base64.b64decode(encode_block("LONG_ARRAY", [5, None, 9]))
    shared = struct.pack("<i", 10) + b"DICTIONARY" + struct.pack("<i", 3) + inner
    shared += struct.pack("<3i", 2, 1, 0)
    for identity in (b"", bytes(24)):
        assert decode_block(base64.b64encode(shared + identity).decode()) == [9, None, 5]


@given(st.binary(max_size=60))
def test_a_damaged_block_is_an_error_of_ours(data):
    """Whatever the bytes, the answer is values or PredicateError."""
    import base64

    for name in (b"LONG_ARRAY", b"VARIABLE_WIDTH", b"DICTIONARY", b"RLE"):
        whole = len(name).to_bytes(4, "little") + name + b"\2\0\0\0" + data
        try:
            decode_block(base64.b64encode(whole).decode())
        except PredicateError:
            continue


def test_files_to_query_answers_a_tuple_domain(tmp_path):
    """RFC-58's call, with a domain that came as JSON, gives the files a plan would."""
    table = make_table(tmp_path / "t")
    domain = ColumnDomain({"id": Domain([Range.less_than(45)]), "region": Domain.of("north")})
    came = from_tuple_domain(to_tuple_domain(domain, table.schema))
    snapshot = table.snapshot()
    found = [split.path for split in files_to_query(snapshot, ["id", "region"], came)]
    assert found == [split.path for split in table.plan("id < 45 AND region = 'north'").files]
    assert len(found) == 1


ROWS = [{("a",): a, ("b",): b} for a in (None, 1, 2, 3) for b in (None, "x", "y")]
ARGUMENTS = {
    "comparisons": And((Compare("<", A, Literal(3)), Compare("<>", B, Literal("x")))),
    "turned": Or((Compare(">=", A, Literal(2)), Compare(">", A, Literal(2)), Not(IsNull(B)))),
    "a list": Not(IsIn(A, (Literal(1), Literal(None)))),
    "null safe": Compare("<=>", B, Literal("y")),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_search_argument_means_the_same_when_it_comes_back(name):
    """NOT of an opposite stands in for the operators Hive does not have, NULL included."""
    back = from_search_argument(to_search_argument(ARGUMENTS[name]))
    assert [truth(back, row) for row in ROWS] == [truth(ARGUMENTS[name], row) for row in ROWS]


def test_a_column_domain_is_a_search_argument_too():
    """Its ranges, NULL and NaN come back."""
    domain = ColumnDomain({("a",): Domain((Range.greater_than(2),), null_allowed=True)})
    back = from_search_argument(to_search_argument(domain))
    rows = [{("a",): value} for value in (1, 2, 3, None)]
    assert [truth(back, row) for row in rows] == [truth(domain.to_predicate(), row) for row in rows]
    nan = ColumnDomain({("d",): Domain((Range.greater_than(2.0),), nan_allowed=True)})
    back = from_search_argument(to_search_argument(nan))
    assert [truth(back, {("d",): value}) for value in (1.0, 3.0, float("nan"))] == [False, True, True]


def test_between_and_constants_of_hive_are_read():
    """BETWEEN is closed at both ends; a constant that says nothing stays open."""
    argument = {
        "leaves": [{"operator": "BETWEEN", "column": "a", "literals": [2, 3]}],
        "expression": {"operator": "AND", "children": [{"leaf": 0}, {"constant": "YES_NO"}]},
    }
    found = from_search_argument(argument)
    assert found.children[0] == And((Compare(">=", A, Literal(2)), Compare("<=", A, Literal(3))))
    assert isinstance(found.children[1], Opaque)


@pytest.mark.parametrize(
    "argument",
    [
        {"leaves": [], "expression": {"leaf": 0}},
        {"leaves": [{"operator": "LIKE", "column": "a", "literal": "x"}], "expression": {"leaf": 0}},
    ],
)
def test_what_hive_does_not_have_is_refused(argument):
    """A leaf that is not there, or an operator that does not exist, is the caller's mistake."""
    with pytest.raises(PredicateError):
        from_search_argument(argument)


FLAT = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("st", pa.struct([("x", pa.int32())])),
        ("at", pa.timestamp("us")),
    ]
)
SUBSTRAIT = {
    "a comparison": (pc.field("a") > 5, Compare(">", A, Literal(5))),
    "a negative number": (pc.field("a") <= -5, Compare("<=", A, Literal(-5))),
    "a nested field": (
        pc.field("st", "x") == pa.scalar(3, pa.int32()),
        Compare("=", Ref(("st", "x")), Literal(3)),
    ),
    "a NULL test": (pc.field("b").is_null(), IsNull(B)),
    "a combination": (
        (pc.field("a") > 5) & ~(pc.field("b") == "x"),
        And((Compare(">", A, Literal(5)), Not(Compare("=", B, Literal("x"))))),
    ),
}


@pytest.mark.parametrize("name", SUBSTRAIT)
def test_substrait_expressions_are_read_with_the_names_of_columns(name):
    """PyArrow's Substrait refers to columns by position; conditions have their names."""
    import pyarrow.substrait as arrow_substrait

    expression, condition = SUBSTRAIT[name]
    data = arrow_substrait.serialize_expressions([expression], ["e"], FLAT)
    assert from_substrait(data) == {"e": condition}


def test_bytes_that_are_no_substrait_are_refused():
    """Damage is an error of ours, not of PyArrow."""
    with pytest.raises(PredicateError):
        from_substrait(b"\xff\xff\xff")


def test_expressions_of_polars_and_pyarrow_prune_alike(tmp_path):
    """The same two hundred conditions, in the form of either, keep the same splits as our own form."""
    from support.conformance import to_polars, to_pyarrow

    table = make_table(tmp_path / "t")
    snapshot = table.snapshot()
    for condition in conditions(200):
        ours = plan_files(snapshot, condition).mask.tolist()
        theirs = of_pyarrow(to_pyarrow(condition, NEW), Rules.SQL)
        assert plan_files(snapshot, theirs).mask.tolist() == ours
        kept = plan_files(snapshot, of_polars(to_polars(condition))).mask
        assert all(kept[i] for i, mine in enumerate(ours) if mine)


def test_pyarrows_own_rules_are_followed_when_asked():
    """No comparison with NaN holds, and NULL is not in a list: `~is_in` holds for it."""
    table = pa.table({"a": pa.array([1.0, float("nan"), None]), "i": [0, 1, 2]})
    schema = schema_from_arrow(table.schema)
    a = pc.field("a")
    for expression in (a > 0, ~(a > 0), a != 0, ~a.isin([1.0]), a.isin([1.0, None]), ~a.is_nan()):
        bound = bind(of_pyarrow(expression), schema)
        rows = [{("a",): row["a"]} for row in table.to_pylist()]
        ours = [i for i, row in enumerate(rows) if truth(bound, row) is True]
        assert ours == table.filter(expression)["i"].to_pylist(), expression
