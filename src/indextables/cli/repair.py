"""`indextables repair`: plans and repairs, and puts the new log in place of the old one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import click

from indextables.cli.output import (
    OutputFormat,
    format_option,
    progress,
    settings_option,
    show_facts,
    show_json,
    show_rows,
)
from indextables.cli.streams import advise
from indextables.display import human_bytes
from indextables.errors import RepairError
from indextables.ops.repair import RepairPlan, plan_repair
from indextables.ops.repair import repair as run_repair
from indextables.ops.repair.log_location import location_of
from indextables.ops.repair.run import COLUMNS
from indextables.ops.repair.swap import Swap, by_hand, replace_log, undo_replace
from indextables.storage import open_store


@click.command()
@click.argument("log")
@click.option("--at-location", "target", metavar="DIR", help="Write the new log here [LOG_repaired].")
@click.option("--dry-run", is_flag=True, help="Show what would be kept and left out; write nothing.")
@click.option("--no-validate", is_flag=True, help="Do not look whether the splits are stored.")
@click.option("--drop-stats", is_flag=True, help="Leave out the statistics of the splits.")
@click.option("--fail-on-missing", is_flag=True, help="Write nothing if a split is missing.")
@click.option(
    "--parallelism", type=click.IntRange(min=1), help="How many splits to look for at a time [4]."
)
@settings_option
@click.option(
    "--replace", is_flag=True, help="Put the new log in place of LOG, and keep LOG as LOG_backup."
)
@click.option("--undo", is_flag=True, help="Put LOG_backup back in place of LOG.")
@click.option(
    "--allow-gap", is_flag=True, help="Replace LOG even where a reader may find no log for a moment."
)
@format_option
@click.pass_context
def repair(  # noqa: PLR0917 - one parameter for each option
    ctx: click.Context,
    log: str,
    target: str | None,
    dry_run: bool,
    no_validate: bool,
    drop_stats: bool,
    fail_on_missing: bool,
    parallelism: int | None,
    settings: dict[str, str],
    replace: bool,
    undo: bool,
    allow_gap: bool,
    output: OutputFormat,
) -> None:
    r"""Rebuild a damaged or bloated transaction log in another directory; LOG itself is only read.

    LOG is the log directory, not the table. A run with --replace that was interrupted can be repeated.

    \b
    Example:
      indextables repair ./articles/_transaction_log --dry-run
      indextables repair ./articles/_transaction_log --at-location ./articles/_repaired
      indextables repair ./articles/_transaction_log --replace
      indextables repair ./articles/_transaction_log --undo
    """
    here = log.rstrip("/")
    there = target or f"{here}_repaired"
    options: dict[str, Any] = {
        "validate_splits": False if no_validate else None,
        "preserve_stats": False if drop_stats else None,
        "parallelism": parallelism,
        "config": settings,
    }
    if undo:
        _show_swap(undo_replace(location_of(here, open_store), allow_gap=allow_gap), output)
    elif dry_run:
        ctx.exit(_plan(here, options, output))
    elif replace and (swap := _finished_before(here, there, allow_gap=allow_gap)):
        _show_swap(swap, output)
    else:
        options["fail_on_missing"] = fail_on_missing or None
        if code := _repair(here, there, options, output):
            ctx.exit(code)
        if replace:
            _replace(here, there, allow_gap=allow_gap, output=output)


def _plan(here: str, options: dict[str, Any], output: OutputFormat) -> int:
    with progress("checking splits") as advance:
        plan = plan_repair(here, progress=advance, **options)
    if output == "json":
        show_json(_facts(plan) | _details(plan))
    else:
        show_facts(_facts(plan), output)
        show_rows(list(_findings(plan)), ("what", "where", "why"), output)
    for note in plan.notes:
        advise(note)
    saved = human_bytes(plan.stats_bytes_saved)
    advise(f"nothing was written; {saved} of statistics would be left out")
    return 0 if plan.error is None else 1


def _repair(here: str, there: str, options: dict[str, Any], output: OutputFormat) -> int:
    with progress("checking splits") as advance:
        result = run_repair(here, there, progress=advance, **options)
    names = [name for name, _ in COLUMNS]
    show_rows([dict(zip(names, result.row(), strict=True))], names, output)
    for line in (*result.excluded, *result.notes):
        advise(str(line))
    if result.error is None:
        return 0
    if result.error.hint:
        advise(f"Help: {result.error.hint}")
    return 1


def _facts(plan: RepairPlan) -> dict[str, object]:
    return {
        "source_path": plan.source,
        "source_version": plan.version,
        "total_splits": plan.total_splits,
        "kept": len(plan.kept),
        "missing": len(plan.missing),
        "mismatched": len(plan.mismatched),
        "unreadable": len(plan.unreadable),
        "stats_bytes_saved": plan.stats_bytes_saved,
        "error": plan.error.message if plan.error else None,
    }


def _details(plan: RepairPlan) -> dict[str, object]:
    """Returns the lists behind the counts."""
    return {
        "missing": [one.path for one in plan.missing],
        "mismatched": [{"path": one.path, "reason": one.reason} for one in plan.mismatched],
        "unreadable": [dataclasses.asdict(finding) for finding in plan.unreadable],
        "notes": list(plan.notes),
    }


def _findings(plan: RepairPlan) -> Iterator[dict[str, str]]:
    for what, excluded in (("missing", plan.missing), ("mismatched", plan.mismatched)):
        for one in excluded:
            yield {"what": what, "where": one.path, "why": one.reason}
    for finding in plan.unreadable:
        where = f"{finding.file}:{finding.line}" if finding.line else finding.file
        what = "unreadable" if finding.needed else "not needed"
        yield {"what": what, "where": where, "why": finding.reason}


def _finished_before(here: str, there: str, *, allow_gap: bool) -> Swap | None:
    """Returns the swap of a run that repaired before, or died while swapping; None if nothing is there to swap."""
    log, repaired = location_of(here, open_store), location_of(there, open_store)
    if log.local_path is None:
        return None
    try:
        return replace_log(log, repaired, allow_gap=allow_gap)
    except RepairError:
        if next(iter(repaired.store.list(repaired.names.prefix)), None) is not None:
            raise
        return None


def _replace(here: str, there: str, *, allow_gap: bool, output: OutputFormat) -> None:
    log = location_of(here, open_store)
    if log.local_path is None:
        advise(f"the new log is at {there}; to use it, {by_hand(log, there)}")
        return
    swap = replace_log(log, location_of(there, open_store), allow_gap=allow_gap)
    _show_swap(swap, output)


def _show_swap(swap: Swap, output: OutputFormat) -> None:
    show_facts({"log": swap.log, "done": swap.done, "backup": swap.backup}, output)
