"""What the commands print: tables for people, JSON for programs, advice on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from indextables.cli.streams import advise
from indextables.config import PREFIX
from indextables.display import visible
from indextables.errors import StorageError
from indextables.ops.shared.commit import CommitResult

OutputFormat: TypeAlias = Literal["table", "json"]
Row: TypeAlias = Mapping[str, object]
Advance: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) while long work goes on."""
Command = TypeVar("Command", bound=Callable[..., Any])

_PIPED = 1_000_000  # a pipe has no width, and a folded path would be useless to the next program
_NARROWEST = 8


def format_option(command: Command) -> Command:
    """Adds --format table|json to a command."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="A table for people or JSON for programs.",
    )(command)


def settings_option(command: Command) -> Command:
    """Adds --set KEY=VALUE, which may be repeated, to a command."""
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
        if not key.strip().lower().startswith(PREFIX):
            raise click.BadParameter(f"{key!r} is not an option: they begin with {PREFIX}")
    return {key.strip(): value for key, _, value in pairs}


def show_rows(rows: Sequence[Row], columns: Sequence[str], output: OutputFormat) -> None:
    """Prints rows on stdout. JSON holds every field, a table only the named columns."""
    if output == "json":
        show_json(list(rows))
        return
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    if _is_too_narrow(columns, cells):
        for row in cells:
            _print(_facts(zip(columns, row, strict=True)))
            click.echo()
        return
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        numeric = bool(rows) and all(_is_number(row.get(name)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    _print(table)


def show_facts(facts: Row, output: OutputFormat) -> None:
    """Prints one record, one line for each fact."""
    if output == "json":
        show_json(dict(facts))
        return
    _print(_facts((name, _cell(value)) for name, value in facts.items()))


def show_commit(table: str, done: CommitResult, output: OutputFormat, nothing: str) -> None:
    """Prints what a verb did; `nothing` says why there may have been nothing to do."""
    facts = {"table": table, "version": done.version, "committed": done.committed}
    show_facts({**facts, **done.metrics}, output)
    if not done.committed:
        advise(f"nothing was committed: {nothing}")
    if done.skipped:
        advise(f"{len(done.skipped)} left as they are: another writer changed them meanwhile")


def show_json(value: object) -> None:
    """Prints one JSON document on stdout."""
    click.echo(_json(value, indent=True))


def _json(value: object, *, indent: bool) -> str:
    options = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, option=options, default=_plain).decode()
    except TypeError:
        # orjson refuses half a character (of a name that is not UTF-8) and integers of more than 64 bits
        return json.dumps(value, indent=2 if indent else None, default=_plain)


@contextmanager
def progress(label: str) -> Iterator[Advance]:
    """Shows a bar on stderr while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def write_page(target: str, page: str) -> None:
    """Writes a page to a file, replacing it if it is there, or to stdout for '-'."""
    if target == "-":
        click.echo(page, nl=False)
        return
    try:
        Path(target).write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{target!r} cannot be written: {error.strerror}", key=target) from error
    advise(f"wrote {target}")


def _plain(value: object) -> object:
    """Returns a value that JSON has no form for as text, but a whole decimal (a wide integer) as a number."""
    match value:
        case bytes():
            return value.hex()
        case Decimal() if value.as_tuple().exponent == 0 and abs(value) < 2**63:
            return int(value)
        case _:
            return str(value)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict() | list() | tuple():
            return visible(_json(value, indent=False))
        case bytes():
            return value.hex()
        case _:
            return visible(str(value))


def _facts(facts: Iterable[tuple[str, str]]) -> RichTable:
    table = RichTable(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(name, text)
    return table


def _is_too_narrow(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> bool:
    """Returns True if the terminal cannot give each column what it needs, or a few characters.

    Rows are then printed one below the other.
    """
    widest = [max(map(len, (name, *column))) for name, *column in zip(columns, *cells, strict=True)]
    return sum(min(width, _NARROWEST) + 2 for width in widest) > _console().width


def _print(table: RichTable) -> None:
    console = _console()
    with console.capture() as capture:
        console.print(table)
    # rich pads the last column to its widest cell, which may be very wide
    lines = capture.get().splitlines()
    click.echo("\n".join(line.rstrip() for line in lines), color=True)


def _console() -> Console:
    is_terminal = sys.stdout.isatty()
    return Console(
        width=None if is_terminal else _PIPED,
        no_color="NO_COLOR" in os.environ,
        color_system="auto" if is_terminal and "NO_COLOR" not in os.environ else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
