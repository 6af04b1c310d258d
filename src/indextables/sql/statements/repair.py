"""REPAIR INDEXFILES TRANSACTION LOG, which returns one row with seven columns."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from indextables.ops.repair import RepairResult, repair
from indextables.sql.statements.grammar import Arguments, Command, Context

REPAIR_COLUMNS: Final = pa.schema(
    [
        ("source_path", pa.string()),
        ("target_path", pa.string()),
        ("source_version", pa.int64()),
        ("total_splits", pa.int32()),
        ("valid_splits", pa.int32()),
        ("missing_splits", pa.int32()),
        ("status", pa.string()),
    ]
)


def repair_log(context: Context, arguments: Arguments) -> pa.Table:
    """Repairs a log and returns the result, even of a failure; every option is a setting of the session."""
    result = repair(
        arguments["source"],
        arguments["target"],
        config=context.config,
        opener=lambda uri: context.open_log(uri).store,
    )
    return repair_table(result)


def repair_table(result: RepairResult) -> pa.Table:
    """Returns the result as a table of one row."""
    values = zip(REPAIR_COLUMNS.names, result.row(), strict=True)
    return pa.Table.from_pylist([dict(values)], REPAIR_COLUMNS)


COMMANDS: Final = (
    Command(
        "REPAIR INDEXFILES TRANSACTION LOG <source:text> AT LOCATION <target:text>",
        repair_log,
    ),
)
