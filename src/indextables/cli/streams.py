"""Makes stdout, stderr and the library's messages safe for whatever they are connected to."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from indextables.display import visible

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


def advise(message: str) -> None:
    """Prints a message for a person on stderr, where it cannot get into a pipe."""
    click.echo("\n".join(map(visible, message.split("\n"))), err=True)


def prepare_streams() -> None:
    """Keeps printing from failing: a closed stream swallows text, one of few characters escapes the others."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence_stdout() -> None:
    """Sends stdout nowhere, so that even what Python flushes when it ends cannot fail."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


class _Messages(logging.Handler):
    """Shows messages of the library as advice; errors are left to the code that raises them."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            advise(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def messages_shown(verbose: int) -> Iterator[None]:
    """Shows warnings while the block runs; with -v also what was planned and done, with -vv each reason."""
    logger, handler = logging.getLogger("indextables"), _Messages()
    before = logger.level
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
