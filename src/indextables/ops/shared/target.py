"""Where the next write of a table goes, from its snapshot and the options in force."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import uuid4

from indextables.config import TARGET_FILE_SIZE, Config
from indextables.core.stats import stats_columns
from indextables.core.stats.truncate import TruncationOptions
from indextables.core.stats.truncation_options import ignored_overrides
from indextables.log.wire.actions import Metadata
from indextables.parquet.write.write import WriteTarget
from indextables.plan.merge_rule import MergeRule

_logger: Final = logging.getLogger(__name__)


def config_for(properties: Mapping[str, str], options: Mapping[str, Any] | None) -> Config:
    """Options of the call over the table's properties; ConfigError before anything is written."""
    config = Config.of(write=options, table=properties).validate()
    TruncationOptions.from_config(config, warns=False)  # `truncation_for` warns, once a write
    return config


def write_target(metadata: Metadata, read_version: int, config: Config) -> WriteTarget:
    """A fresh directory whose name says which version the writer had read: vacuum relies on it.

    The columns of a record key always get statistics: by them an upsert finds the files it must look into.
    """
    wanted = stats_columns(metadata.schema, metadata.partition_columns, config)
    key = [(n,) for n in MergeRule.of(metadata.properties).key if n not in metadata.partition_columns]
    return WriteTarget(
        schema=metadata.schema,
        partition_columns=metadata.partition_columns,
        schema_id=metadata.schema_id,
        directory=f"data/{read_version}-{uuid4()}",
        stats_columns=(*wanted, *(path for path in key if path not in wanted)),
        truncation=truncation_for(metadata, config),
        split_bytes=config.get(TARGET_FILE_SIZE),
    )


def truncation_for(metadata: Metadata, config: Config) -> TruncationOptions:
    """The rules for this table's columns; a rule for a column it does not have is warned of, once."""
    for key, why in ignored_overrides(config, metadata.schema):
        _warn(metadata.id, key, why)
    return TruncationOptions.from_config(config)


@lru_cache(maxsize=1024)
def _warn(table: str, key: str, why: str) -> None:  # noqa: ARG001 - once for each table
    _logger.warning("Option '%s' is ignored: %s", key, why)
