"""What the commands print: tables for people, JSON for programs, advice on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from indextables.errors import StorageError
from indextables.ops.result import CommitResult

OutputFormat: TypeAlias = Literal["table", "json"]
Row: TypeAlias = Mapping[str, Any]
Advance: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) while long work goes on."""
Command = TypeVar("Command", bound=Callable[..., Any])

WIDE = 200  # piped output has no width of its own; a cut path would be useless to the next program


def format_option(command: Command) -> Command:
    """Add --format table|json to a command."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="A table for people or JSON for programs.",
    )(command)


def settings_option(command: Command) -> Command:
    """Add --set KEY=VALUE, any number of times, to a command."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=lambda _context, _option, texts: _settings(texts),
        help="Any spark.indextables.… option.",
    )(command)


def _settings(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not equals:
            raise click.BadParameter(f"{key!r} has no value: write KEY=VALUE", param_hint="--set")
    return {key.strip(): value for key, _, value in pairs}


def show_rows(rows: Sequence[Row], columns: Sequence[str], output: OutputFormat) -> None:
    """Print rows on stdout; JSON holds every field, a table only the columns named."""
    if output == "json":
        show_json(list(rows))
        return
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        numeric = bool(rows) and all(_is_number(row.get(name)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in columns))
    _stdout().print(table)


def show_facts(facts: Row, output: OutputFormat) -> None:
    """Print one record, a line for each fact."""
    if output == "json":
        show_json(dict(facts))
        return
    table = RichTable(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, _cell(value))
    _stdout().print(table)


def show_commit(table: str, done: CommitResult, output: OutputFormat, nothing: str) -> None:
    """Print what a verb did; `nothing` says why it may have had nothing to do."""
    facts = {"table": table, "version": done.version, "committed": done.committed}
    show_facts({**facts, **done.metrics}, output)
    if not done.committed:
        advise(f"nothing was committed: {nothing}")
    if done.skipped:
        advise(f"{len(done.skipped)} left as they are: another writer was at work on them")


def show_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=_plain)
    click.echo(text.decode())


def advise(message: str) -> None:
    """Say something to the person on stderr, where it cannot get into a pipe."""
    click.echo(message, err=True)


@contextmanager
def progress(label: str) -> Iterator[Advance]:
    """A bar on stderr while the block runs, if stderr is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def write_page(target: str, page: str) -> None:
    """Write a page to a file, or to stdout for '-'; a file that is there already is replaced."""
    if target == "-":
        click.echo(page, nl=False)
        return
    try:
        Path(target).write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{target!r} cannot be written: {error.strerror}", key=target) from error
    advise(f"wrote {target}")


def _plain(value: Any) -> Any:
    """What JSON has no form for, as text; a whole decimal (an engine's wide integer) as a number."""
    match value:
        case bytes():
            return value.hex()
        case Decimal() if value.as_tuple().exponent == 0 and abs(value) < 2**63:
            return int(value)
        case _:
            return str(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict() | list() | tuple():
            return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _stdout() -> Console:
    return Console(
        width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False, emoji=False
    )
