"""The `indextables` command: data on stdout, advice on stderr, nothing destructive without --apply."""

from indextables.cli.app import main

__all__ = ["main"]
