"""Commands that only look: describe, history, log, files, plan."""

from __future__ import annotations

import dataclasses

import click

from indextables.cli.output import OutputFormat, format_option, show_facts, show_json, show_rows
from indextables.cli.streams import advise
from indextables.core.types import type_name
from indextables.display import human_bytes, human_moment, what_changed
from indextables.log.state.rows import Split
from indextables.table.recovery import describe_log
from indextables.table.table import Table

where_option = click.option(
    "--where", metavar="SQL", help="Only files that may hold a row for which this condition is TRUE."
)
version_option = click.option(
    "--version", type=int, metavar="N", help="Look at this version instead of the newest."
)


@click.command()
@click.argument("table")
@version_option
@format_option
def describe(table: str, version: int | None, output: OutputFormat) -> None:
    r"""Show a table's schema, size, version and statistics.

    \b
    Example:
      indextables describe ./articles
      indextables describe s3://bucket/articles --version 12 --format json
    """
    handle = Table(table)
    snapshot = handle.snapshot(version)
    facts = {
        "table": handle.uri,
        "id": snapshot.metadata.id,
        "version": snapshot.version,
        "committed": human_moment(snapshot.timestamp_ms),
        "files": snapshot.num_files,
        "size": snapshot.total_bytes,
        "partitioned by": list(snapshot.partition_columns),
        "properties": dict(snapshot.properties),
    }
    columns = [
        {
            "column": ".".join(info.column),
            "type": info.type,
            "splits with statistics": info.complete,
            "shortened": info.inexact,
            "without": info.missing,
        }
        for info in handle.statistics_info()
    ]
    schema = [
        {"column": f.name, "type": type_name(f.type), "nullable": f.nullable} for f in snapshot.schema
    ]
    if output == "json":
        show_json({**facts, "schema": schema, "statistics": columns})
        return
    show_facts({**facts, "size": human_bytes(snapshot.total_bytes)}, output)
    click.echo()
    show_rows(schema, ("column", "type", "nullable"), output)
    if columns and version is None:
        click.echo()
        show_rows(columns, ("column", "type", "splits with statistics", "shortened", "without"), output)


@click.command()
@click.argument("table")
@click.option("--limit", type=click.IntRange(1, 2**31), metavar="N", help="Only the newest N commits.")
@format_option
def history(table: str, limit: int | None, output: OutputFormat) -> None:
    r"""List the commits that are kept, newest first, with what each one did.

    \b
    Example:
      indextables history ./articles --limit 5
    """
    entries = [dataclasses.asdict(entry) for entry in Table(table).history(limit)]
    for entry in entries:
        entry["committed"] = human_moment(entry["timestamp_ms"])
        entry["what it did"] = what_changed(entry["metrics"])
    columns = ("version", "committed", "operation", "what it did")
    show_rows(entries, columns, output)


@click.command()
@click.argument("table")
@click.option(
    "--all", "include_all", is_flag=True, help="Also list what lies before the newest checkpoint."
)
@format_option
def log(table: str, include_all: bool, output: OutputFormat) -> None:
    r"""List the actions of the transaction log, line by line, even where the log is damaged.

    \b
    Example:
      indextables log ./articles
      indextables log ./articles --all --format json
    """
    rows = describe_log(table, include_all=include_all).to_pylist()
    columns = ("version", "file", "line", "action", "path", "size", "content")
    show_rows(rows, columns, output)


@click.command()
@click.argument("table")
@where_option
@version_option
@format_option
def files(table: str, where: str | None, version: int | None, output: OutputFormat) -> None:
    r"""List the table's files; with --where only those that a query with this condition would read.

    \b
    Example:
      indextables files ./articles --where "score > 100 AND day = '2024-01-01'"
    """
    found = Table(table).plan(where, version=version)
    rows = [_file_row(split) for split in found.files]
    show_rows(rows, ("path", "size", "rows", "version", "partition"), output)
    advise(f"{len(rows)} of {found.report.total_files} files, {human_bytes(found.report.kept_bytes)}")


@click.command()
@click.argument("table")
@click.argument("where")
@version_option
@format_option
def plan(table: str, where: str, version: int | None, output: OutputFormat) -> None:
    r"""Show what a condition would read and skip, and what kept it from skipping more.

    \b
    Example:
      indextables plan ./articles "score > 100"
    """
    report = Table(table).plan(where, version=version).report
    show_facts(dataclasses.asdict(report), output)


def _file_row(split: Split) -> dict[str, object]:
    return {
        "path": split.path,
        "size": split.size,
        "rows": split.stats.num_records if split.stats else None,
        "version": split.seq,
        "partition": dict(split.partition_values) or None,
    }
