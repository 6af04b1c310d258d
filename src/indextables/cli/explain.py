"""`indextables explain` and `indextables report`: why a query reads what it reads, and how a table is doing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

import click

from indextables.cli.inspect import version_option
from indextables.cli.output import (
    OutputFormat,
    format_option,
    show_facts,
    show_json,
    show_rows,
    write_page,
)
from indextables.cli.report.advice import advice_for
from indextables.cli.report.explain import Explanation, Step, Verdict
from indextables.cli.report.explain import explain as explain_plan
from indextables.cli.report.html import html_page
from indextables.cli.report.table_report import ColumnReport, TableReport, table_report
from indextables.cli.streams import advise
from indextables.display import human_bytes, human_moment
from indextables.table.table import Table

Record: TypeAlias = dict[str, object]

_SHOWN_SPLITS = 20
_INDENT = "  "


@click.command()
@click.argument("table")
@click.argument("where")
@click.option("--splits", is_flag=True, help="Also say why each split is read or skipped.")
@click.option(
    "--timezone", default="UTC", show_default=True, help="The time zone of timestamps that name none."
)
@version_option
@format_option
def explain(  # noqa: PLR0917 - one parameter for each option
    table: str, where: str, splits: bool, timezone: str, version: int | None, output: OutputFormat
) -> None:
    r"""Explain why a condition reads the splits it reads, piece by piece and column by column.

    Each line is a piece of the condition, with the number of splits it would read alone. A piece that
    skips little says what kept it from skipping more. No data file is opened.

    \b
    Example:
      indextables explain ./articles "score > 90 AND author = 'ada'"
      indextables explain ./articles "score > 90" --splits
    """
    found = explain_plan(Table(table), where, version=version, timezone=timezone)
    if output == "json":
        show_json(_as_json(found, splits=splits))
        return
    show_rows(list(map(_step_row, found.steps)), ("condition", "splits", "why not fewer"), output)
    click.echo()
    columns = [dataclasses.asdict(column) for column in found.columns]
    names = ("column", "type", "lowest", "highest", "with_nulls", "shortened", "missing")
    if columns:
        show_rows(columns, names, output)
        click.echo()
    verdicts = [dataclasses.asdict(one) for one in _verdicts(found, every=splits)]
    show_rows([_verdict_row(row) for row in verdicts], ("split", "read", "because"), output)
    rest = found.report.total_files - len(verdicts)
    advise(str(found.report) + (f"; --splits shows the other {rest:,} too" if rest else ""))


def _step_row(step: Step) -> Record:
    text = step.joint or step.condition
    return {
        "condition": _INDENT * step.depth + text,
        "splits": step.kept,
        "why not fewer": step.why,
    }


def _verdicts(found: Explanation, *, every: bool) -> Iterator[Verdict]:
    return islice(found.verdicts(), None if every else _SHOWN_SPLITS)


def _verdict_row(verdict: Record) -> Record:
    return {"split": verdict["path"], "read": verdict["kept"], "because": verdict["why"]}


def _as_json(found: Explanation, *, splits: bool) -> Record:
    return {
        "report": dataclasses.asdict(found.report),
        "condition": [
            {"depth": s.depth, "condition": s.condition, "joint": s.joint, "kept": s.kept, "why": s.why}
            for s in found.steps
        ],
        "columns": [dataclasses.asdict(column) for column in found.columns],
        **({"splits": [dataclasses.asdict(one) for one in found.verdicts()]} if splits else {}),
    }


@click.command()
@click.argument("table")
@click.option(
    "--html", "page", metavar="FILE", help="Write an HTML page to FILE, or to stdout for '-'."
)
@format_option
def report(table: str, page: str | None, output: OutputFormat) -> None:
    r"""Show a table at a glance: files, log, statistics, and what could be better.

    "Equality reads" is the number of splits that a condition such as `column = value` reads on average:
    the fewer, the better the rows are sorted for that column.

    \b
    Example:
      indextables report ./articles
      indextables report ./articles --html articles.html
    """
    found = table_report(table)
    if page is not None:
        write_page(page, html_page(found))
        return
    if output == "json":
        show_json(_report_json(found))
        return
    show_facts(_facts(found), output)
    click.echo()
    show_rows(list(map(_column_row, found.columns)), _COLUMNS, output)
    click.echo()
    show_rows([{"size": name, "splits": count} for name, count in found.sizes.items()], _SIZES, output)
    for one in advice_for(found):
        advise(f"\n{one.what}:\n  {one.command}")


_COLUMNS = ("column", "type", "lowest", "highest", "with statistics", "shortened", "equality reads")
_SIZES = ("size", "splits")


def _facts(found: TableReport) -> Record:
    snapshot, log = found.snapshot, found.log
    return {
        "table": found.uri,
        "version": snapshot.version,
        "committed": human_moment(snapshot.timestamp_ms),
        "rows": found.rows,
        "splits": f"{snapshot.num_files:,}, {human_bytes(snapshot.total_bytes)}",
        "delta files": found.delta_files or None,
        "partitions": found.partitions or None,
        "log": f"{log.commits:,} commits, {log.checkpoints:,} checkpoints, {human_bytes(log.total_bytes)}",
        "read to open": f"{human_bytes(log.opening_bytes)}, {log.commits_to_replay:,} commits to replay",
        "saved by truncation": human_bytes(log.truncation_saved),
        "removed files": found.removed_files,
    }


def _column_row(column: ColumnReport) -> Record:
    reach = column.reach
    return {
        "column": reach.column,
        "type": reach.type,
        "lowest": reach.lowest,
        "highest": reach.highest,
        "with statistics": column.splits - reach.missing,
        "shortened": reach.shortened,
        "equality reads": None if column.point_reads is None else round(column.point_reads, 1),
    }


def _report_json(found: TableReport) -> Record:
    return {
        "table": found.uri,
        "version": found.snapshot.version,
        "committed": human_moment(found.snapshot.timestamp_ms),
        "rows": found.rows,
        "files": found.snapshot.num_files,
        "bytes": found.snapshot.total_bytes,
        "log_files": found.delta_files,
        "partitions": found.partitions,
        "removed_files": found.removed_files,
        "sizes": dict(found.sizes),
        "log": dataclasses.asdict(found.log),
        "columns": [
            {**dataclasses.asdict(c.reach), "dropped": c.dropped, "point_reads": c.point_reads}
            for c in found.columns
        ],
        "history": [dataclasses.asdict(entry) for entry in found.history],
        "advice": [dataclasses.asdict(one) for one in advice_for(found)],
    }
