"""Every option: its key, type, default and meaning; and which of several settings wins.

A write option wins over the Spark session, that over the Hadoop configuration, that over the
table's own properties. Keys are compared without case, because Spark lower-cases some of them.
"""

from __future__ import annotations

import datetime as dt
import difflib
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from indextables.errors import ConfigError

T = TypeVar("T")

PREFIX: Final = "spark.indextables."
_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """What one key means; `parse` raises ValueError for a text that is not a `kind`."""

    key: str
    kind: str
    default: T
    doc: str
    parse: Callable[[str], T]
    shown: str
    """The default as a user would write it, for the documentation."""


_BOOLEANS: Final = {"true": True, "false": False}
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_DURATION: Final = re.compile(r"(?:interval\s+)?(\d+)\s*([a-z]+)", re.IGNORECASE | re.ASCII)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _integer(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or int(text) < low:
            raise ValueError(text)
        return int(text)

    return parse


def _choice(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(text)
        return text.lower()

    return parse


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise ValueError(text)
    return int(found[1]) * _BYTES[found[2].lower()]


def _duration(text: str) -> dt.timedelta:
    found = _DURATION.fullmatch(text)
    unit = found[2].lower() if found else ""
    names = [n for n in _SECONDS if unit in {n[0], n, f"{n}s"}]
    if found is None or not names:
        raise ValueError(text)
    try:
        return dt.timedelta(seconds=int(found[1]) * _SECONDS[names[0]])
    except OverflowError as e:
        raise ValueError(text) from e


def _names(text: str) -> tuple[str, ...]:
    """Returns comma-separated column names; a comma inside backticks belongs to the name."""
    names = re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", text)
    return tuple(name.strip() for name in names if name.strip())


def _option(name: str, kind: str, parse: Callable[[str], T], default: str, doc: str) -> Option[T]:
    return Option(PREFIX + name, kind, parse(default), doc, parse, default)


_FLAG: Final = "true or false"
_COLUMNS: Final = "column names, separated by commas"
_SPAN: Final = "a duration such as 7 days or 12 hours"

TRUNCATION_ENABLED: Final = _option(
    "stats.truncation.enabled", _FLAG, _boolean, "true",
    "Keep long minimum and maximum values out of the log.",
)  # fmt: skip
TRUNCATION_MAX_LENGTH: Final = _option(
    "stats.truncation.maxLength", "an integer ≥ 0", _integer(0), "1024",
    "Longest text that the log keeps whole, in characters (binary values: in bytes).",
)  # fmt: skip
TRUNCATION_STRATEGY: Final = _option(
    "stats.truncation.strategy", "drop, truncate or bound", str.lower, "drop",
    "What becomes of a longer text: no statistics, a marked prefix, or a short bound that still skips.",
)  # fmt: skip
NUM_INDEXED_COLS: Final = _option(
    "dataSkippingNumIndexedCols", "an integer ≥ -1", _integer(-1), "32",
    "Collect statistics for the first N columns, counting nested fields; -1: all, 0: none.",
)  # fmt: skip
STATS_COLUMNS: Final = _option(
    "dataSkippingStatsColumns", _COLUMNS, _names, "",
    "Collect statistics for exactly these columns; overrides dataSkippingNumIndexedCols.",
)  # fmt: skip
FAST_FIELDS: Final = _option(
    "indexing.fastfields", _COLUMNS, _names, "",
    "Columns that always keep statistics, whatever the two options above say.",
)  # fmt: skip
TARGET_FILE_SIZE: Final = _option(
    "write.targetFileSize", "a size such as 128MB", _size, "128MB",
    "Size at which a write begins a new split.",
)  # fmt: skip
READ_KEEP_ERRORS: Final = _option(
    "read.keepErrors", _FLAG, _boolean, "true",
    "Open a split in which a condition is TRUE for no row but may raise an error, as plain Parquet would raise it; "
    "false: skip it.",
)  # fmt: skip
CHANGE_DRIVER_ROWS: Final = _option(
    "change.driverRows", "an integer ≥ 0", _integer(0), "0",
    "Spark: a write by key of at most this many rows is done in the driver's Python; 0: none is.",
)  # fmt: skip
COMMIT_MAX_ATTEMPTS: Final = _option(
    "commit.maxAttempts", "an integer ≥ 1", _integer(1), "100",
    "How many times a commit is tried when other writers take its version.",
)  # fmt: skip
CHECKPOINT_INTERVAL: Final = _option(
    "checkpoint.interval", "an integer ≥ 0", _integer(0), "10",
    "Write a checkpoint every N commits; 0: only when asked to.",
)  # fmt: skip
CHECKPOINT_FORMAT: Final = _option(
    "checkpoint.format", "auto, json or parquet", _choice("auto", "json", "parquet"), "auto",
    "How a checkpoint is stored; auto: JSON for small tables, Parquet for large ones.",
)  # fmt: skip
LOG_RETENTION: Final = _option(
    "log.retention", _SPAN, _duration, "30 days",
    "How long commits are kept for time travel.",
)  # fmt: skip
VACUUM_RETENTION: Final = _option(
    "vacuum.retention", _SPAN, _duration, "7 days",
    "How long a data file is kept after it was removed from the table.",
)  # fmt: skip
REPAIR_VALIDATE_SPLITS: Final = _option(
    "repair.validateSplits", _FLAG, _boolean, "true",
    "Check that every split exists and has its recorded size.",
)  # fmt: skip
REPAIR_PRESERVE_STATS: Final = _option(
    "repair.preserveStats", _FLAG, _boolean, "true",
    "Keep the statistics of each split.",
)  # fmt: skip
REPAIR_PARALLELISM: Final = _option(
    "repair.parallelism", "an integer ≥ 1", _integer(1), "4",
    "How many splits are checked at the same time.",
)  # fmt: skip
REPAIR_FAIL_ON_MISSING: Final = _option(
    "repair.failOnMissing", _FLAG, _boolean, "false",
    "Fail when a split is missing instead of leaving it out.",
)  # fmt: skip

OPTIONS: Final[tuple[Option[Any], ...]] = (
    TRUNCATION_ENABLED,
    TRUNCATION_MAX_LENGTH,
    TRUNCATION_STRATEGY,
    NUM_INDEXED_COLS,
    STATS_COLUMNS,
    FAST_FIELDS,
    TARGET_FILE_SIZE,
    READ_KEEP_ERRORS,
    CHANGE_DRIVER_ROWS,
    COMMIT_MAX_ATTEMPTS,
    CHECKPOINT_INTERVAL,
    CHECKPOINT_FORMAT,
    LOG_RETENTION,
    VACUUM_RETENTION,
    REPAIR_VALIDATE_SPLITS,
    REPAIR_PRESERVE_STATS,
    REPAIR_PARALLELISM,
    REPAIR_FAIL_ON_MISSING,
)
_BY_KEY: Final = {option.key.lower(): option for option in OPTIONS}

# spark.indextables.stats.truncation.column.<name>.maxLength, where the name may have dots itself.
_COLUMN_KEY: Final = re.compile(
    re.escape(PREFIX) + r"stats\.truncation\.column\.(.+)\.(maxlength|strategy)",
    re.IGNORECASE | re.DOTALL,
)
_COLUMN_OPTIONS: Final[Mapping[str, Option[Any]]] = {
    "maxlength": TRUNCATION_MAX_LENGTH,
    "strategy": TRUNCATION_STRATEGY,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that somebody set, under the key as they spelled it."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ColumnSetting:
    """An override of a truncation option for one column, named as the user named it."""

    key: str
    column: str
    option: Option[Any]
    value: Any


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force, by lower-cased key."""

    settings: Mapping[str, Setting]

    @classmethod
    def of(
        cls,
        *,
        write: Mapping[str, object] | None = None,
        session: Mapping[str, object] | None = None,
        hadoop: Mapping[str, object] | None = None,
        table: Mapping[str, object] | None = None,
    ) -> Config:
        """Returns the settings in force: the value of a key comes from the first of these layers that has it."""
        given = layered(write, session, hadoop, table)
        config = cls({key.lower(): Setting(key, _text(value)) for key, value in given.items()})
        for key in config.unknown_keys():
            _logger.warning("Unknown option '%s' is ignored%s", key, _suggestion(key))
        return config

    def over(self, weaker: Config | Mapping[str, object]) -> Config:
        """Returns these settings, completed by those of a weaker layer such as a table's properties."""
        below = weaker if isinstance(weaker, Config) else Config.of(table=weaker)
        return Config({**below.settings, **self.settings})

    def get(self, option: Option[T]) -> T:
        """Returns the value in force, or the default.

        Raises ConfigError if the option cannot have the value that was set.
        """
        setting = self.settings.get(option.key.lower())
        return option.default if setting is None else _parsed(option, setting)

    def column_settings(self) -> Iterator[ColumnSetting]:
        """Yields the per-column overrides of truncation options."""
        for setting in self.settings.values():
            if found := _COLUMN_KEY.fullmatch(setting.key):
                option = _COLUMN_OPTIONS[found[2].lower()]
                yield ColumnSetting(setting.key, found[1], option, _parsed(option, setting))

    def unknown_keys(self) -> list[str]:
        """Returns the keys that begin like an option and are none, as they were spelled."""
        return [
            setting.key
            for key, setting in self.settings.items()
            if key not in _BY_KEY and not _COLUMN_KEY.fullmatch(key)
        ]

    def validate(self) -> Config:
        """Returns these settings; raises ConfigError if an option cannot have the value that was set."""
        for option in OPTIONS:
            self.get(option)
        list(self.column_settings())
        return self


def layered(*layers: Mapping[str, object] | None) -> dict[str, object]:
    """Returns the settings of this library in these layers, which are given strongest first.

    This is the one function that decides which layer wins. Keys are compared without regard to case,
    because Spark lower-cases some of them, and are kept as the strongest layer spells them. A value of
    None sets nothing, and the keys of other software are left out.
    """
    found: dict[str, tuple[str, object]] = {}
    for layer in reversed(layers):
        for key, value in (layer or {}).items():
            if key.lower().startswith(PREFIX) and value is not None:
                found[key.lower()] = (key, value)
    return dict(found.values())


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).strip()


def _parsed(option: Option[T], setting: Setting) -> T:
    try:
        return option.parse(setting.value)
    except ValueError as e:
        raise ConfigError(
            f"{setting.key} cannot be {setting.value!r}",
            hint=f"it is {option.kind}; the default is {option.shown or 'none'}",
            key=setting.key,
            value=setting.value,
        ) from e


def _suggestion(key: str) -> str:
    close = difflib.get_close_matches(key.lower(), _BY_KEY, n=1, cutoff=0.8)
    return f"; did you mean '{_BY_KEY[close[0]].key}'?" if close else ""


def options_markdown() -> str:
    """Returns the table of all options for the documentation, as Markdown."""
    rows = [("Option", "Value", "Default", "Meaning"), ("---",) * 4]
    rows += [(f"`{o.key}`", o.kind, f"`{o.shown}`" if o.shown else "none", o.doc) for o in OPTIONS]
    for option in _COLUMN_OPTIONS.values():
        name = option.key.rpartition(".")[2]
        key = f"`{PREFIX}stats.truncation.column.<name>.{name}`"
        doc = f"`{name}` for one column: `a.b` is a nested field; quote a name that has a dot with backticks."
        rows.append((key, option.kind, "as for all", doc))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
