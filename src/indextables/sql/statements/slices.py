"""Statements that compact slices and that go back to older versions: COMPACT, RESTORE, ROLLBACK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from indextables.log.timestamps import parse_moment
from indextables.ops.compact import Threshold, compact
from indextables.ops.restore import restore
from indextables.ops.rollback import rollback
from indextables.ops.shared.commit import CommitResult, Condition
from indextables.sql.conditions.parser import parse_predicate
from indextables.sql.statements.grammar import Arguments, Command, Context, executor_of

_COMPACTED: Final = pa.schema(
    [
        ("table_path", pa.string()),
        ("version", pa.int64()),
        ("compacted_slices", pa.int64()),
        ("removed_files", pa.int64()),
        ("added_files", pa.int64()),
    ]
)
_RESTORED: Final = pa.schema(
    [
        ("table_path", pa.string()),
        ("version", pa.int64()),
        ("removed_files", pa.int64()),
        ("restored_files", pa.int64()),
    ]
)


def compact_slices(context: Context, arguments: Arguments) -> pa.Table:
    """Writes slices with enough delta files as new base files."""
    log = context.open_log(arguments["path"])
    where = parse_predicate(arguments["where"]) if "where" in arguments else None
    done = compact(
        log,
        executor_of(context, arguments["path"], log),
        Condition(where),
        threshold=Threshold(int(arguments.get("logs", 1)), float(arguments.get("percent", 0))),
        options={setting.key: setting.value for setting in context.config.settings.values()},
    )
    names = {"compacted_slices": "numCompactedSlices", "added_files": "numAddedFiles"}
    return _row(arguments, done, _COMPACTED, names)


def restore_version(context: Context, arguments: Arguments) -> pa.Table:
    """Brings back the table as it was at a version."""
    log = context.open_log(arguments["path"])
    done = restore(log, log.snapshot(int(arguments["version"])))
    return _row(arguments, done, _RESTORED, {"restored_files": "numRestoredFiles"})


def restore_moment(context: Context, arguments: Arguments) -> pa.Table:
    """Brings back the table as it was at a moment, in UTC unless the text names a zone."""
    log = context.open_log(arguments["path"])
    done = restore(log, log.snapshot(timestamp=parse_moment(arguments["moment"])))
    return _row(arguments, done, _RESTORED, {"restored_files": "numRestoredFiles"})


def roll_back(context: Context, arguments: Arguments) -> pa.Table:
    """Undoes what one version did."""
    done = rollback(context.open_log(arguments["path"]), int(arguments["version"]))
    return _row(arguments, done, _RESTORED, {"restored_files": "numRestoredFiles"})


def _row(
    arguments: Arguments, done: CommitResult, columns: pa.Schema, metrics: dict[str, str]
) -> pa.Table:
    """Returns the result as a table of one row, with zeros if nothing was committed."""
    row = {
        "table_path": arguments["path"],
        "version": done.version,
        **{
            column: done.metrics.get(metric, 0) if done.committed else 0
            for column, metric in ({"removed_files": "numRemovedFiles"} | metrics).items()
        },
    }
    return pa.Table.from_pylist([row], columns)


_VERBS: Final[tuple[tuple[str, str, Callable[[Context, Arguments], pa.Table]], ...]] = (
    (
        "COMPACT",
        "[WHERE <where:condition>] [MIN LOGS <logs:count>] [MIN PERCENT <percent:count>]",
        compact_slices,
    ),
    ("RESTORE", "TO VERSION [AS OF] <version:count>", restore_version),
    ("RESTORE", "TO TIMESTAMP [AS OF] <moment:text>", restore_moment),
    ("ROLLBACK", "VERSION <version:count>", roll_back),
)


def _commands() -> Iterator[Command]:
    """Yields each statement twice: for a path in quotes, and for a table by its path."""
    for verb, rest, run in _VERBS:
        yield Command(f"{verb} INDEXTABLES <path:text> {rest}", run)
        yield Command(f"{verb} [TABLE] <path:table> {rest}", run)


COMMANDS: Final = tuple(_commands())
