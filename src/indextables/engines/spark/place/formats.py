"""The names under which Spark's readers and writers know a table."""

from __future__ import annotations

from typing import Final

SHORT_NAME: Final = "indextables"

NAMES: Final = frozenset(
    {
        SHORT_NAME,
        "io.indextables.spark.core.indextables4sparktableprovider",
    }
)
"""Lower-cased: the short name, and the long name of the JVM implementation of this format."""


def is_ours(source: str) -> bool:
    """Whether a format name, in any case, means a table of ours."""
    return source.lower() in NAMES
