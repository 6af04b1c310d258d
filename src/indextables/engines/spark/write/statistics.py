"""Statistics from the footers of new files, which a driver reads about 4,000 of in a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.stats import SplitStats
from indextables.core.stats.collect import exchange_columns
from indextables.core.stats.truncate import TruncationOptions
from indextables.core.stats.values import Physical
from indextables.core.types import (
    FieldPath,
    Leaf,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    leaves,
)
from indextables.engines.spark.jvm.gateway import quoted
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.file_rows import key_of_row, read_files
from indextables.errors import StorageError
from indextables.parquet.read.footers import read_footers, stats_from_footer
from indextables.parquet.write.write import WriteTarget
from indextables.storage.base import LogStore


def footer_stats(
    store: LogStore,
    keys: Sequence[str],
    schema: StructType,
    columns: Sequence[FieldPath],
) -> list[SplitStats]:
    """Returns what the footer of each file, written by Spark just now, says about these leaves."""
    footers = read_footers(store.filesystem(), keys)
    return [stats_from_footer(footer, schema, columns, trusted=True) for footer in footers]


# Exact statistics of files from their rows, as one Spark job over only the columns that are asked for.

_TEXT: Final = (PrimitiveType("string"), PrimitiveType("binary"))
_EPOCH: Final = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Which leaves to look at, and how much of a long text is worth bringing to the driver."""

    schema: StructType
    columns: Sequence[FieldPath]
    longest: Mapping[FieldPath, int] = field(default_factory=dict)
    """Characters (bytes of a binary column); a cut text keeps its place among the others."""

    @property
    def leaves(self) -> list[Leaf]:
        """Returns the leaves asked for, in the schema's order."""
        wanted = set(self.columns)
        return [leaf for leaf in leaves(self.schema) if leaf.path in wanted]


def measure(
    session: SparkSession, place: Place, keys: Sequence[str], wanted: Measurement
) -> dict[str, SplitStats]:
    """Counts and bounds of these leaves in each file; a file without rows has just that."""
    names = {path[0] for path in wanted.columns}
    columns = StructType(tuple(f for f in wanted.schema if f.name in names))
    data = read_files(session, place, keys, columns)
    rows = (
        data.groupBy(key_of_row(place, data).alias("key"))
        .agg(F.count(F.lit(1)).alias("rows"), *_aggregates(wanted))
        .collect()
    )
    found = {row["key"]: _stats(row, wanted) for row in rows}
    if strange := found.keys() - set(keys):
        # A file that is not found here counts as empty, and would be skipped from then on.
        raise StorageError(
            f"Spark names the file {min(strange)!r}, which is none of those that were to be measured",
            hint="please report this, with the name",
        )
    return {key: found.get(key, SplitStats(num_records=0)) for key in keys}


def _aggregates(wanted: Measurement) -> Iterator[Column]:
    for i, leaf in enumerate(wanted.leaves):
        values = F.col(".".join(map(quoted, leaf.path)))
        yield F.count(values).alias(f"filled{i}")
        if is_float(leaf.type):
            yield F.count_if(F.isnan(values)).alias(f"nan{i}")
            values = F.when(~F.isnan(values), values)
        if not is_orderable(leaf.type, leaf.field.metadata):
            continue
        if leaf.type in _TEXT and leaf.path in wanted.longest:
            # Cutting keeps the order: the prefix of the least text is the least prefix.
            values = F.substring(values, 1, wanted.longest[leaf.path])
        yield _physical(F.min(values), leaf).alias(f"min{i}")
        yield _physical(F.max(values), leaf).alias(f"max{i}")


def _physical(value: Column, leaf: Leaf) -> Column:
    """Returns dates and times as numbers: Python has none outside the years 1 to 9999."""
    match leaf.type:
        case PrimitiveType("date"):
            return F.unix_date(value)
        case PrimitiveType("timestamp"):
            return F.unix_micros(value)
        case PrimitiveType("timestamp_ntz"):
            return seam.microseconds_since(F.expr(_EPOCH), value)
        case PrimitiveType("float"):
            return value.cast("double")
        case _:
            return value


def _stats(row: Row, wanted: Measurement) -> SplitStats:
    rows = int(row["rows"])
    low: dict[FieldPath, Physical] = {}
    high: dict[FieldPath, Physical] = {}
    nulls: dict[FieldPath, int] = {}
    nans: dict[FieldPath, int] = {}
    for i, leaf in enumerate(wanted.leaves):
        nulls[leaf.path] = rows - int(row[f"filled{i}"])
        if is_float(leaf.type):
            nans[leaf.path] = int(row[f"nan{i}"])
        if is_orderable(leaf.type, leaf.field.metadata) and row[f"min{i}"] is not None:
            low[leaf.path] = _plain(row[f"min{i}"])
            high[leaf.path] = _plain(row[f"max{i}"])
    return SplitStats(rows, low, high, nulls, nans)


def _plain(value: Any) -> Physical:
    return bytes(value) if isinstance(value, bytearray) else value


# Statistics that a footer lacks although the table wants them: looked up in the rows of those files.

# Spark's writer leaves out bounds that take more than 4096 bytes together, so one of them has more than
# 2048 bytes: at least 512 characters, and in most writing more than a thousand.
_SURELY_LONG: Final = 1024


def fill_gaps(
    session: SparkSession, place: Place, stats: Mapping[str, SplitStats], target: WriteTarget
) -> dict[str, SplitStats]:
    """Returns the statistics of each file, complete.

    A job runs only if some are missing, on those files only.
    """
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
    """Returns one character more than is kept: enough to see that a text is too long, and to shorten it."""
    if not truncation.enabled:
        return {}
    return {path: truncation.rule(path).max_length + 1 for path in columns}
