"""The entry of the command: its subcommands, and errors as one message instead of a traceback."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import click

from indextables._version import __version__
from indextables.cli.streams import advise, messages_shown, prepare_streams, silence_stdout
from indextables.errors import IndexTablesError

PROBLEM_FOUND = 1
# Each command: its module, and what it does in a few words. Help needs only the words, so it appears at
# once; the module, and Arrow with it, is loaded when its command runs.
COMMANDS: Final = {
    "analyze": ("improve", "Add the statistics that splits lack."),
    "check": ("maintain", "Report every problem, with file and line."),
    "checkpoint": ("maintain", "Write a checkpoint of the newest version."),
    "compact": ("versions", "Write slices with delta files as new base files."),
    "convert": ("versions", "Make a table of a directory of Parquet files."),
    "demo": ("demo", "Run the main job on local Spark and measure it."),
    "describe": ("inspect", "Show a table's schema, size and statistics."),
    "explain": ("explain", "Explain why a condition reads the splits it reads."),
    "files": ("inspect", "List all files, or those a condition needs."),
    "history": ("inspect", "List the commits that are kept, newest first."),
    "log": ("inspect", "List the actions of the log, line by line."),
    "optimize": ("improve", "Pack small splits, or sort rows along a curve."),
    "plan": ("inspect", "Show what a condition would read and skip."),
    "repair": ("repair", "Rebuild a damaged transaction log elsewhere."),
    "report": ("explain", "Show a table at a glance, as text, JSON or an HTML page."),
    "restore": ("versions", "Bring back the table as it was at a version or time."),
    "rollback": ("versions", "Undo what one version did."),
    "sql": ("sql", "Run a statement of IndexTables, or a query through DuckDB."),
    "truncate-time-travel": ("improve", "Give up all versions but the newest."),
    "vacuum": ("maintain", "List or delete files that no version needs."),
}


class Group(click.Group):
    """A group of commands that reports errors as what happened and what to do; tracebacks are for bugs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Returns the names of the subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Returns a subcommand, whose module is loaded by this call."""
        if cmd_name not in COMMANDS:
            return None
        module, words = COMMANDS[cmd_name]
        loaded = import_module(f"indextables.cli.{module}")
        command: click.Command = getattr(loaded, cmd_name.replace("-", "_"))
        command.short_help = words
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the list of subcommands without loading any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in sorted(COMMANDS.items())])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command; printing never fails because a terminal lacks a character."""
        prepare_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the subcommand; an IndexTablesError becomes two lines on stderr and exit code 1."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except IndexTablesError as error:
            advise(f"error: {error}")
        except BrokenPipeError:
            # The program that reads this output (head, less) has ended, which is no problem of the table.
            silence_stdout()
            return ctx.exit(0)
        except OSError as error:
            silence_stdout()
            advise(f"error: {error.strerror or error}")
        return ctx.exit(PROBLEM_FOUND)


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="indextables")
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Say more on stderr: -v what was planned and done, -vv each reason too.",
)
@click.pass_context
def main(ctx: click.Context, verbose: int) -> None:
    r"""Inspect and maintain tables.

    Data goes to stdout and advice to stderr. Nothing is deleted without --apply. Exit codes: 0 fine,
    1 a problem was found, 2 wrong usage.

    \b
    Example:
      indextables describe ./articles
      indextables -vv plan ./articles "score > 90"
    """
    ctx.with_resource(messages_shown(verbose))
