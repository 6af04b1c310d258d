"""Stdout, stderr and the library's messages, made safe for whatever they are connected to."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from indextables.cli.report.words import visible

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


def advise(message: str) -> None:
    """Says something to the person on stderr, where it cannot get into a pipe."""
    click.echo("\n".join(map(visible, message.split("\n"))), err=True)


def prepare_streams() -> None:
    """A stream that is closed swallows what is written; one of few characters escapes the others."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence_stdout() -> None:
    """Nothing more can be written: not even what Python flushes when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


class _Messages(logging.Handler):
    """Messages of the library as advice; errors are left to whoever raises them."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            advise(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def messages_shown(verbose: int) -> Iterator[None]:
    """Warnings always; with -v what was planned and done, with -vv every reason."""
    logger, handler = logging.getLogger("indextables"), _Messages()
    before = logger.level
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
