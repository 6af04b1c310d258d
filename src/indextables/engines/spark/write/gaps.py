"""Statistics that a footer lacks although the table wants them: looked up in the rows of those files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from indextables.core.stats import SplitStats
from indextables.core.stats.collect import exchange_columns
from indextables.core.stats.truncate import TruncationOptions
from indextables.core.types import FieldPath, Leaf, PrimitiveType, is_float, is_orderable, leaves
from indextables.engines.spark.place.location import Place
from indextables.engines.spark.write.measure import Measurement, measure
from indextables.parquet.write.write import WriteTarget

_TEXT: Final = (PrimitiveType("string"), PrimitiveType("binary"))
# Spark's writer leaves out bounds that take more than 4096 bytes together, so one of them has more than
# 2048 bytes: at least 512 characters, and in most writing more than a thousand.
_SURELY_LONG: Final = 1024


def fill_gaps(
    session: SparkSession, place: Place, stats: Mapping[str, SplitStats], target: WriteTarget
) -> dict[str, SplitStats]:
    """The statistics of each file, complete; a job runs only if some are missing, on those files only."""
    gaps = {key: tuple(_gaps(found, target)) for key, found in stats.items()}
    lacking = [key for key, columns in gaps.items() if columns]
    if not lacking:
        return dict(stats)
    columns = tuple(dict.fromkeys(path for key in lacking for path in gaps[key]))
    wanted = Measurement(target.file_schema, columns, _longest(columns, target.truncation))
    measured = measure(session, place, lacking, wanted)
    return {
        key: exchange_columns(found, measured[key], gaps[key]) if gaps[key] else found
        for key, found in stats.items()
    }


def _gaps(stats: SplitStats, target: WriteTarget) -> list[FieldPath]:
    wanted = set(target.stats_columns)
    candidates = (leaf for leaf in leaves(target.file_schema) if leaf.path in wanted)
    return [leaf.path for leaf in candidates if _is_gap(leaf, stats, target.truncation)]


def _is_gap(leaf: Leaf, stats: SplitStats, truncation: TruncationOptions) -> bool:
    if not is_orderable(leaf.type, leaf.field.metadata):
        return False
    path = leaf.path
    if stats.null_count.get(path) == stats.num_records:
        return False
    if is_float(leaf.type) and path not in stats.nan_count:
        return True  # there is a NaN: how many, and what is the greatest number?
    if path in stats.min_values and path in stats.max_values:
        return False
    return not (leaf.type in _TEXT and _would_be_dropped(path, truncation))


def _would_be_dropped(path: FieldPath, truncation: TruncationOptions) -> bool:
    rule = truncation.rule(path)
    return truncation.enabled and rule.strategy == "drop" and rule.max_length <= _SURELY_LONG


def _longest(columns: tuple[FieldPath, ...], truncation: TruncationOptions) -> dict[FieldPath, int]:
    """One character more than is kept: enough to see that a text is too long, and to shorten it."""
    if not truncation.enabled:
        return {}
    return {path: truncation.rule(path).max_length + 1 for path in columns}
