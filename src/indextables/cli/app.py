"""The command's entry: its subcommands, and errors as one message instead of a traceback."""

from __future__ import annotations

import sys
from typing import Any

import click

from indextables._version import __version__
from indextables.cli.demo import demo
from indextables.cli.explain import explain, report
from indextables.cli.improve import analyze, optimize, truncate_time_travel
from indextables.cli.inspect import describe, files, history, log, plan
from indextables.cli.maintain import check, checkpoint, vacuum
from indextables.cli.output import advise
from indextables.cli.repair import repair
from indextables.cli.sql import sql
from indextables.cli.streams import messages_shown, prepare_streams, silence_stdout
from indextables.cli.versions import compact, convert, restore, rollback
from indextables.errors import IndexTablesError

PROBLEM_FOUND = 1


class Group(click.Group):
    """Prints what happened and what to do; a traceback is for bugs, not for wrong input."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run from the shell; whatever the terminal is, printing never fails for a character."""
        prepare_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; any error of ours becomes two lines on stderr and exit code 1."""
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


LOOK = (describe, history, files, log, plan, explain, report, check)
CHANGE = (analyze, optimize, compact, restore, rollback, checkpoint)
CLEAN = (vacuum, truncate_time_travel, repair)

for command in (demo, sql, convert, *LOOK, *CHANGE, *CLEAN):
    main.add_command(command)
