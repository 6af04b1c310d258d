"""Exact statistics of files from their rows, as one Spark job over only the columns that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.stats import SplitStats
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
from indextables.engines.spark.jvm.attributes import quoted
from indextables.engines.spark.place.location import Place
from indextables.engines.spark.write.file_rows import key_of_row, read_files
from indextables.errors import StorageError

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
        """The leaves asked for, in the schema's order."""
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
    """Numbers instead of dates and times: Python has none outside the years 1 to 9999."""
    match leaf.type:
        case PrimitiveType("date"):
            return F.unix_date(value)
        case PrimitiveType("timestamp"):
            return F.unix_micros(value)
        case PrimitiveType("timestamp_ntz"):
            return F.timestamp_diff("MICROSECOND", F.expr(_EPOCH), value)
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
