"""Where the next write of a table goes, from its snapshot and the options in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from indextables.arrow.write import WriteTarget
from indextables.config import TARGET_FILE_SIZE, Config
from indextables.core.statistics.stats import stats_columns
from indextables.core.statistics.truncate import TruncationOptions
from indextables.log.actions import Metadata
from indextables.scan.merge import MergeRule


def config_for(properties: Mapping[str, str], options: Mapping[str, Any] | None) -> Config:
    """Options of the call over the table's properties; ConfigError before anything is written."""
    config = Config.of(write=options, table=properties).validate()
    TruncationOptions.from_config(config)
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
        truncation=TruncationOptions.from_config(config),
        split_bytes=config.get(TARGET_FILE_SIZE),
    )
