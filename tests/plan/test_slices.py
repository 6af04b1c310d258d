"""Slices in a plan: which files are opened, which of them give rows, and which need no merging."""

import json
import logging
from uuid import uuid4

import pytest

from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.errors import ProtocolError
from indextables.log.wire.actions import Add, Metadata, Protocol
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.plan.merge_rule import MergeMode, MergeRule
from indextables.plan.planner import plan_files
from indextables.plan.planner import Planner
from indextables.plan.report import SliceCounts
from indextables.sql.conditions.parser import parse_predicate
from indextables.storage import open_store

LONG = PrimitiveType("long")
SCHEMA = StructType((Field("id", LONG), Field("n", LONG), Field("day", PrimitiveType("date"))))
KEYED = {"recordKey": '["id"]'}


def file(name, group, seq, ids=None, n=None, *, kind="log", block="data", day="2024-01-01", **more):
    """A file of a slice; `ids` and `n` are (least, greatest)."""
    known = {(column,): ends for column, ends in (("id", ids), ("n", n)) if ends is not None}
    stats = SplitStats(
        10,
        {path: low for path, (low, _) in known.items()},
        {path: high for path, (_, high) in known.items()},
        dict.fromkeys(known, 0),
    )
    add = {"seq": seq, "file_group": group, "kind": kind, "block": block if kind == "log" else None}
    return Add(name, 100, {"day": day}, stats=stats if known else None, **add, **more)


def base(name, group, seq, *args, **more):
    return file(name, group, seq, *args, kind="base", **more)


def deletes(name, group, seq, *args, **more):
    return file(name, group, seq, *args, block="delete", **more)


def table_of(*adds, **properties):
    log = TransactionLog(open_store(f"memory://slices-{uuid4().hex}"))
    metadata = Metadata("id", SCHEMA, ("day",), properties=KEYED | properties)
    log.create(CommitPlan(Append(), "CREATE", (Protocol(), metadata)))
    log.commit(lambda _: CommitPlan(Append(), "APPEND", adds))
    return log


def plan(log, text=None, **options):
    where = None if text is None else parse_predicate(text)
    return plan_files(log.snapshot(), where, **options)


def names(found, mask):
    return "".join(s.path for s in found.snapshot.splits(mask))


def parts(found):
    """(opened, read from, bare), one letter per file."""
    return tuple(names(found, mask) for mask in (found.mask, found.rows, found.bare))


@pytest.fixture(scope="module")
def sliced():
    return table_of(
        base("a", "g1", 1, (1, 100), (1, 9)),
        file("b", "g1", 2, (10, 20), (100, 109)),
        deletes("c", "g1", 3, (30, 40)),
        base("d", "g2", 1, (101, 200), (1, 9)),
        deletes("e", "g2", 4, (150, 150)),
        base("f", "g3", 1, (201, 300), (50, 59)),
    )


@pytest.mark.parametrize(
    ("text", "opened", "rows", "bare", "why"),
    [
        (None, "abcdef", "abdf", "f", "a log over a file makes it need merging"),
        ("n = 5", "abcde", "ad", "", "a data log that cannot match is needed for its keys"),
        ("n = 105", "bc", "b", "", "a base that cannot match is not needed, a newer delete is"),
        ("n = 55", "f", "f", "f", "a slice without logs stays as it is"),
        ("n = 500", "", "", "", "no row-bearing file can match"),
        ("id = 5", "a", "a", "a", "no log has this key: the base is right as it is"),
        ("id = 15", "ab", "ab", "b", "the newest file of a key hides, and is not hidden"),
        ("id = 15 AND n = 5", "ab", "a", "", "the log has the key, whatever its own n is"),
        ("id = 15 OR n = 5", "abcde", "abd", "", "another column may bring any key"),
        ("id = 35", "ac", "a", "", "only the log that may delete this key is read"),
        ("day = '2024-01-02'", "", "", "", "partitions are of whole slices"),
    ],
)
def test_a_plan_opens_files_that_may_match_and_logs_that_may_hide(
    sliced, text, opened, rows, bare, why
):
    """Rows are looked for by the condition, logs by the keys it leaves."""
    found = plan(sliced, text)
    assert parts(found) == tuple(
        "".join(sorted(x, key="adfbce".index)) for x in (opened, rows, bare)
    ), why
    report = found.report
    assert report.kept_files + report.partition_pruned + report.stats_pruned == report.total_files == 6


def test_pieces_hold_what_has_to_be_merged(sliced):
    """One for each slice whose rows a log may change; files and logs in order of their commits."""
    found = plan(sliced)
    assert [
        (p.file_group, "".join(f.path for f in p.files), "".join(f.path for f in p.deltas), p.mode)
        for p in found.pieces
    ] == [("g1", "ab", "bc", "record"), ("g2", "d", "e", "record")]
    assert plan(sliced, "n = 55").pieces == ()


def test_a_log_older_than_every_file_that_is_read_is_not_opened(sliced):
    """Its keys can hide nothing that is read."""
    log = table_of(
        base("a", "g", 1, (1, 9), (1, 9)),
        deletes("b", "g", 2, (1, 9)),
        file("c", "g", 3, (1, 9), (50, 59)),
        deletes("d", "g", 4, (1, 9)),
    )
    (piece,) = plan(log, "n = 55").pieces
    assert [f.path for f in piece.files] == ["c"]
    assert [f.path for f in piece.deltas] == ["d"]


def test_read_optimized_reads_bases_only(sliced):
    """Also where a log holds the row that was asked for."""
    assert parts(plan(sliced, read_optimized=True)) == ("adf",) * 3
    assert parts(plan(sliced, "n = 105", read_optimized=True)) == ("",) * 3
    planner = Planner(sliced, sliced.snapshot(), read_optimized=True)
    assert planner.plan().read_optimized
    assert names(planner.plan(), planner.plan().rows) == "adf"
    assert planner.newest().read_optimized


def test_within_limits_rows_and_not_the_logs_over_them(sliced):
    """A reader of some files still needs what hides their rows."""
    within = plan(sliced).rows & ~plan(sliced).bare
    within[3:] = False
    assert parts(plan(sliced, within=within)) == ("adbce", "ad", "")


def test_a_log_file_without_statistics_keeps_its_slice():
    """Missing from the index is not proof of anything."""
    log = table_of(base("a", "g", 1, (1, 9), (1, 9)), file("b", "g", 2))
    assert parts(plan(log, "n = 100")) == ("b", "b", "b")
    assert parts(plan(log, "n = 5")) == ("ab", "ab", "b")


def test_a_log_file_without_a_group_is_a_slice_of_its_own():
    """There is nothing it could be merged with."""
    log = table_of(base("a", None, 1, (1, 9), (1, 9)), file("b", None, 2, (1, 9), (5, 50)))
    assert parts(plan(log, "n = 5")) == ("ab", "ab", "ab")


def test_slices_are_counted_where_there_are_any(sliced):
    """A table with a key has slices, whether or not a log was written yet."""
    report = plan(sliced, "n = 55").report
    assert (report.total_slices, report.kept_slices, report.slices_skipped) == (3, 1, 2)
    keyed = table_of(base("a", "g", 1, (1, 9), (1, 9)), base("b", "h", 1, (1, 9), (20, 29)))
    report = plan(keyed, "n = 5").report
    assert (report.total_slices, report.kept_slices, report.kept_slices_before) == (2, 1, 1)


def test_a_log_file_of_a_kind_from_the_future_is_refused():
    """Ignored, it could hide a row that is there, or show one that is gone."""
    log = table_of(base("a", "g", 1, (1, 9), (1, 9)), file("b", "g", 2, block="patch"))
    with pytest.raises(ProtocolError, match="'patch'"):
        plan(log)


@pytest.mark.parametrize(
    ("properties", "match"),
    [({"mergeMode": "custom"}, "mode 'custom'"), ({"recordKey": "id"}, "not a JSON list")],
)
def test_a_merge_rule_that_is_not_understood_is_refused(properties, match):
    """Merged in another way, rows would be wrong."""
    with pytest.raises(ProtocolError, match=match):
        MergeRule.of(properties)


def test_a_merge_rule_is_read_from_the_properties():
    """Without a word about it, the newest row wins."""
    assert MergeRule.of({}) == MergeRule((), MergeMode.RECORD)
    assert MergeRule.of(KEYED | {"mergeMode": "columns"}) == MergeRule(("id",), MergeMode.COLUMNS)


# -- columns put together --------------------------------------------------------------------------------


def partial(name, group, seq, columns, *args, **more):
    return file(name, group, seq, *args, tags={"columns": json.dumps(columns)}, **more)


@pytest.fixture(scope="module")
def combined():
    return table_of(
        base("a", "g1", 1, (1, 100), (1, 9)),
        partial("b", "g1", 2, ["n"], (10, 20), (100, 109)),
        deletes("c", "g1", 3, (30, 40)),
        base("d", "g2", 1, (101, 200), (1, 9)),
        deletes("e", "g2", 4, (150, 150)),
        base("f", "g3", 1, (201, 300), (50, 59)),
        partial("g", "g4", 2, ["n"], (301, 400), (70, 79)),
        mergeMode="columns",
    )


@pytest.mark.parametrize(
    ("text", "opened", "rows", "bare", "why"),
    [
        (None, "adfbgce", "adfbg", "f", "all that a row is made of, and all that ends one"),
        ("n = 105", "abc", "ab", "", "the other columns of the log's rows are the base's"),
        ("n = 5", "adbce", "adb", "", "a row may have kept its n, or not"),
        ("n = 500", "", "", "", "no file has it"),
        ("n IS NULL", "", "", "", "no file leaves n out"),
        ("id = 5", "a", "a", "a", "no log has this key"),
        ("id = 15 AND n = 5", "ab", "ab", "", "only the log with the key is read"),
        ("id = 35 AND n = 105", "", "", "", "what has this key has no such n"),
        (
            "n = 75",
            "g",
            "g",
            "",
            "an update without a row is not a whole row: it is merged, not read bare",
        ),
        ("day IS NULL", "", "", "", "partitions are of whole slices"),
    ],
)
def test_where_columns_are_combined_a_slice_is_read_with_all_that_makes_its_rows(
    combined, text, opened, rows, bare, why
):
    """The condition is asked of the slice as a whole, keys of each file."""
    assert parts(plan(combined, text)) == (opened, rows, bare), why


def test_a_base_is_bare_only_if_it_is_alone_in_its_slice():
    """Whatever the order, rows of one key become one row."""
    log = table_of(
        partial("a", "g", 1, ["n"], (1, 9), (1, 9)),
        base("b", "g", 2, (1, 9), (1, 9)),
        mergeMode="columns",
    )
    assert parts(plan(log)) == ("ab", "ab", "")
    (piece,) = plan(log).pieces
    assert [f.path for f in piece.files] == ["a", "b"]


def test_a_column_that_an_update_leaves_out_may_be_null():
    """The row it updates may be gone."""
    log = table_of(
        base("a", "g", 1, (1, 9), (1, 9)),
        partial("b", "g", 2, ["id"], (1, 9)),
        mergeMode="columns",
    )
    assert parts(plan(log, "n IS NULL")) == ("ab", "ab", "")
    assert parts(plan(log, "n = 10")) == ("", "", "")


def test_a_data_log_without_a_list_of_columns_sets_all_of_them():
    """Then its statistics must say so, or nothing is known."""
    log = table_of(base("a", "g", 1, (1, 9), (1, 9)), file("b", "g", 2, (1, 9)), mergeMode="columns")
    assert parts(plan(log, "n = 10")) == ("ab", "ab", "")


@pytest.mark.parametrize("columns", ["n", '{"n": 1}', "[1]"])
def test_a_list_of_columns_that_is_none_is_refused(columns):
    """Nobody could tell which values are new."""
    bad = file("b", "g", 2, (1, 9), tags={"columns": columns})
    log = table_of(base("a", "g", 1, (1, 9), (1, 9)), bad, mergeMode="columns")
    with pytest.raises(ProtocolError, match="does not say which columns it sets"):
        plan(log)


def test_a_plan_says_what_the_rule_for_slices_saves(sliced, caplog):
    """In its report and, in words, in the log."""
    with caplog.at_level(logging.DEBUG, logger="indextables"):
        report = plan(sliced, "n = 55").report
    words = "1 of 3 slices kept, 3 if every file without statistics kept its slice"
    assert report.slices == SliceCounts(3, 1, 3)
    assert str(report).endswith(words)
    assert f"Skipped 2 slices: {words}" in caplog.messages
    assert "slices" not in str(plan(sliced).report), "nothing is skipped, nothing is saved"


def test_read_optimized_counts_bases_only(sliced):
    """Log files are not in question, so they are not pruned either."""
    report = plan(sliced, "n = 55", read_optimized=True).report
    assert (report.total_files, report.kept_files, report.stats_pruned) == (3, 1, 2)
    assert (report.total_bytes, report.total_slices, report.kept_slices) == (300, 3, 1)
