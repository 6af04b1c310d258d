"""Makes docs/cli.md from the commands' own help texts."""

from __future__ import annotations

import click

from indextables.cli.app import main

WIDTH = 100
INTRODUCTION = """# The `indextables` command

Data goes to stdout and advice to stderr; nothing is deleted without `--apply`. Exit codes: 0 fine, 1 a
problem was found, 2 wrong usage. This page is made from the help texts:
`python scripts/pages.py`.
"""


def help_page() -> str:
    """Returns the help of the command and of each subcommand, as one Markdown page."""
    top = main.make_context("indextables", [], resilient_parsing=True, terminal_width=WIDTH)
    parts = [INTRODUCTION, _block(main, top)]
    for name in main.list_commands(top):
        command = main.get_command(top, name)
        assert command is not None
        context = command.make_context(
            name, [], parent=top, resilient_parsing=True, terminal_width=WIDTH
        )
        parts += [f"## {name}\n", _block(command, context)]
    return "\n".join(parts)


def _block(command: click.Command, context: click.Context) -> str:
    return f"```text\n{command.get_help(context)}\n```\n"
