"""Catalyst's filters as conditions of ours: what each becomes, and what must stay opaque."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pytest

from indextables.core.predicate.nodes import And, Constant, IsIn, IsNull, Not, Opaque, Or
from indextables.core.predicate.to_sql import to_sql
from indextables.engines.spark.scan.conditions import to_predicate
from indextables.engines.spark.versions import seam

COLUMNS = """
    b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE,
    dec DECIMAL(10,2), wide DECIMAL(20,4), s STRING, other STRING, bin BINARY, d DATE, ts TIMESTAMP,
    ntz TIMESTAMP_NTZ, `a.b` INT, `x``y` INT, file_name STRING,
    st STRUCT<a: INT, b: STRING, `c.d`: INT, deep: STRUCT<z: BIGINT, w: DOUBLE>>,
    arr ARRAY<INT>, m MAP<STRING, INT>, ci STRING COLLATE UTF8_LCASE,
    cst STRUCT<t: STRING COLLATE UNICODE>
"""

if seam.name == "3.5":  # it has no collations
    COLUMNS = re.sub(r" COLLATE \w+", "", COLUMNS)

# (condition in SQL, what it becomes; '…' at its end: begins with, why)
CASES = [
    # comparisons: the literal has the column's type, because Spark moved its casts to the constant
    ("i8 = 3", "i8 = 3", "equality"),
    ("3 = i8", "3 = i8", "the binder turns it round"),
    ("i16 < 5", "i16 < 5", "short"),
    ("i32 <= 5", "i32 <= 5", "int"),
    ("i64 > 5", "i64 > 5", "long"),
    ("i64 >= 9223372036854775807", "i64 >= 9223372036854775807", "the largest long"),
    ("i32 <> 5", "NOT (i32 = 5)", "Catalyst has no node for <>"),
    ("i32 <=> 5", "i32 <=> 5", "null-safe equality"),
    ("i32 IS DISTINCT FROM 5", "NOT (i32 <=> 5)", "its negation"),
    ("i32 <=> NULL", "i32 IS NULL", "Spark rewrites it"),
    ("i32 > 2.5", "i32 > 2", "Spark rounds the literal instead of casting the column"),
    ("i8 > 1000", "FALSE", "no tinyint is: only NULL or FALSE is left"),
    ("i64 = '7'", "i64 = 7", "a string constant is cast once"),
    ("i64 > 2.5D", "i64 > 2.5D", "compared as doubles: the binder does what Spark does"),
    ("f32 = 1.1f", "f32 = 1.100000023841858D", "the float, not the double of the same text"),
    ("f64 > 1", "f64 > 1.0D", "double"),
    ("f64 = double('NaN')", "f64 = double('NaN')", "NaN is a value"),
    ("f64 < double('Infinity')", "f64 < double('Infinity')", "so is infinity"),
    ("f64 = -0.0D", "f64 = -0.0D", "the sign of zero is kept; the pruner ignores it"),
    ("dec = 1.5", "dec = 1.50", "decimal"),
    ("dec > 1", "dec > 1.00", "an int constant becomes a decimal"),
    ("wide <= -12345678.9012", "wide <= -12345678.9012", "more than 18 digits"),
    ("s = 'abc'", "s = 'abc'", "string"),
    ("s >= 'é\U0001F600'", "s >= 'é\U0001F600'", "beyond the first plane"),
    ("s = ''", "s = ''", "the empty string is not NULL"),
    ("s = 'it''s'", "s = 'it''s'", "quotes"),
    ("bin > X'01FF'", "bin > X'01FF'", "JSON shows an address: the bytes come from the JVM"),
    ("d = DATE'2024-02-29'", "d = DATE '2024-02-29'", "date"),
    ("d < DATE'0001-01-01'", "d < DATE '0001-01-01'", "first day of Python's calendar"),
    ("d > DATE'+12024-01-01'", "d > DATE '+12024-01-01'", "a year Python has no date for"),
    ("d > '2024-01-01'", "d > DATE '2024-01-01'", "text is cast once"),
    ("ts > TIMESTAMP'2024-01-01 12:00:00.123456'", "ts > TIMESTAMP '2024-01-01 12:00:00.123456Z'", "instant"),
    ("ts < TIMESTAMP'2024-01-01 12:00:00+02:00'", "ts < TIMESTAMP '2024-01-01 10:00:00.000000Z'", "with its zone"),
    ("ts > '2024-01-01'", "ts > TIMESTAMP '2024-01-01 00:00:00.000000Z'", "text in the session's zone"),
    ("ts > TIMESTAMP'+12024-01-01 00:00:00'", "ts > TIMESTAMP '+12024-01-01 00:00:00.000000Z'", "beyond 9999"),
    ("ntz = TIMESTAMP_NTZ'2024-01-01 00:00:01'", "ntz = TIMESTAMP_NTZ '2024-01-01 00:00:01.000000'", "no zone"),
    ("to_date(ts) = DATE'2024-01-01'",
     "ts >= TIMESTAMP '2024-01-01 00:00:00.000000Z' AND ts < TIMESTAMP '2024-01-02 00:00:00.000000Z'",
     "Spark turns it into a range"),
    ("i32 BETWEEN 1 AND 5", "i32 >= 1 AND i32 <= 5", "two comparisons"),
    ("s BETWEEN 'a' AND 'b'", "s >= 'a' AND s <= 'b'", "also for text"),
    # columns against columns
    ("s < other", "s < other", "same type"),
    ("i32 = i64", "i32 = i64", "a widening cast keeps value and order"),
    ("i8 < i32", "i8 < i32", "the same"),
    ("f32 <= f64", "f32 <= f64", "every float is a double"),
    ("dec = wide", "dec = wide", "more digits on both sides of the point"),
    ("i32 < f64", "i32 < f64", "every int is a double"),
    ("i64 < f64", "cast(i64 AS double) < f64", "not every long is one: compared as doubles"),
    ("d < ntz", "d < ntz", "midnight of that day"),
    ("d < ts", "cast(d AS timestamp) < ts", "midnight of the zone"),
    ("s = CAST(i32 AS STRING)", "s = cast(i32 AS string)", "text orders numbers differently"),
    # NULL tests
    ("i32 IS NULL", "i32 IS NULL", "null"),
    ("arr IS NULL", "arr IS NULL", "any type has NULL"),
    ("m IS NULL", "m IS NULL", "also maps"),
    ("ci IS NULL", "ci IS NULL", "and collated text"),
    ("st IS NULL", "st IS NULL", "and structs"),
    ("st.a IS NULL", "st.a IS NULL", "NULL if the struct is"),
    ("isnan(f64)", "isnan(f64)", "NaN test"),
    ("NOT isnan(f32)", "NOT (isnan(f32))", "on a float without a cast"),
    # boolean columns
    ("b", "b", "a column as a condition"),
    ("NOT b", "NOT (b)", "its negation"),
    ("b = false", "NOT (b)", "Spark simplifies"),
    ("b <=> true", "b <=> TRUE", "never NULL"),
    ("b IS TRUE", "b <=> TRUE", "the same"),
    ("b IN (true, false)", "b IN (TRUE, FALSE)", "a list of booleans"),
    # lists
    ("i32 IN (1, 2)", "i32 IN (1, 2)", "short lists are literals"),
    ("i32 IN (1, 2, NULL)", "i32 IN (1, 2, NULL)", "NULL stays in the list"),
    ("i32 NOT IN (1, 2)", "NOT (i32 IN (1, 2))", "NOT IN"),
    ("s IN ('a', 'b')", "s IN ('a', 'b')", "text"),
    ("s IN ('a', other)", "s = 'a' OR s = other", "not a list of constants: compared one by one"),
    ("f64 IN (1.0D, double('NaN'))", "f64 IN (1.0D, double('NaN'))", "NaN in a list"),
    # text patterns
    ("s LIKE 'ab%'", "s LIKE 'ab%'", "a prefix"),
    ("s NOT LIKE 'ab%'", "NOT (s LIKE 'ab%')", "its negation"),
    ("s LIKE 'abc'", "s = 'abc'", "no wildcard"),
    ("s LIKE '%'", "s LIKE '%'", "everything that is not NULL"),
    ("s LIKE 'a%b%c'", "s LIKE 'a%b%c'", "starts with a, and more"),
    ("s LIKE 'a_c'", "s LIKE 'a_c'", "one character is any"),
    (r"s LIKE r'10\%%'", r"s LIKE '10\\%%'", "an escaped wildcard is a letter"),
    ("s LIKE 'a!%b_' ESCAPE '!'", r"s LIKE 'a\\%b_'", "JSON loses the escape character"),
    ("s LIKE 'a%b'", "length(s) >= 2 AND s LIKE 'a%' AND (endswith(s, 'b'))", "three tests"),
    ("s LIKE '%b'", "(endswith(s, 'b'))", "no prefix"),
    ("contains(s, 'b')", "(contains(s, 'b'))", "no prefix either"),
    ("startswith(s, 'ab')", "s LIKE 'ab%'", "the function"),
    ("startswith(bin, X'01')", "(objects.staticinvoke(…", "bytes go another way in Spark"),
    ("s ILIKE 'ab%'", "lower(s) LIKE 'ab%'", "lower case is not monotone"),
    ("s RLIKE '^ab'", "s RLIKE '^ab'", "a regular expression"),
    ("s LIKE ANY ('a%', 'b%')", "s LIKE 'a%' OR s LIKE 'b%'", "Spark rewrites it"),
    # nested fields and odd names
    ("st.a > 5", "st.a > 5", "a field"),
    ("st.b = 'x'", "st.b = 'x'", "another one: the ordinal counts the pruned struct"),
    ("st.deep.z > 5", "st.deep.z > 5", "two levels"),
    ("st.deep.w < 5 AND st.deep.z = 1", "st.deep.w < 5.0D AND st.deep.z = 1", "both fields of it"),
    ("st.`c.d` = 1", "st.`c.d` = 1", "a dot in a field's name"),
    ("`a.b` = 5", "`a.b` = 5", "a dot in a column's name"),
    ("`x``y` = 5", "`x``y` = 5", "a backtick in a column's name"),
    # logic
    ("i32 = 1 OR s = 'a'", "i32 = 1 OR s = 'a'", "OR arrives whole"),
    ("i32 = 1 OR s = 'a' OR b OR d IS NULL", "i32 = 1 OR s = 'a' OR b OR d IS NULL", "a chain is one OR"),
    ("NOT (i32 = 1 AND s = 'a')", "NOT (i32 = 1) OR NOT (s = 'a')", "Spark pushes NOT down"),
    ("i32 = 1 OR length(s) = 3", "i32 = 1 OR length(s) = 3", "opaque parts keep their place"),
    ("NOT (i32 > 1 OR year(d) = 2024)", "i32 <= 1 AND NOT (year(d) = 2024)", "also under NOT"),
    ("(i32 > 1) <=> true", "(i32 > 1) IS TRUE", "a condition that is never NULL"),
    ("(i32 > 1) <=> false", "(NOT (i32 > 1)) IS TRUE", "its opposite"),
    ("CASE WHEN i32 > 1 THEN true ELSE false END", "(i32 > 1) IS TRUE", "what CASE often is"),
    ("IF(b, i32 > 1, s = 'a')", "((b) IS TRUE AND i32 > 1) OR (NOT ((b) IS TRUE) AND s = 'a')", "IF"),
    ("coalesce(b, false)", "(b) IS TRUE", "NULL counts as FALSE"),
    ("coalesce(i32 > 1, true)", "NOT ((NOT (i32 > 1)) IS TRUE)", "NULL counts as TRUE"),
    ("(i32 > 1) = (i64 > 2)", "(equalto(compare, compare))", "a condition as a value"),
    # what has no answer in statistics
    ("i32 + 1 = 5", "(i32 + 1) = 5", "arithmetic, whose overflow is an error"),
    ("-i32 = 5", "negative(i32) = 5", "so can this"),
    ("i32 % 2 = 0", "(i32 % 2) = 0", "monotone between multiples"),
    ("abs(i32) = 5", "abs(i32) = 5", "monotone on each side of zero"),
    ("year(d) = 2024", "year(d) = 2024", "a function"),
    ("date_trunc('DAY', ts) = '2024-01-01'", "date_trunc('DAY', ts) = TIMESTAMP '2024-01-01 00:00:00.000000Z'", "depends on the zone"),
    ("CAST(i32 AS STRING) = '3'", "cast(i32 AS string) = '3'", "text orders numbers differently"),
    ("CAST(f64 AS INT) = 3", "cast(f64 AS int) = 3", "a cast that loses"),
    ("CAST(i64 AS FLOAT) = 3.0f", "cast(i64 AS float) = 3.0D", "rounds"),
    ("coalesce(i32, 1) = 2", "coalesce(i32, 1) = 2", "NULL becomes a value"),
    ("arr[0] = 1", "(equalto(getarrayitem(arr, 0), 1))", "an element"),
    ("m['a'] = 1", "(equalto(getmapvalue(m, 'a'), 1))", "a value of a map"),
    ("size(arr) = 1", "(equalto(size(arr), 1))", "its size"),
    ("st = named_struct('a', 1, 'b', 'x', 'c.d', 1, 'deep', named_struct('z', 1L, 'w', 1D))",
     "(equalto(st, literal()))", "a whole struct"),
    ("ci = 'abc'", "(equalto(ci, literal()))", "a collation compares otherwise"),
    ("ci > 'abc' AND i32 = 1", "(greaterthan(ci, literal())) AND i32 = 1", "but what stands beside it is used"),
    ("cst.t = 'abc'", "(equalto(cst.t, literal()))", "a collation inside a struct"),
    ("ci LIKE 'ab%'", "(startswith(ci, literal()))", "a prefix by a collation"),
    ("s = CAST(X'FF' AS STRING)", "(equalto(s, literal()))", "text that is not UTF-8 has no value here"),
    ("length(s) = i32", "length(s) = i32", "a function against a column"),
]  # fmt: skip
if seam.name == "3.5":
    CASES = [case for case in CASES if not re.search(r"\b(ci|cst)\b", case[0])]


@pytest.fixture(scope="module")
def optimized(spark, tmp_path_factory):
    """The filter of a query over a Parquet table with every type, as the optimizer leaves it."""
    path = str(tmp_path_factory.mktemp("types") / "t")
    spark.createDataFrame([], COLUMNS).write.parquet(path)
    frame = spark.read.schema(COLUMNS).parquet(path)

    def find(condition):
        plan = frame.where(condition)._jdf.queryExecution().optimizedPlan()
        name = plan.getClass().getSimpleName()
        return plan.condition() if name == "Filter" else name

    return find


def _without_null_tests(predicate):
    """Spark adds IS NOT NULL for every column that must not be; the cases leave them out."""
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    kept = [p for p in parts if not (isinstance(p, Not) and isinstance(p.child, IsNull))]
    return kept[0] if len(kept) == 1 else And(tuple(kept))


@pytest.mark.parametrize(("condition", "expected", "why"), CASES, ids=[case[0] for case in CASES])
def test_a_filter_becomes_the_condition_it_is(optimized, condition, expected, why):
    """Every construct is read exactly, or is opaque where it cannot be."""
    found = optimized(condition)
    if isinstance(found, str):
        text = "FALSE" if found == "LocalRelation" else "TRUE"
    else:
        text = to_sql(_without_null_tests(to_predicate(found)))
    if expected.endswith("…"):
        assert text.startswith(expected[:-1]), why
    else:
        assert text == expected, why


LISTS = [
    ("i8", range(12), range(12), "tinyint"),
    ("i64", [2**63 - 1, -(2**63), *range(12)], [2**63 - 1, -(2**63), *range(12)], "no double in between"),
    ("f32", [f"{i}.1f" for i in range(12)], [1.100000023841858], "the floats"),
    ("f64", ["double('NaN')", "-0.0D", *(f"{i}.5D" for i in range(12))], [1.5], "NaN and zero"),
    ("dec", [f"{i}.25" for i in range(12)], [Decimal("1.25")], "decimals"),
    ("wide", [f"CAST('{i}.0001' AS DECIMAL(20,4))" for i in range(12)], [Decimal("1.0001")], "long decimals"),
    ("s", ["'é'", "'it''s'", "'a\\nb'", "''", *(f"'k{i}'" for i in range(12))], ["é", "it's", "a\nb", ""], "text"),
    ("bin", [f"X'{i:02X}00'" for i in range(12)], [b"\x01\x00"], "bytes"),
    ("d", [f"DATE'2024-01-{i:02}'" for i in range(1, 13)], [dt.date(2024, 1, 12)], "dates"),
    ("ts", [f"TIMESTAMP'2024-01-{i:02} 00:00:00.5'" for i in range(1, 13)],
     [dt.datetime(2024, 1, 12, 0, 0, 0, 500000, dt.UTC)], "instants"),
    ("ntz", [f"TIMESTAMP_NTZ'2024-01-{i:02} 00:00:00'" for i in range(1, 13)],
     [dt.datetime(2024, 1, 12)], "local times"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "listed", "among", "why"), LISTS, ids=[case[0] for case in LISTS])
def test_a_long_list_keeps_every_value(optimized, column, listed, among, why):
    """JSON shows the list of a long IN as null; all of it comes from the JVM."""
    for nulls in ([], ["NULL"]):
        found = to_predicate(optimized(f"{column} IN ({', '.join(map(str, [*listed, *nulls]))})"))
        assert isinstance(found, IsIn), why
        values = [literal.value for literal in found.values]
        assert len(values) == len(listed) + len(nulls)
        assert set(among) <= set(values)
        assert (None in values) == bool(nulls)


def test_a_list_of_text_that_is_not_utf8_is_opaque(optimized):
    """A value that cannot be read makes the whole list unknown; it is never left out."""
    listed = ", ".join([f"'k{i}'" for i in range(12)] + ["CAST(X'FF' AS STRING)"])
    assert isinstance(to_predicate(optimized(f"s IN ({listed})")), Opaque)


@pytest.mark.skipif(seam.name == "3.5", reason="Spark 3.5 has no collations")
def test_a_long_list_of_collated_text_is_opaque(optimized):
    """Members of a collated set are equal by the collation, not by their bytes."""
    assert isinstance(
        to_predicate(optimized(f"ci IN ({', '.join(repr(f'k{i}') for i in range(12))})")), Opaque
    )


def test_two_instants_of_one_local_time_stay_two(spark, optimized):
    """On the night a clock goes back an hour happens twice; the text in JSON is the same for both."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        summer = to_predicate(optimized("ts = TIMESTAMP'2024-10-27 00:30:00Z'"))
        winter = to_predicate(optimized("ts = TIMESTAMP'2024-10-27 01:30:00Z'"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = [to_sql(_without_null_tests(p)) for p in (summer, winter)]
    assert found == [f"ts = TIMESTAMP '2024-10-27 0{h}:30:00.000000Z'" for h in (0, 1)]


def test_a_chain_of_a_thousand_conditions_is_one_node(optimized):
    """A deep binary tree of ORs is one flat OR, read without recursion."""
    chain = " OR ".join(f"(i32 = {i} AND i64 > {i})" for i in range(1000))
    found = to_predicate(optimized(chain))
    assert isinstance(found, Or)
    assert len(found.children) == 1000
    assert all(isinstance(child, And) and len(child.children) == 2 for child in found.children)


def test_an_opaque_condition_names_its_columns(optimized):
    """The report can say which columns a condition reads even if statistics cannot answer it."""
    found = _without_null_tests(to_predicate(optimized("hash(s) + st.a = i32 % 2")))
    assert isinstance(found, Opaque)
    assert set(found.columns) == {("s",), ("st", "a"), ("i32",)}


def test_a_constant_filter_is_a_constant(spark):
    """What the optimizer reduced to a literal is a constant, NULL included."""
    literal = spark._jvm.org.apache.spark.sql.catalyst.expressions.Literal
    assert to_predicate(literal.TrueLiteral()) == Constant(True)
    assert to_predicate(literal.FalseLiteral()) == Constant(False)
    kinds = spark._jvm.org.apache.spark.sql.types.DataType
    assert to_predicate(literal.create(None, kinds.fromDDL("BOOLEAN"))) == Constant(None)
