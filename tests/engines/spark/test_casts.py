"""Casts that are no no-ops: a condition over them loses no row, and a DELETE by it removes no other."""

from __future__ import annotations

import shutil
from itertools import zip_longest

import pytest
from pyspark.sql import functions as F
from support.cast_tables import plain_frame, write_both

from indextables import errors
from indextables.engines.spark.versions import seam

WIDE_DOUBLES = ", ".join(f"{n}.5D" for n in range(11))
EDGE = "9007199254740992"
LONG_LIST = ", ".join(f"{n}D" for n in range(20, 32))
MIDNIGHTS = ", ".join(f"TIMESTAMP_NTZ '2024-01-{n:02} 00:00:00'" for n in range(3, 16))
NOON = ", ".join(f"TIMESTAMP_NTZ '2024-01-{n:02} 12:00:00'" for n in range(1, 13))
FOLDED = "CAST({} AS STRING COLLATE UTF8_LCASE)"
TEXTS = ", ".join(f"'x{n}'" for n in range(12))

# (condition, whether a DELETE by it also runs)
CASES = {
    "doubles in a long list that no bigint equals": (f"l NOT IN ({WIDE_DOUBLES})", True),
    "a bigint that rounds to a double of a long list": (f"l IN ({LONG_LIST}, {EDGE}D)", True),
    "a short list of doubles": (f"l IN (20D, {EDGE}D)", False),
    "a long list of a struct's field": (f"st.l IN ({LONG_LIST}, {EDGE}D)", False),
    "times in a list for a date": (f"d NOT IN ({NOON})", True),
    "midnights in a list for a date": (f"d IN ({MIDNIGHTS})", False),
    "times in a list for a struct's date": (f"st.d NOT IN ({NOON})", False),
    "an int in a list of longs": (f"i IN ({LONG_LIST.replace('D', 'L')}, 2147483648L)", False),
    "a float in a list of doubles": (f"f IN ({LONG_LIST}, 0.1D)", False),
    "two bigints as doubles": ("CAST(l AS DOUBLE) = CAST(m AS DOUBLE)", False),
    "two bigints as other doubles": ("CAST(l AS DOUBLE) <> CAST(m AS DOUBLE)", True),
    "two bigints as doubles, NULL too": ("CAST(l AS DOUBLE) <=> CAST(m AS DOUBLE)", False),
    "not the same double, NULL too": ("NOT (CAST(l AS DOUBLE) <=> CAST(m AS DOUBLE))", False),
    "a bigint as a lesser double": ("CAST(m AS DOUBLE) < CAST(l AS DOUBLE)", True),
    "a bigint with the double of another": ("l >= CAST(CAST(m AS DOUBLE) AS DECIMAL(20,0))", False),
    "there and back": (f"CAST(CAST(l AS DOUBLE) AS BIGINT) = {EDGE}", True),
    "there and back, a long list": (f"CAST(CAST(l AS DOUBLE) AS BIGINT) IN ({LONG_LIST.replace('D', '')}, {EDGE})", False),
    "a struct's field, there and back": (f"CAST(CAST(st.l AS DOUBLE) AS BIGINT) = {EDGE}", False),
    "a struct as another": ("CAST(st AS STRUCT<l: DOUBLE, s: STRING, d: DATE>).l = 9007199254740992D", False),
    "a struct with folded text": ("CAST(st AS STRUCT<l: BIGINT, s: STRING COLLATE UTF8_LCASE, d: DATE>).s = 'abc'", False),
    "folded text in a list": (f"{FOLDED.format('s')} IN ('abc', 'b')", True),
    "folded text in a long list": (f"{FOLDED.format('s')} NOT IN ('abc', {TEXTS})", True),
    "folded text": (f"{FOLDED.format('s')} = 'abc'", False),
    "no folded text": (f"{FOLDED.format('s')} <> 'abc'", True),
    "folded text of two columns": (f"{FOLDED.format('s')} = {FOLDED.format('t')}", False),
    "greater folded text": (f"{FOLDED.format('s')} >= {FOLDED.format('t')}", False),
    "other folded text of two columns": (f"{FOLDED.format('s')} <> {FOLDED.format('t')}", True),
    "the beginning of folded text": (f"startswith({FOLDED.format('s')}, 'ab')", False),
    "text without trailing blanks": ("CAST(s AS STRING COLLATE UTF8_BINARY_RTRIM) = 'abc'", False),
    "folded text in a struct": (f"{FOLDED.format('st.s')} = 'abc'", False),
}  # fmt: skip
if seam.name == "3.5":  # it has no collations
    CASES = {name: case for name, case in CASES.items() if "COLLATE" not in case[0]}


@pytest.fixture(scope="module")
def both(spark, tmp_path_factory):
    """The directory of a table and of plain files of the same rows."""
    path = tmp_path_factory.mktemp("casts")
    write_both(path)
    return path


@pytest.fixture(scope="module")
def truth(spark, both):
    """The rows that each condition is TRUE for."""
    return matching(plain_frame(spark, both), [condition for condition, _ in CASES.values()])


def matching(frame, conditions):
    """The keys of the rows of each condition, in one job."""
    parts = [frame.where(c).selectExpr(f"{i} AS number", "k") for i, c in enumerate(conditions)]
    while len(parts) > 1:
        parts = [a if b is None else a.unionAll(b) for a, b in zip_longest(parts[::2], parts[1::2])]
    found = {condition: [] for condition in conditions}
    for number, k in parts[0].collect():
        found[conditions[number]].append(k)
    return {condition: sorted(keys) for condition, keys in found.items()}


def test_a_query_over_casts_has_the_rows_of_plain_parquet(spark, both, truth):
    """In IN lists of both lengths, between columns, in chains, in structs and under a collation."""
    table = spark.read.format("indextables").load(str(both / "table"))
    assert matching(table, list(truth)) == truth


@pytest.mark.parametrize("case", [name for name, (_, is_deleted) in CASES.items() if is_deleted])
def test_a_delete_over_casts_leaves_the_rows_it_leaves_in_plain_parquet(
    spark, both, truth, tmp_path, case
):
    """Whole files go only where the condition as it was written is TRUE for each row."""
    condition, _ = CASES[case]
    path = tmp_path / "t"
    shutil.copytree(both / "table", path)
    spark.sql(f"DELETE FROM indextables.`{path}` WHERE {condition}")
    left = {row.k for row in spark.read.format("indextables").load(str(path)).select("k").collect()}
    assert sorted(set(range(36)) - left) == truth[condition]


HARD = [CASES[name][0] for name in (
    "a bigint that rounds to a double of a long list",
    "times in a list for a date",
    "two bigints as other doubles",
    "other folded text of two columns",
)]  # fmt: skip


@pytest.fixture
def copies(spark, both, tmp_path):
    """Makes a copy of the table: its name in SQL, and how to read the keys it has."""

    def make(name):
        path = tmp_path / name
        shutil.copytree(both / "table", path)

        def keys():
            frame = spark.read.format("indextables").load(str(path))
            return sorted(row.k for row in frame.select("k").collect())

        return f"indextables.`{path}`", keys

    return make


def test_an_update_over_casts_changes_the_rows_it_changes_in_plain_parquet(spark, copies, truth):
    """The files it opens are found by the same reading of the condition."""
    name, keys = copies("t")
    condition = " OR ".join(f"({part})" for part in HARD[:2])
    wanted = {k for part in HARD[:2] for k in truth[part]}
    spark.sql(f"UPDATE {name} SET k = k + 1000 WHERE {condition}")
    assert keys() == sorted(k + 1000 if k in wanted else k for k in range(36))


SOURCES = [
    (f"(SELECT {EDGE}D AS u)", "t.l = src.u"),
    ("(SELECT 'abc' AS u)", "t.s COLLATE UTF8_LCASE = src.u"),
    ("(SELECT TIMESTAMP_NTZ '2024-01-02 00:00:00' AS u)", "t.d = src.u"),
]


def test_a_merge_over_casts_finds_the_rows_it_finds_in_plain_parquet(spark, both, copies):
    """Keys of the source narrow the table only where they are of the column's own type."""
    plain_frame(spark, both).createOrReplaceTempView("casts_plain")
    for number, (source, on) in enumerate(SOURCES):
        expected = spark.sql(f"SELECT k FROM casts_plain t JOIN {source} src ON {on}").collect()
        assert expected
        name, keys = copies(f"t{number}")
        spark.sql(f"MERGE INTO {name} t USING {source} src ON {on} WHEN MATCHED THEN DELETE")
        assert keys() == sorted(set(range(36)) - {row.k for row in expected}), on


def test_an_overwrite_by_a_condition_with_casts_is_exact_or_refused(spark, both, copies, truth):
    """`replaceWhere` and `overwrite` remove the rows of the condition, or say that they cannot."""
    nothing = plain_frame(spark, both).limit(0)
    refused = []
    for number, condition in enumerate([HARD[0], HARD[3]]):
        name, keys = copies(f"a{number}")
        path = name.partition(".")[2].strip("`")
        writer = nothing.write.format("indextables").mode("overwrite")
        v2, v2_keys = copies(f"b{number}")
        for write, left in (
            (lambda: writer.option("replaceWhere", condition).save(path), keys),
            (lambda: nothing.writeTo(v2).overwrite(F.expr(condition)), v2_keys),
        ):
            try:
                write()
            except (errors.PredicateError, errors.UnknownColumnError):
                refused.append(condition)
                assert left() == list(range(36))
            else:
                assert left() == sorted(set(range(36)) - set(truth[condition])), condition
    assert refused == [HARD[3], HARD[3]]
