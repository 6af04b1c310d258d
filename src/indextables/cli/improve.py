"""Commands that improve a table without changing a row: analyze, optimize, truncate-time-travel."""

from __future__ import annotations

import click

from indextables.cli.output import (
    OutputFormat,
    format_option,
    progress,
    settings_option,
    show_commit,
    show_rows,
)
from indextables.cli.streams import advise
from indextables.config import STATS_COLUMNS, TARGET_FILE_SIZE
from indextables.display import human_bytes
from indextables.sql.statements.log import top_level
from indextables.table.table import Table


@click.command()
@click.argument("table")
@click.option(
    "--column", "columns", multiple=True, metavar="NAME", help="Only this column; repeatable."
)
@click.option("--rebuild", is_flag=True, help="Do it also where there are statistics already.")
@settings_option
@format_option
def analyze(
    table: str, columns: tuple[str, ...], rebuild: bool, settings: dict[str, str], output: OutputFormat
) -> None:
    r"""Add the statistics that splits lack to the log. The splits are read; no data is rewritten.

    \b
    Example:
      indextables analyze ./articles
      indextables analyze ./articles --column score --column author.name
    """
    with progress("analyzing") as advance:
        done = Table(table).analyze(
            list(columns) or None, rebuild=rebuild, progress=advance, options=settings
        )
    show_commit(table, done, output, "every split has its statistics already")


@click.command()
@click.argument("table")
@click.option("--where", metavar="SQL", help="Only splits that may hold a row for which this is TRUE.")
@click.option(
    "--zorder-by", metavar="A,B", help="Sort the rows along a Z-order curve of these columns."
)
@click.option("--hilbert-by", metavar="A,B", help="Sort them along a Hilbert curve, which is tighter.")
@click.option("--target-size", metavar="SIZE", help="Size of the new splits, such as 128MB.")
@settings_option
@format_option
def optimize(  # noqa: PLR0917 - one parameter for each option
    table: str,
    where: str | None,
    zorder_by: str | None,
    hilbert_by: str | None,
    target_size: str | None,
    settings: dict[str, str],
    output: OutputFormat,
) -> None:
    r"""Pack small splits together or, with a curve, sort all rows so that conditions skip more splits.

    The rows stay the same, and so do older versions until they are vacuumed.

    \b
    Example:
      indextables optimize ./articles
      indextables optimize ./articles --zorder-by author,day --where "day >= DATE '2024-01-01'"
    """
    if zorder_by and hilbert_by:
        raise click.UsageError("--zorder-by and --hilbert-by exclude each other")
    options = settings | ({TARGET_FILE_SIZE.key: target_size} if target_size else {})
    with progress("optimizing"):
        done = Table(table).optimize(
            where, z_order_by=_names(zorder_by), hilbert_by=_names(hilbert_by), options=options
        )
    show_commit(table, done, output, "the splits are good as they are")


@click.command("truncate-time-travel")
@click.argument("table")
@click.option("--apply", is_flag=True, help="Delete the files; without it they are only listed.")
@format_option
def truncate_time_travel(table: str, apply: bool, output: OutputFormat) -> None:
    r"""List, or with --apply delete, the files of the log that only older versions need.

    The newest version is then the only one left. `vacuum` deletes the data files of older versions.

    \b
    Example:
      indextables truncate-time-travel ./articles
      indextables truncate-time-travel ./articles --apply
    """
    plan = Table(table).truncate_time_travel(apply=apply)
    rows = [{"path": f.key, "size": f.size, "what": f.kind, "version": f.version} for f in plan.files]
    show_rows(rows, ("path", "size", "what", "version"), output)
    done = "deleted" if plan.applied else "would be deleted; add --apply to delete them"
    advise(f"{len(rows)} files, {human_bytes(plan.total_bytes)}: {done}")


def _names(text: str | None) -> list[str] | None:
    """Returns column names separated by commas; a comma inside backticks belongs to the name."""
    return None if text is None else [top_level(name) for name in STATS_COLUMNS.parse(text)]
