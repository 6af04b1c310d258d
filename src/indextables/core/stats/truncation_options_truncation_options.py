"""Which bounds are too long, and what becomes of them: one rule per column."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from indextables.config import (
    TRUNCATION_ENABLED,
    TRUNCATION_MAX_LENGTH,
    TRUNCATION_STRATEGY,
    ColumnSetting,
    Config,
)
from indextables.core.stats.truncation_options import SUFFIX
from indextables.core.types.columns import leaves, parse_path, resolve
from indextables.core.types.types import FieldPath, StructType
from indextables.errors import ConfigError, UnknownColumnError

Strategy: TypeAlias = Literal["drop", "truncate", "bound"]
_STRATEGIES: Final[Mapping[str, Strategy]] = {"drop": "drop", "truncate": "truncate", "bound": "bound"}
_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TruncationRule:
    """What is too long, and what is done about it."""

    max_length: int = TRUNCATION_MAX_LENGTH.default
    strategy: Strategy = "drop"


@dataclass(frozen=True, slots=True)
class TruncationOptions:
    """The rule for every column; names of columns are compared without case."""

    enabled: bool = True
    default: TruncationRule = TruncationRule()
    columns: Mapping[FieldPath, TruncationRule] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: Config, *, warns: bool = True) -> TruncationOptions:
        """The options in force; ConfigError before any data is written if they cannot work."""
        unknown = dict.fromkeys(name for name in _strategies(config) if name not in _STRATEGIES)
        for name in unknown if warns else ():
            _logger.warning("Unknown truncation strategy '%s', using 'drop'", name)
        default = TruncationRule(
            config.get(TRUNCATION_MAX_LENGTH), _strategy(config.get(TRUNCATION_STRATEGY))
        )
        columns: dict[FieldPath, TruncationRule] = {}
        lengths: dict[FieldPath, str] = {}
        for setting in config.column_settings():
            path = _folded(_path(setting))
            rule = columns.get(path, default)
            if setting.option is TRUNCATION_MAX_LENGTH:
                columns[path] = replace(rule, max_length=setting.value)
                lengths[path] = setting.key
            else:
                columns[path] = replace(rule, strategy=_strategy(setting.value))
        enabled = config.get(TRUNCATION_ENABLED)
        for path, rule in {(): default, **columns}.items() if enabled else ():
            _check(rule, lengths.get(path, TRUNCATION_MAX_LENGTH.key))
        return cls(enabled, default, columns)

    def rule(self, path: FieldPath) -> TruncationRule:
        """The rule for one column or nested field."""
        return self.columns.get(_folded(path), self.default) if self.columns else self.default


def ignored_overrides(config: Config, schema: StructType) -> Iterator[tuple[str, str]]:
    """(key, why) of each override for a column that this table does not have: it changes nothing."""
    known = {_folded(leaf.path) for leaf in leaves(schema)}
    for setting in config.column_settings():
        path = _path(setting)
        if _folded(path) in known:
            continue
        try:
            resolve(schema, path)
        except UnknownColumnError as error:
            yield setting.key, f"{error.message}; {error.hint}"
        else:
            yield setting.key, f"{setting.column!r} is a struct; name one of its fields"


def _path(setting: ColumnSetting) -> FieldPath:
    try:
        return parse_path(setting.column)
    except UnknownColumnError as e:
        raise ConfigError(
            f"{setting.key} names no column: {e.message}", hint=e.hint, key=setting.key
        ) from e


def _folded(path: FieldPath) -> FieldPath:
    return tuple(part.lower() for part in path)


def _strategies(config: Config) -> Iterator[str]:
    """Every strategy that is asked for, of the table and of its columns."""
    yield config.get(TRUNCATION_STRATEGY)
    for setting in config.column_settings():
        if setting.option is TRUNCATION_STRATEGY:
            yield setting.value


def _strategy(name: str) -> Strategy:
    return _STRATEGIES.get(name, "drop")


def _check(rule: TruncationRule, key: str) -> None:
    if rule.strategy == "truncate" and rule.max_length <= len(SUFFIX):
        raise ConfigError(
            f"{key} is {rule.max_length}, but the strategy 'truncate' alone appends {len(SUFFIX)} characters",
            hint=f"set it to {len(SUFFIX) + 1} or more, or use the strategy 'drop' or 'bound'",
            key=key,
            value=rule.max_length,
        )
