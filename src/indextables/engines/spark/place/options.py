"""The options of one write, checked before anything runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pyspark.sql import SparkSession

from indextables.config import PREFIX
from indextables.errors import ConfigError
from indextables.log.wire.actions import Txn
from indextables.plan.merge_rule import RECORD_KEY, MergeRule

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
