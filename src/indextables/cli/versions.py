"""Commands that commit a version without new rows: convert, compact, restore, rollback."""

from __future__ import annotations

import click

from indextables.cli.output import (
    OutputFormat,
    format_option,
    progress,
    settings_option,
    show_commit,
    show_facts,
)
from indextables.table.table import Table


@click.command()
@click.argument("directory")
@format_option
def convert(directory: str, output: OutputFormat) -> None:
    r"""Make a table of a directory of Parquet files: a log with statistics is added, no file is touched.

    Directories such as day=2024-01-01 become partitions.

    \b
    Example:
      indextables convert ./old-parquet
    """
    with progress("reading footers") as advance:
        table = Table.convert(directory, progress=advance)
    snapshot = table.snapshot()
    facts = {"table": table.uri, "version": snapshot.version, "files": snapshot.num_files}
    show_facts({**facts, "partitioned by": list(snapshot.partition_columns)}, output)


@click.command()
@click.argument("table")
@click.option("--where", metavar="SQL", help="Only slices that may hold a row for which this is TRUE.")
@click.option(
    "--min-logs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Only slices with at least this many delta files.",
)
@click.option(
    "--min-percent",
    type=click.FloatRange(min=0),
    default=0,
    show_default=True,
    metavar="P",
    help="Only slices whose delta files have at least this percentage of the size of the base file.",
)
@settings_option
@format_option
def compact(  # noqa: PLR0917 - one parameter for each option
    table: str,
    where: str | None,
    min_logs: int,
    min_percent: float,
    settings: dict[str, str],
    output: OutputFormat,
) -> None:
    r"""Write slices with delta files as new base files, so that reading them merges nothing.

    The rows stay the same, and so do older versions until they are vacuumed.

    \b
    Example:
      indextables compact ./customers
      indextables compact ./customers --min-logs 4 --where "day >= DATE '2024-01-01'"
    """
    with progress("compacting") as advance:
        done = Table(table).compact(
            where, min_logs=min_logs, min_percent=min_percent, progress=advance, options=settings
        )
    show_commit(table, done, output, "no slice has enough delta files")


@click.command()
@click.argument("table")
@click.option("--version", type=click.IntRange(min=0), metavar="N", help="The version to go back to.")
@click.option(
    "--timestamp",
    metavar="TIME",
    help="The moment to go back to instead, such as 2024-05-01T12:00:00Z.",
)
@format_option
def restore(table: str, version: int | None, timestamp: str | None, output: OutputFormat) -> None:
    r"""Bring back the table as it was at a version or a moment, in a new version that can be undone.

    \b
    Example:
      indextables restore ./articles --version 12
      indextables restore ./articles --timestamp "2024-05-01 12:00:00"
    """
    if (version is None) == (timestamp is None):
        raise click.UsageError("give either --version or --timestamp")
    done = Table(table).restore(version, timestamp=timestamp)
    show_commit(table, done, output, "the table is already as it was then")


@click.command()
@click.argument("table")
@click.option(
    "--version", type=click.IntRange(min=0), metavar="N", required=True, help="The version to undo."
)
@format_option
def rollback(table: str, version: int, output: OutputFormat) -> None:
    r"""Undo what one version did and keep what came after. An error names the later version that prevents it.

    \b
    Example:
      indextables rollback ./articles --version 12
    """
    done = Table(table).rollback(version)
    show_commit(table, done, output, "nothing of that version is left to undo")
