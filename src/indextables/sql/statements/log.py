"""Statements that look at a log, keep it short, or rewrite splits."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa

from indextables.config import VACUUM_RETENTION
from indextables.core.types import parse_path
from indextables.errors import SqlSyntaxError
from indextables.ops.analyze import analyze
from indextables.ops.describe_log import LOG_COLUMNS, describe_log
from indextables.ops.optimize import Clustering, optimize
from indextables.ops.shared.commit import Condition
from indextables.ops.truncate_history import truncate_time_travel
from indextables.ops.vacuum import vacuum
from indextables.parquet.write.curves import Curve
from indextables.sql.conditions.parser import parse_predicate
from indextables.sql.statements.grammar import Arguments, Command, Context, executor_of

_CHECKPOINT: Final = pa.schema(
    [
        ("table_path", pa.string()),
        ("version", pa.int64()),
        ("num_files", pa.int64()),
        ("size_in_bytes", pa.int64()),
    ]
)
_ANALYZED: Final = pa.schema(
    [("table_path", pa.string()), ("version", pa.int64()), ("analyzed_splits", pa.int64())]
)
_OPTIMIZED: Final = pa.schema(
    [
        ("table_path", pa.string()),
        ("version", pa.int64()),
        ("removed_splits", pa.int64()),
        ("added_splits", pa.int64()),
    ]
)
_DELETED: Final = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("what", pa.string()), ("deleted", pa.bool_())]
)


def show_log(context: Context, arguments: Arguments) -> pa.Table:
    """Returns the actions of the log from the newest checkpoint on."""
    rows = list(describe_log(context.open_log(arguments["path"])))
    return pa.Table.from_pylist(rows, LOG_COLUMNS)


def show_whole_log(context: Context, arguments: Arguments) -> pa.Table:
    """Returns the actions of every file of the log, damaged or not."""
    rows = list(describe_log(context.open_log(arguments["path"]), include_all=True))
    return pa.Table.from_pylist(rows, LOG_COLUMNS)


def checkpoint(context: Context, arguments: Arguments) -> pa.Table:
    """Writes a checkpoint of the newest version."""
    written = context.open_log(arguments["path"]).checkpoint()
    row = {
        "table_path": arguments["path"],
        "version": written.version,
        "num_files": written.num_files,
        "size_in_bytes": written.size_in_bytes,
    }
    return pa.Table.from_pylist([row], _CHECKPOINT)


def purge(context: Context, arguments: Arguments) -> pa.Table:
    """Deletes data files that no kept version needs."""
    return _purged(context, arguments, apply=True)


def purge_at_once(context: Context, arguments: Arguments) -> pa.Table:
    """Deletes data files that no kept version needs, even within the table's own retention."""
    return _purged(context, arguments, apply=True, allow_short_retention=True)


def plan_purge(context: Context, arguments: Arguments) -> pa.Table:
    """Returns the data files that PURGE would delete."""
    return _purged(context, arguments, apply=False)


def _purged(
    context: Context, arguments: Arguments, *, apply: bool, allow_short_retention: bool = False
) -> pa.Table:
    options = _options(context)
    for unit in ("days", "hours"):
        if unit in arguments:
            options[VACUUM_RETENTION.key] = f"{arguments[unit]} {unit}"
    plan = vacuum(
        context.open_log(arguments["path"]),
        apply=apply,
        allow_short_retention=allow_short_retention,
        options=options,
    )
    found = (("unreferenced", plan.files), ("left by a crash", plan.temporaries))
    return _deleted(
        [(meta.key, meta.size, what) for what, metas in found for meta in metas], plan.applied
    )


def truncate(context: Context, arguments: Arguments) -> pa.Table:
    """Deletes the files of the log that only older versions need."""
    return _truncated(context, arguments, apply=True)


def plan_truncate(context: Context, arguments: Arguments) -> pa.Table:
    """Returns the files of the log that TRUNCATE would delete."""
    return _truncated(context, arguments, apply=False)


def _truncated(context: Context, arguments: Arguments, *, apply: bool) -> pa.Table:
    plan = truncate_time_travel(context.open_log(arguments["path"]), apply=apply)
    return _deleted([(file.key, file.size, file.kind) for file in plan.files], plan.applied)


def compute_statistics(context: Context, arguments: Arguments) -> pa.Table:
    """Adds the statistics that splits lack, for these columns or for those a write would collect."""
    log = context.open_log(arguments["path"])
    columns = json.loads(arguments["columns"]) if "columns" in arguments else None
    executor = executor_of(context, arguments["path"], log)
    done = analyze(log, executor, columns, options=_options(context))
    row = {
        "table_path": arguments["path"],
        "version": done.version,
        "analyzed_splits": done.metrics.get("numAnalyzedFiles", 0),
    }
    return pa.Table.from_pylist([row], _ANALYZED)


def rewrite_splits(context: Context, arguments: Arguments) -> pa.Table:
    """Packs small splits together, or sorts the rows along a curve through these columns."""
    log = context.open_log(arguments["path"])
    where = parse_predicate(arguments["where"]) if "where" in arguments else None
    done = optimize(
        log,
        executor_of(context, arguments["path"], log),
        Condition(where),
        clustering=_clustering(arguments),
        options=_options(context),
    )
    row = {
        "table_path": arguments["path"],
        "version": done.version,
        "removed_splits": done.metrics.get("numRemovedFiles", 0),
        "added_splits": done.metrics.get("numAddedFiles", 0),
    }
    return pa.Table.from_pylist([row], _OPTIMIZED)


def _clustering(arguments: Arguments) -> Clustering | None:
    curves: dict[str, Curve] = {"columns": "z", "hilbert": "hilbert"}
    found = [
        Clustering(tuple(map(top_level, json.loads(arguments[name]))), curve)
        for name, curve in curves.items()
        if name in arguments
    ]
    if len(found) > 1:
        raise SqlSyntaxError("ZORDER BY and HILBERT BY exclude each other", hint="choose one curve")
    return found[0] if found else None


def top_level(text: str) -> str:
    """Returns the column that a curve runs through, from its name as it is written."""
    path = parse_path(text)
    if len(path) > 1:
        raise SqlSyntaxError(
            f"{text} is a field of a column, but rows can be sorted by columns only",
            hint="a dot that belongs to the name goes in backticks: ZORDER BY (`a.b`)",
        )
    return path[0]


def _options(context: Context) -> dict[str, str]:
    return {setting.key: setting.value for setting in context.config.settings.values()}


def _deleted(files: list[tuple[str, int, str]], applied: bool) -> pa.Table:
    rows = [
        {"path": path, "size": size, "what": what, "deleted": applied} for path, size, what in files
    ]
    return pa.Table.from_pylist(rows, _DELETED)


_PURGE: Final = "PURGE INDEXTABLES <path:text> OLDER THAN"
_TRUNCATE: Final = "TRUNCATE INDEXTABLES TIME TRAVEL <path:text>"
_DESCRIBE: Final = "DESCRIBE|DESC INDEXTABLES TRANSACTION LOG <path:text>"
_CURVES: Final = "[ZORDER BY <columns>] [HILBERT BY <hilbert:columns>]"

COMMANDS: Final = (
    Command(_DESCRIBE, show_log),
    Command(f"{_DESCRIBE} INCLUDE ALL", show_whole_log),
    Command("CHECKPOINT INDEXTABLES <path:text>", checkpoint),
    *(
        Command(f"{_PURGE} <{unit}:count> {words}{suffix}", run)
        for unit, words in (("days", "DAYS|DAY"), ("hours", "HOURS|HOUR"))
        for suffix, run in (
            ("", purge),
            (" ALLOW SHORT RETENTION", purge_at_once),
            (" DRY RUN", plan_purge),
        )
    ),
    *(
        Command(f"VACUUM <path:table>{retained}{suffix}", run)
        for retained in ("", " RETAIN <hours:count> HOURS|HOUR")
        for suffix, run in (
            ("", purge),
            (" ALLOW SHORT RETENTION", purge_at_once),
            (" DRY RUN", plan_purge),
        )
    ),
    Command(_TRUNCATE, truncate),
    Command(f"{_TRUNCATE} DRY RUN", plan_truncate),
    *(
        Command(f"ANALYZE {table} COMPUTE STATISTICS [FOR COLUMNS <columns>]", compute_statistics)
        for table in ("INDEXTABLES <path:text>", "TABLE <path:table>")
    ),
    *(
        Command(f"OPTIMIZE {table} [WHERE <where:condition>] {_CURVES}", rewrite_splits)
        for table in ("INDEXTABLES <path:text>", "<path:table>")
    ),
)
