"""`spark.read.format("indextables")`: the options of a read, and the DataFrame it returns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from indextables.config import PREFIX, Config
from indextables.engines.spark.place.tables_and_options import flag, open_table, snapshot_of
from indextables.engines.spark.scan.relation import table_frame
from indextables.errors import ConfigError, SchemaError
from indextables.log.state.snapshot import Snapshot

PARQUET: Final = ("datetimeRebaseMode", "int96RebaseMode")
"""Options of Spark's Parquet reader that a table accepts, with a single value each."""
_OURS: Final = ("path", "versionAsOf", "timestampAsOf", "where", "readOptimized")
_KNOWN: Final = {name.lower(): name for name in (*_OURS, *PARQUET)} | {
    "read_optimized": "readOptimized"  # the spelling of the Python functions
}


def read_table(
    session: SparkSession,
    path: str,
    options: Mapping[str, object] | None = None,
    pinned: Snapshot | None = None,
) -> DataFrame:
    """Returns the table at this path, pinned to its newest version or to the one that the options name."""
    given = checked_options(options or {})
    table = open_table(session, path)
    snapshot = pinned
    if snapshot is None or "versionAsOf" in given or "timestampAsOf" in given:
        snapshot = snapshot_of(session, table, given.get("versionAsOf"), given.get("timestampAsOf"))
    parquet: dict[str, str] = {name: given[name] for name in PARQUET if name in given}
    read_optimized = flag("readOptimized", given.get("readOptimized"))
    frame = table_frame(session, table.place, snapshot, parquet, read_optimized=read_optimized)
    return frame.where(given["where"]) if "where" in given else frame


def one_path(path: str | Sequence[str] | None, options: Mapping[str, str]) -> str:
    """Returns the single path of a read, from the argument or from the option."""
    given = {key.lower(): value for key, value in options.items()}
    paths = [path] if isinstance(path, str) else list(path or ())
    if not paths and "path" in given:
        paths = [given["path"]]
    if len(paths) != 1:
        raise ConfigError(
            f"a table has one path, not {len(paths)}",
            hint='spark.read.format("indextables").load("/path/of/the/table"); union two DataFrames '
            "to read two tables",
        )
    return str(paths[0])


def refuse_schema(*, is_given: bool) -> None:
    """Raises SchemaError if a read is given a schema, which would hide what does not fit it."""
    if is_given:
        raise SchemaError(
            "a table has its own schema; it cannot be read with another one",
            hint="leave .schema(…) out and select or cast the columns of the DataFrame",
        )


def _refuse_other_calendar(name: str, value: object) -> None:
    """Raises ConfigError for another calendar: bounds are of the values as stored, so rows would be skipped."""
    if name in PARQUET and str(value).upper() != "CORRECTED":
        raise ConfigError(
            f"the dates and times of a table are read as they are stored, not with {name}={value!r}",
            hint="leave the option out; files that Spark marked as written in another calendar are read in it",
            key=name,
        )


def checked_options(options: Mapping[str, object]) -> dict[str, Any]:
    """Returns the options by their proper names; ConfigError for one that is unknown."""
    Config.of(session=options).validate()
    found: dict[str, Any] = {}
    for key, value in options.items():
        name = _KNOWN.get(key.lower())
        if name is not None:
            found[name] = value
            _refuse_other_calendar(name, value)
        elif not key.lower().startswith(PREFIX):
            close = difflib.get_close_matches(key.lower(), _KNOWN, n=1)
            hint = f"did you mean {_KNOWN[close[0]]!r}?" if close else f"known are {', '.join(_OURS)}"
            raise ConfigError(f"reading a table has no option {key!r}", hint=hint, key=key)
    return found
