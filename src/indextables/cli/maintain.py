"""Commands that maintain a table: check, checkpoint, vacuum."""

from __future__ import annotations

import dataclasses

import click

from indextables.cli.output import OutputFormat, format_option, progress, show_facts, show_rows
from indextables.cli.streams import advise
from indextables.display import human_bytes
from indextables.table.recovery import check_table
from indextables.table.table import Table


@click.command()
@click.argument("table")
@click.option("--deep", is_flag=True, help="Also open every file and compare it with its statistics.")
@format_option
@click.pass_context
def check(ctx: click.Context, table: str, deep: bool, output: OutputFormat) -> None:
    r"""Report every problem of the log and of the files it names, with file and line.

    Exits with 1 if there is a problem.

    \b
    Example:
      indextables check ./articles --deep
    """
    with progress("checking") as advance:
        report = check_table(table, deep=deep, progress=advance)
    found = [("problem", entry) for entry in report.problems] + [
        ("note", entry) for entry in report.notes
    ]
    rows = [{"level": level, **dataclasses.asdict(entry)} for level, entry in found]
    show_rows(rows, ("level", "kind", "file", "line", "message"), output)
    verdict = "no problem found" if report.ok else f"{len(report.problems)} problems"
    advise(f"{report.commits} commits, {report.files} files ({report.depth}): {verdict}")
    ctx.exit(0 if report.ok else 1)


@click.command()
@click.argument("table")
@format_option
def checkpoint(table: str, output: OutputFormat) -> None:
    """Write a checkpoint of the newest version, so that opening the table reads fewer commits.

    \b
    Example:
      indextables checkpoint ./articles
    """
    version = Table(table).checkpoint()
    show_facts({"table": table, "checkpoint": version}, output)


@click.command()
@click.argument("table")
@click.option("--apply", is_flag=True, help="Delete the files; without it they are only listed.")
@click.option(
    "--retention",
    metavar="TIME",
    help="Keep files removed within this time, such as '7 days' or '36 hours' [table's own, else 7 days].",
)
@click.option(
    "--allow-short-retention",
    is_flag=True,
    help="With --apply: allow a --retention below the table's own. Nobody may be writing or reading then.",
)
@format_option
def vacuum(
    table: str, apply: bool, retention: str | None, allow_short_retention: bool, output: OutputFormat
) -> None:
    """List, or with --apply delete, files that no kept version needs.

    \b
    Example:
      indextables vacuum ./articles
      indextables vacuum ./articles --retention "30 days" --apply
    """
    options = {"spark.indextables.vacuum.retention": retention} if retention else None
    with progress("deleting") as advance:
        found = Table(table).vacuum(
            apply=apply,
            allow_short_retention=allow_short_retention,
            progress=advance,
            options=options,
        )
    rows = [
        {"path": meta.key, "size": meta.size, "what": what}
        for what, metas in (("unreferenced", found.files), ("left by a crash", found.temporaries))
        for meta in metas
    ]
    show_rows(rows, ("path", "size", "what"), output)
    done = "deleted" if found.applied else "would be deleted; add --apply to delete them"
    advise(f"{len(rows)} files, {human_bytes(found.total_bytes)}: {done}")
    if found.waiting:
        advise(f"{found.waiting} more files wait until they are old enough by every clock")
