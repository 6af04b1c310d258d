"""`spark.read.format("indextables")`: the options of a read, and the DataFrame it returns."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from indextables.config import PREFIX, Config
from indextables.engines.spark.jvm.gateway import JvmTools, jvm_tools
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
    parquet: dict[str, str] = {name: given[name] for name in PARQUET if name in given}
    read_optimized = flag("readOptimized", given.get("readOptimized"))
    if "versionAsOf" in given or "timestampAsOf" in given:
        table = open_table(session, path)
        pinned = snapshot_of(session, table, given.get("versionAsOf"), given.get("timestampAsOf"))
    if pinned is None:
        frame = NewestRead(path, parquet, read_optimized).frame(session)
    else:
        place = open_table(session, path).place
        frame = table_frame(session, place, pinned, parquet, read_optimized=read_optimized)
    return frame.where(given["where"]) if "where" in given else frame


@dataclass(frozen=True, slots=True)
class NewestRead:
    """A read of the newest version of a table, which is marked in the plan of its DataFrame."""

    path: str
    parquet: Mapping[str, str] = field(default_factory=dict)
    read_optimized: bool = False
    version: str = ""
    """The version that was read, so that two texts are equal only for the same rows."""

    def frame(self, session: SparkSession, pinned: Snapshot | None = None) -> DataFrame:
        """Returns the rows of the newest version, or of the one that is given as such."""
        table = open_table(session, self.path)
        snapshot = pinned or table.log.snapshot()
        frame = table_frame(
            session, table.place, snapshot, self.parquet, read_optimized=self.read_optimized
        )
        marked = asdict(self) | {"version": version_text(snapshot)}
        tools = jvm_tools()
        frame._jdf.logicalPlan().setTagValue(_tag(tools), json.dumps(marked))  # noqa: SLF001
        return frame

    @classmethod
    def of(cls, node: JavaObject) -> NewestRead | None:
        """Returns the read that a node of a plan is the top of; None for other nodes."""
        text = node.getTagValue(_tag(jvm_tools()))
        return cls(**json.loads(text.get())) if text.isDefined() else None


def version_text(snapshot: Snapshot) -> str:
    """Returns a text that tells this version from every other of the table."""
    return f"{snapshot.metadata.id} {snapshot.version} {snapshot.commit_id}"


_tags: Final[dict[int, tuple[JvmTools, JavaObject]]] = {}


def _tag(tools: JvmTools) -> JavaObject:
    """Returns Catalyst's name for the mark: nodes keep it while a plan is analysed."""
    found = _tags.get(id(tools))
    if found is None or found[0] is not tools:
        _tags.clear()
        name = tools.lookup("org.apache.spark.sql.catalyst.trees.TreeNodeTag")("indextables.newest")
        found = _tags[id(tools)] = (tools, name)
    return found[1]


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
