"""`indextables sql`: the statements of IndexTables, and queries through DuckDB, without a JVM."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
import pyarrow as pa

from indextables.cli.output import OutputFormat, format_option, progress, settings_option, show_rows
from indextables.cli.streams import advise
from indextables.config import Config
from indextables.display import counted
from indextables.errors import MissingDependencyError, SqlSyntaxError
from indextables.log.transaction_log import TransactionLog
from indextables.sql.commands import COMMANDS, find, may_be_ours
from indextables.sql.statements.repair import REPAIR_COLUMNS
from indextables.storage.open import open_store

_SHOWN_ROWS = 1000


@dataclass(frozen=True)
class _Context:
    """What the statements of IndexTables need, from the command line."""

    config: Config

    def open_log(self, location: str) -> TransactionLog:
        """Returns the log of a table, not read yet."""
        return TransactionLog(open_store(location), self.config)


def _show_usage(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        for command in COMMANDS:
            click.echo(command.usage)
        ctx.exit(0)


@click.command()
@click.argument("statement")
@settings_option
@click.option(
    "--limit",
    type=click.IntRange(1, 2**31),
    metavar="N",
    help=f"Print at most this many rows [{_SHOWN_ROWS:,}; all as JSON].",
)
@click.option(
    "--statements",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_usage,
    help="Show how the statements of IndexTables are written, and exit.",
)
@format_option
@click.pass_context
def sql(
    ctx: click.Context,
    statement: str,
    settings: dict[str, str],
    limit: int | None,
    output: OutputFormat,
) -> None:
    r"""Run one statement: DESCRIBE, CHECKPOINT, PURGE, ANALYZE, OPTIMIZE, REPAIR … or a query.

    The statements of IndexTables are written as in Spark. Anything else is DuckDB's SQL with the table
    written as indextables.`path`, and needs the extra [duckdb]. STATEMENT "-" is read from stdin.

    \b
    Example:
      indextables sql "DESCRIBE INDEXTABLES TRANSACTION LOG './articles' INCLUDE ALL"
      indextables sql "PURGE INDEXTABLES './articles' OLDER THAN 30 DAYS DRY RUN"
      indextables sql 'SELECT author, count(*) FROM indextables."./articles" WHERE score > 90 GROUP BY 1'
    """
    rows = _run(sys.stdin.read() if statement == "-" else statement, settings)
    shown = rows.num_rows if limit is None and output == "json" else limit or _SHOWN_ROWS
    show_rows(rows.slice(0, shown).to_pylist(), rows.column_names, output)
    left_out = rows.num_rows - min(shown, rows.num_rows)
    advise(counted(rows.num_rows, "row") + (f", {left_out:,} not shown (--limit)" if left_out else ""))
    ctx.exit(1 if _failed(rows) else 0)


def _run(text: str, settings: dict[str, str]) -> pa.Table:
    found = find(text) if may_be_ours(text) else None
    with progress("working"):
        if found is None:
            return _query(text)
        command, arguments = found
        result: pa.Table = command.run(_Context(Config.of(session=settings)), arguments)
        return result


def _failed(rows: pa.Table) -> bool:
    """Returns True for the row that REPAIR answers with where it failed."""
    is_repair = rows.column_names == REPAIR_COLUMNS.names
    return is_repair and any(status.startswith("ERROR") for status in rows.column("status").to_pylist())


def _query(text: str) -> pa.Table:
    if not text.strip():
        raise SqlSyntaxError("the statement is empty", hint="indextables sql --help shows examples")
    try:
        query: Any = import_module("indextables.engines.duckdb.query").query
    except MissingDependencyError as error:
        raise MissingDependencyError(
            "this is not a statement of IndexTables, and queries need DuckDB, which is not installed",
            hint=f"{error.hint}; the statements of IndexTables: {', '.join(_first_words())}",
        ) from error
    return query(text)


def _first_words() -> list[str]:
    return list(dict.fromkeys(command.usage.split()[0].split("|")[0] for command in COMMANDS))
