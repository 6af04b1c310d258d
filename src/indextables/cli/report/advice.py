"""What would make a table better, with the command that does it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indextables.cli.report.table_report import ColumnReport, TableReport
from indextables.display import counted, human_bytes

_FEW: Final = 8
_MANY: Final = 4
_MOST_COLUMNS: Final = 5
_BOUND: Final = "spark.indextables.stats.truncation.strategy=bound"


@dataclass(frozen=True, slots=True)
class Advice:
    """What was noticed, and the command to run; it is empty if there is none."""

    what: str
    command: str


def advice_for(report: TableReport) -> list[Advice]:
    """Returns advice for a table; none if it is fine as it is."""
    path = shlex.quote(report.uri.removeprefix("file://"))
    return [*_statistics(report, path), *_layout(report, path), *_log(report, path)]


def why_it_skips(column: ColumnReport) -> str:
    """Returns in one sentence why conditions on a column skip as much, or as little, as they do."""
    reach, splits = column.reach, column.splits
    if not column.orderable:
        return "values of this type have no order, so only IS NULL can skip"
    if reach.partition:
        return "a partition column: each split has one value"
    if column.dropped:
        return "values too long for the log: a prefix of them would skip (strategy=bound, or a higher maxLength)"
    if reach.missing:
        return f"{counted(reach.missing, 'split')} without statistics: analyze adds them"
    if column.point_reads is None:
        return "no split has a value"
    if splits >= _FEW and column.point_reads > splits / _MANY:
        return f"values are spread over the splits: sorted by {reach.column}, an equality would read about one"
    return (
        "the splits hold different ranges, so conditions skip well"
        if splits > 1
        else "there is one split"
    )


def _statistics(report: TableReport, path: str) -> Iterator[Advice]:
    lacking = [c for c in report.columns if c.orderable and c.reach.missing > c.dropped]
    if lacking:
        names = _names(lacking)
        columns = " ".join(f"--column {shlex.quote(c.reach.column)}" for c in lacking[:_MOST_COLUMNS])
        yield Advice(
            f"some splits have no statistics of {names}, so conditions on them read these splits",
            f"indextables analyze {path} {columns}",
        )
    dropped = [column for column in report.columns if column.dropped]
    if dropped:
        yield Advice(
            f"the values of {_names(dropped)} are too long for the log, so conditions on them skip nothing; "
            f"with the setting {_BOUND} they would skip by prefix",
            f"indextables analyze {path} --rebuild --set {_BOUND}",
        )


def _layout(report: TableReport, path: str) -> Iterator[Advice]:
    if report.delta_files:
        yield Advice(
            f"every reader merges {counted(report.delta_files, 'delta file')} of upserts and deletes",
            f"indextables compact {path}",
        )
        return
    total = report.snapshot.total_bytes
    packed = report.partitions + total // report.target_bytes + 1
    if report.small_files >= _FEW and report.snapshot.num_files > 2 * packed:
        yield Advice(
            f"{counted(report.small_files, 'split')} of {report.snapshot.num_files:,} are small; "
            f"about {packed} of {human_bytes(report.target_bytes)} would hold the same rows",
            f"indextables optimize {path}",
        )


def _log(report: TableReport, path: str) -> Iterator[Advice]:
    if report.checkpoint_interval and report.log.commits_to_replay > 2 * report.checkpoint_interval:
        yield Advice(
            f"opening the table replays {counted(report.log.commits_to_replay, 'commit')}",
            f"indextables checkpoint {path}",
        )
    if report.removed_files:
        yield Advice(
            f"{counted(report.removed_files, 'removed file')} may still be stored for time travel",
            f"indextables vacuum {path}",
        )


def _names(columns: list[ColumnReport]) -> str:
    names = [column.reach.column for column in columns]
    more = len(names) - _MOST_COLUMNS
    return ", ".join(names[:_MOST_COLUMNS]) + (f" and {more} more" if more > 0 else "")
