"""Tables as Spark names them: locations, settings of the session, options of a read or a write."""

from __future__ import annotations

import difflib
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

import orjson
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from indextables.config import PREFIX, layered
from indextables.core.expr.datetimes import parse_timestamp, session_zone, to_instant
from indextables.engines.spark.jvm.gateway import application_of, jvm_tools
from indextables.engines.spark.place.hadoop import Place, place_of
from indextables.engines.spark.versions import seam
from indextables.errors import ConfigError
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Txn
from indextables.plan.merge_rule import RECORD_KEY, MergeRule

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

_PARSED_ALIKE: Final[Mapping[str, str]] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
}
"""The settings under which Spark and this library's own parser understand a text alike."""


def parsed_alike(session: SparkSession | ConnectSession, text: str) -> bool:
    """Returns True if this library's own parser reads a condition as this session does; also on Spark Connect."""
    if "''" in text and not seam.doubles_quotes:
        return False
    return all(
        str(session.conf.get(key, value)).lower() == value.lower()
        for key, value in _PARSED_ALIKE.items()
    )


def settings_of(
    session: SparkSession, options: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Returns every `spark.indextables.*` setting that goes before the table's own properties."""
    return layered(options, _session(session), _hadoop(session))


def _session(session: SparkSession) -> dict[str, str]:
    return _read(seam.settings(session, jvm_tools()))


def _hadoop(session: SparkSession) -> dict[str, str]:
    conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    found = conf.getPropsWithPrefix(PREFIX)
    return {f"{PREFIX}{name}": value for name, value in _read(found).items()}


def _read(java_map: JavaObject) -> dict[str, str]:
    # one call for the whole map, where py4j would make one for each entry
    found: dict[str, str] = orjson.loads(jvm_tools().json.writeValueAsString(java_map))
    return found


# Opening tables in a Spark session: their location, the store of their log, the version that is meant.

_KEPT: Final = 64
_logs: Final[OrderedDict[tuple[str, str], TransactionLog]] = OrderedDict()
_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table as a session sees it."""

    log: TransactionLog
    place: Place


def open_table(session: SparkSession, path: str) -> SparkTable:
    """Returns the table at a path or URI, not read yet; what one call has read, the next need not read again."""
    if not path or path.isspace():
        raise ConfigError("the path of a table is empty", hint="name the directory of the table")
    place = place_of(session, path)
    key = (application_of(session), place.root)
    with _lock:
        log = _logs.pop(key, None) or TransactionLog(place.store)
        _logs[key] = log
        while len(_logs) > _KEPT:
            _logs.popitem(last=False)
    return SparkTable(log, replace(place, store=log.store))


def snapshot_of(
    session: SparkSession | ConnectSession,
    table: SparkTable,
    version: int | str | None = None,
    timestamp: int | str | None = None,
) -> Snapshot:
    """Returns the version asked for by number or by time, or the newest if neither is given."""
    if version is not None and timestamp is not None:
        raise ConfigError("versionAsOf and timestampAsOf exclude each other", hint="give one of them")
    if version is not None:
        return table.log.snapshot(version=_version(version))
    if timestamp is not None:
        return table.log.snapshot(timestamp=_milliseconds(session, timestamp))
    return table.log.snapshot()


def _version(value: int | str) -> int:
    if not re.fullmatch(r"\s*\d{1,18}\s*", str(value), re.ASCII):
        raise ConfigError(f"versionAsOf cannot be {value!r}", hint="give a version number: 0, 1, 2, …")
    return int(value)


def _milliseconds(session: SparkSession | ConnectSession, value: object) -> int:
    """Returns a moment: text is read as CAST(… AS TIMESTAMP) in the session's zone, a number is microseconds."""
    if isinstance(value, int):
        return value // 1000
    found = parse_timestamp(str(value))
    zone = session_zone(str(session.conf.get("spark.sql.session.timeZone")))
    micros = None if found is None else to_instant(found.micros, found.zone or zone)
    if micros is None:
        raise ConfigError(
            f"timestampAsOf cannot be {value!r}",
            hint="give a date or a time such as 2024-01-31 or 2024-01-31 12:00:00",
        )
    return micros // 1000


# The names under which Spark's readers and writers know a table.

SHORT_NAME: Final = "indextables"

NAMES: Final = frozenset(
    {
        SHORT_NAME,
        "io.indextables.spark.core.indextables4sparktableprovider",
    }
)
"""Lower-cased: the short name, and the long name of the JVM implementation of this format."""


def is_ours(source: str) -> bool:
    """Returns True if a format name, in any case, means a table of this library."""
    return source.lower() in NAMES


# The options of one write, checked before anything runs.

OWN: Final = (
    "path",
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
    "recordKey",
    "mergeMode",
    "upsert",
)
"""Options of a write besides `spark.indextables.*`; all others go to Spark's Parquet writer."""

_SPARKS: Final = ("compression", "maxRecordsPerFile")
_FLAGS: Final = {"true": True, "false": False}
_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of one write, by what they are for."""

    path: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    overwrite_mode: Literal["static", "dynamic"] | None = None
    txn: Txn | None = None
    record_key: tuple[str, ...] = ()
    """The columns that identify a row of a new table."""
    merge_mode: str | None = None
    upsert: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """The `spark.indextables.*` options."""
    parquet: Mapping[str, str] = field(default_factory=dict)
    """The options of Spark's own writer: compression, maxRecordsPerFile, …"""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> WriteOptions:
        """Returns the options, in whatever case their names are written; ConfigError for impossible values."""
        by_name = {name.lower(): str(value) for name, value in given.items()}
        own = {name: by_name.get(name.lower()) for name in OWN}
        rest = {n: str(v) for n, v in given.items() if n.lower() not in {o.lower() for o in OWN}}
        parquet = {n: v for n, v in rest.items() if not n.lower().startswith(PREFIX)}
        for name in parquet:
            _refuse_misspelling(name)
        return cls(
            path=own["path"],
            merge_schema=flag("mergeSchema", own["mergeSchema"]),
            overwrite_schema=flag("overwriteSchema", own["overwriteSchema"]),
            replace_where=own["replaceWhere"],
            overwrite_mode=_mode(own["partitionOverwriteMode"]),
            txn=_txn(own["txnAppId"], own["txnVersion"]),
            record_key=key_names(own["recordKey"] or ""),
            merge_mode=own["mergeMode"],
            upsert=flag("upsert", own["upsert"]),
            settings={n: v for n, v in rest.items() if n.lower().startswith(PREFIX)},
            parquet=parquet,
        )

    def is_dynamic(self, session: SparkSession) -> bool:
        """Returns True if an overwrite replaces only the partitions that it has rows for."""
        if self.overwrite_mode is not None:
            return self.overwrite_mode == "dynamic"
        return str(session.conf.get(_OVERWRITE_MODE)).lower() == "dynamic"


def key_names(text: str) -> tuple[str, ...]:
    """Returns the columns of a key, from a JSON list or from names separated by commas.

    >>> key_names("id, day")
    ('id', 'day')
    """
    if text.startswith("["):
        return MergeRule.of({RECORD_KEY: text}).key
    return tuple(name.strip() for name in text.split(",") if name.strip())


def flag(name: str, text: str | None) -> bool:
    """Returns an option that is true or false; it is false if it is not given."""
    if text is not None and text.lower() not in _FLAGS:
        raise ConfigError(f"{name} cannot be {text!r}", hint="give true or false", key=name, value=text)
    return text is not None and _FLAGS[text.lower()]


def _mode(text: str | None) -> Literal["static", "dynamic"] | None:
    match text.lower() if text else None:
        case None:
            return None
        case "static":
            return "static"
        case "dynamic":
            return "dynamic"
        case _:
            raise ConfigError(
                f"partitionOverwriteMode cannot be {text!r}",
                hint="give static (replaces everything) or dynamic (replaces only partitions with new rows)",
                key="partitionOverwriteMode",
                value=text,
            )


def _txn(app_id: str | None, version: str | None) -> Txn | None:
    if app_id is None and version is None:
        return None
    if app_id is None or version is None or not re.fullmatch(r"\d{1,18}", version, re.ASCII):
        raise ConfigError(
            f"txnAppId is {app_id!r} and txnVersion is {version!r}: both must be given, the second as a number",
            hint="a batch with the same application and version is then written once, however often it runs",
        )
    return Txn(app_id, int(version))


def _refuse_misspelling(name: str) -> None:
    """Raises ConfigError for an option that looks misspelled, which Parquet's writer would silently ignore."""
    folded = {known.lower(): known for known in (*OWN, *_SPARKS)}
    if name.lower() in folded:
        return
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.85)
    if close:
        raise ConfigError(
            f"there is no option {name!r}", hint=f"did you mean {folded[close[0]]!r}?", key=name
        )
