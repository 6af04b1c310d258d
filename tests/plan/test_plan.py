"""Plans over a real log: which splits are read, and a report that accounts for all the others."""

import logging
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from indextables.core.predicate.nodes import Compare, Literal, Ref
from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.domain import ColumnDomain, Domain, Range
from indextables.errors import PredicateError, UnknownColumnError
from indextables.log.wire.actions import Add, Metadata, Protocol
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.plan.planner import files_to_query, plan_files
from indextables.sql.conditions.parser import parse_predicate
from indextables.storage import open_store
from indextables.table.table import Table

SCHEMA = StructType(
    (
        Field("n", PrimitiveType("long")),
        Field("article_content", PrimitiveType("string")),
        Field("st", StructType((Field("a", PrimitiveType("long")),))),
        Field("at", PrimitiveType("timestamp")),
        Field("day", PrimitiveType("date")),
    )
)
N, TEXT = ("n",), ("article_content",)


def snapshot_of(*adds):
    log = TransactionLog(open_store(f"memory://plan-{uuid4().hex}"))
    log.create(CommitPlan(Append(), "CREATE", (Protocol(), Metadata("id", SCHEMA, ("day",)))))
    log.commit(lambda _: CommitPlan(Append(), "APPEND", tuple(adds)))
    return log.snapshot()


def split(number, low, high, day="2024-01-01", size=100, *, text=None, **more):
    bounds = {TEXT: text} if text is not None else {}
    stats = SplitStats(10, {N: low, **bounds}, {N: high, **bounds}, {N: 0, TEXT: 0, ("st", "a"): 0})
    return Add(f"data/{number}.parquet", size, {"day": day}, stats=stats, **more)


@pytest.fixture(scope="module")
def snapshot():
    return snapshot_of(
        split(0, 1, 9, text="a"),
        split(1, 10, 19, text="b"),
        split(2, 1, 9, "2024-01-02"),
        split(3, 10, 19, "2024-01-02", size=7),
        split(4, 10, 19, None),
    )


def names(plan):
    return [s.path.removeprefix("data/").removesuffix(".parquet") for s in plan.files]


def where(text):
    return parse_predicate(text)


def test_a_plan_has_the_splits_that_may_match_and_accounts_for_the_rest(snapshot):
    """Partition values and statistics are counted apart, each split once."""
    plan = plan_files(snapshot, where("day = '2024-01-02' AND n > 9"))
    assert names(plan) == ["3"]
    assert plan.mask.tolist() == [False, False, False, True, False]
    report = plan.report
    assert (report.total_files, report.partition_pruned, report.stats_pruned) == (5, 3, 1)
    assert (report.kept_files, report.pruned_files) == (1, 4)
    assert (report.total_bytes, report.kept_bytes, report.pruned_bytes) == (407, 7, 400)
    assert report.missing_stats == {}
    assert report.planning_ms > 0


def test_without_a_condition_every_split_is_read(snapshot):
    """And no statistics are looked at."""
    plan = plan_files(snapshot)
    assert len(plan.files) == plan.report.kept_files == plan.report.total_files == 5
    assert plan.predicate is None


def test_all_splits_pruned_is_an_empty_plan(snapshot):
    """A bound beyond everything."""
    plan = plan_files(snapshot, where("n > 1000"))
    assert plan.files == []
    assert (plan.report.kept_files, plan.report.stats_pruned, plan.report.kept_bytes) == (0, 5, 0)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n = 1", ["0", "2"]),
        ("n = 19", ["1", "3", "4"]),
        ("n > 9 AND n < 10", []),
        ("day IS NULL", ["4"]),
        ("NOT (day = '2024-01-01')", ["2", "3"]),
        ("day <=> NULL OR n < 5", ["0", "2", "4"]),
        ("N = 5", ["0", "2"]),
        ("st IS NULL", []),
        ("st.a IS NOT NULL", ["0", "1", "2", "3", "4"]),
    ],
)
def test_conditions_reach_the_statistics_of_the_snapshot(snapshot, text, kept):
    """Names without case, partitions with types, nested fields."""
    assert names(plan_files(snapshot, where(text))) == kept


def test_missing_statistics_are_reported_for_the_splits_they_kept(snapshot, caplog):
    """Not for a split that another condition skipped anyway."""
    with caplog.at_level(logging.DEBUG, logger="indextables"):
        plan = plan_files(snapshot, where("article_content = 'b' AND n > 9"))
    assert names(plan) == ["1", "3", "4"]
    assert plan.report.missing_stats == {"article_content": 2}
    assert (
        "Statistics missing for column 'article_content', cannot skip file (2 files)" in caplog.messages
    )
    assert "Column stats pruned 2 of 5 segments, partition values 0" in caplog.messages
    assert any(r.levelno == logging.INFO and "3 of 5 splits kept" in r.message for r in caplog.records)


def test_what_statistics_cannot_answer_is_named_with_its_reason(snapshot):
    """`explain` can then say why nothing was skipped."""
    plan = plan_files(snapshot, where("rand() < 0.5 OR n = 1"))
    assert plan.report.kept_files == 5
    assert plan.report.opaque == {"rand() < 0.5": "only an engine can evaluate it"}


def test_an_engine_may_have_filtered_partitions_itself(snapshot):
    """What it left out counts as pruned by partition."""
    within = np.array([True, True, False, False, False])
    plan = plan_files(snapshot, where("n > 9"), within=within)
    assert names(plan) == ["1"]
    assert (plan.report.partition_pruned, plan.report.stats_pruned) == (3, 1)
    assert names(plan_files(snapshot, within=within)) == ["0", "1"]


def test_a_domain_plans_as_its_condition_does(snapshot):
    """One evaluator for both roads; a domain's values are of the column's own type."""
    domain = ColumnDomain({"n": Domain([Range.greater_than(9)]), "day": Domain.of(None)})
    plan = plan_files(snapshot, domain)
    assert names(plan) == names(plan_files(snapshot, where("n > 9 AND day IS NULL"))) == ["4"]
    with pytest.raises(PredicateError, match="not a value of column 'day'"):
        plan_files(snapshot, ColumnDomain({"day": Domain.of("2024-01-01")}))
    assert names(plan_files(snapshot, ColumnDomain.none())) == []
    assert len(plan_files(snapshot, ColumnDomain.all()).files) == 5


def test_files_to_query_looks_at_the_columns_it_is_given(snapshot):
    """RFC-58's getFilesToQueryUsingCSI: the domains of the listed columns, intersected."""
    domain = ColumnDomain({"n": Domain.of(5, 15), "article_content": Domain.of("b")})
    assert [s.path for s in files_to_query(snapshot, ["n", "article_content"], domain)] == [
        f"data/{n}.parquet" for n in (1, 2, 3, 4)
    ]
    assert len(files_to_query(snapshot, ["n"], domain)) == 5
    assert len(files_to_query(snapshot, [], domain)) == 5


def test_an_unknown_column_is_an_error_with_a_proposal(snapshot):
    """Never a condition that silently keeps everything."""
    with pytest.raises(UnknownColumnError, match="did you mean 'n'"):
        plan_files(snapshot, Compare("=", Ref(("nn",)), Literal(1)))


@pytest.mark.parametrize(("timezone", "kept"), [("UTC", 1), ("America/New_York", 0)])
def test_a_timestamp_without_a_zone_is_the_sessions(timezone, kept):
    """Midnight in New York is five hours after the latest row, which is midnight UTC."""
    midnight = 1_704_067_200_000_000
    bounds = {("at",): midnight}
    found = snapshot_of(Add("x", 1, {"day": None}, stats=SplitStats(1, bounds, bounds)))
    plan = plan_files(found, where("at >= '2024-01-01 00:00:00'"), timezone)
    assert plan.report.kept_files == kept


@pytest.mark.parametrize(
    ("condition", "stops", "helps"),
    [
        ("length(s) = 3", "length", "a condition on s beside it"),
        ("id + length(trim(s)) > 3", "trim", "a condition on s beside it"),
        ("concat(s, t) = 'ab'", "concat takes several columns", "a condition on s and t beside it"),
        ("CAST(s AS INT) = 3", "cast", "a column that holds its result"),
        ("date_format(ts, 'MM/yyyy') = '01/2024'", "date_format", "yyyy-MM-dd"),
    ],
)
def test_the_report_says_which_function_kept_files_and_what_would_help(
    tmp_path, condition, stops, helps
):
    """Of functions inside functions the one that stopped the skipping; other parts of the condition are not named."""
    schema = pa.schema(
        [("id", pa.int64()), ("s", pa.string()), ("t", pa.string()), ("ts", pa.timestamp("us", "UTC"))]
    )
    table = Table.create(tmp_path / "t", schema)
    ((text, why),) = table.plan(f"id + 1 > 5 AND {condition}").report.opaque.items()
    assert "id + 1 > 5" not in text
    assert stops in why
    assert helps in why
