"""The command's entry: its subcommands, and errors as one message instead of a traceback."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import click

from indextables._version import __version__
from indextables.cli.streams import advise, messages_shown, prepare_streams, silence_stdout
from indextables.errors import IndexTablesError

PROBLEM_FOUND = 1
# Each command: its module, and what it does in a few words. Help needs only the words, so that it is
# there at once; the module, and with it Arrow, is loaded when its command runs.
COMMANDS: Final = {
    "analyze": ("improve", "Build the statistics that splits lack."),
    "check": ("maintain", "Every problem, with file and line."),
    "checkpoint": ("maintain", "Write a checkpoint of the newest version."),
    "compact": ("versions", "Write slices with delta files as new base files."),
    "convert": ("versions", "Adopt a directory of Parquet files as a table."),
    "demo": ("demo", "The main job on local Spark, measured as it runs."),
    "describe": ("inspect", "What the table is, and how far its statistics reach."),
    "explain": ("explain", "Why a condition reads the splits it reads."),
    "files": ("inspect", "The files a condition needs, or all."),
    "history": ("inspect", "The commits that are kept, newest first."),
    "log": ("inspect", "The actions of the log, line by line."),
    "optimize": ("improve", "Pack small splits, or lay rows along a curve."),
    "plan": ("inspect", "What a condition would read and skip."),
    "repair": ("repair", "Rebuild a damaged transaction log elsewhere."),
    "report": ("explain", "One table at a glance, as text, JSON or an HTML page."),
    "restore": ("versions", "Make the table what it was at a version or time."),
    "rollback": ("versions", "Undo what one version did."),
    "sql": ("sql", "Run a statement of IndexTables, or a query through DuckDB."),
    "truncate-time-travel": ("improve", "Give up old versions; keep the newest."),
    "vacuum": ("maintain", "List or delete files nobody needs."),
}


class Group(click.Group):
    """Prints what happened and what to do; a traceback is for bugs, not for wrong input."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Returns the names of the subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Returns a subcommand; its module is loaded now."""
        if cmd_name not in COMMANDS:
            return None
        module, words = COMMANDS[cmd_name]
        loaded = import_module(f"indextables.cli.{module}")
        command: click.Command = getattr(loaded, cmd_name.replace("-", "_"))
        command.short_help = words
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the list of subcommands, of which none is loaded for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in sorted(COMMANDS.items())])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command; whatever the terminal is, printing never fails for a character."""
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
            # The reader of our pipe (head, less) went away: not a problem of the table's.
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
    help="Say more on stderr: -v what was planned and done, -vv every reason.",
)
@click.pass_context
def main(ctx: click.Context, verbose: int) -> None:
    """Look into tables and look after them.

    Data goes to stdout and advice to stderr. Nothing is deleted without --apply. Exit codes: 0 fine,
    1 a problem was found, 2 wrong usage.

    \b
    Example:
      indextables describe ./articles
      indextables -vv plan ./articles "score > 90"
    """
    ctx.with_resource(messages_shown(verbose))
