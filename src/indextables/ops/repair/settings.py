"""The options of a repair, read once before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from indextables.config import (
    CHECKPOINT_FORMAT,
    REPAIR_FAIL_ON_MISSING,
    REPAIR_PARALLELISM,
    REPAIR_PRESERVE_STATS,
    REPAIR_VALIDATE_SPLITS,
    Config,
    Option,
)
from indextables.core.stats.truncate import TruncationOptions
from indextables.errors import ConfigError
from indextables.log.open.checkpoint import Format


@dataclass(frozen=True, slots=True)
class RepairSettings:
    """The settings of a repair: those of the call go before the configuration, and this before the defaults."""

    validate_splits: bool
    preserve_stats: bool
    parallelism: int
    fail_on_missing: bool
    config: Config

    @classmethod
    def of(
        cls,
        config: Config | Mapping[str, object] | None = None,
        *,
        validate_splits: bool | None = None,
        preserve_stats: bool | None = None,
        parallelism: int | None = None,
        fail_on_missing: bool | None = None,
    ) -> RepairSettings:
        """Returns the settings in force; ConfigError for a value an option cannot have."""
        given = _given(
            (REPAIR_VALIDATE_SPLITS, validate_splits),
            (REPAIR_PRESERVE_STATS, preserve_stats),
            (REPAIR_PARALLELISM, parallelism),
            (REPAIR_FAIL_ON_MISSING, fail_on_missing),
        )
        is_named = isinstance(config, Mapping) and all(isinstance(key, str) for key in config)
        if not (config is None or isinstance(config, Config) or is_named):
            raise ConfigError(
                f"{config!r:.60} are not settings by name",
                hint="pass a dict such as {'spark.indextables.repair.parallelism': 8}",
            )
        base = config if isinstance(config, Config) else Config.of(session=config)
        merged = given.over(base).validate()
        TruncationOptions.from_config(merged, warns=False)
        return cls(
            validate_splits=merged.get(REPAIR_VALIDATE_SPLITS),
            preserve_stats=merged.get(REPAIR_PRESERVE_STATS),
            parallelism=merged.get(REPAIR_PARALLELISM),
            fail_on_missing=merged.get(REPAIR_FAIL_ON_MISSING),
            config=merged,
        )

    def truncation(self, properties: Mapping[str, str]) -> TruncationOptions:
        """Returns how long bounds may be; the caller's settings go before the table's own properties."""
        return TruncationOptions.from_config(self._over(properties))

    def checkpoint_form(self, properties: Mapping[str, str]) -> Format:
        """Returns the form in which the new checkpoint is stored."""
        return cast("Format", self._over(properties).get(CHECKPOINT_FORMAT))

    def _over(self, properties: Mapping[str, str]) -> Config:
        return self.config.over(properties)


def _given(*options: tuple[Option[Any], object]) -> Config:
    return Config.of(write={option.key: value for option, value in options if value is not None})
