"""Slices in a plan: which files are opened, which of them give rows, and which need no merging."""

from uuid import uuid4

import pytest

from indextables.core.statistics.split_stats import SplitStats
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.errors import ProtocolError
from indextables.log.actions import Add, Metadata, Protocol
from indextables.log.plan import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.scan.merge import MergeMode, MergeRule
from indextables.scan.plan import plan_files
from indextables.scan.planner import Planner
from indextables.sql.predicate import parse_predicate
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
        (p.group, "".join(f.path for f in p.files), "".join(f.path for f in p.logs), p.mode)
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
    assert [f.path for f in piece.logs] == ["d"]


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
