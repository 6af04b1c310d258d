"""What the commands print: tables for people, JSON for programs, advice on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

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


def show_rows(rows: Sequence[Row], columns: Sequence[str], output: OutputFormat) -> None:
    """Print rows on stdout; JSON holds every field, a table only the columns named."""
    if output == "json":
        show_json(list(rows))
        return
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        numeric = bool(rows) and all(isinstance(row.get(name), int | float | None) for row in rows)
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


def show_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str)
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


def human_bytes(count: int) -> str:
    """A size a person can read.

    >>> human_bytes(999), human_bytes(245_000), human_bytes(12_400_000)
    ('999 B', '245.0 kB', '12.4 MB')
    """
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict() | list() | tuple():
            return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        case _:
            return str(value)


def _stdout() -> Console:
    return Console(
        width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False, emoji=False
    )
