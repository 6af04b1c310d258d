"""What the log says of a column, in words: the range of its values in one split or in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow.compute as pc

from indextables.core.prune.index import ColumnStats, ColumnStatsIndex
from indextables.core.stats.columns import FileMask, is_null
from indextables.core.stats.values import Omit, encode_value
from indextables.core.stats.wire import Physical
from indextables.core.types import DataType, FieldPath, PrimitiveType, path_text, resolve, type_name
from indextables.display import visible

_LONGEST: Final = 40
_END: Final = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class ColumnReach:
    """What the statistics of one column say over all splits."""

    column: str
    type: str
    partition: bool
    lowest: str | None
    highest: str | None
    with_nulls: int
    """Splits that may hold a NULL."""
    shortened: int
    """Splits with a cut bound."""
    missing: int
    """Splits that no condition on this column's values can skip."""


def column_reach(index: ColumnStatsIndex, path: FieldPath) -> ColumnReach:
    """Returns what is known of the column over the whole table."""
    stats = index.column(path)
    dtype = type_of(index, path)
    cut = stats.may_value & ~stats.missing & ~(stats.lo_exact & stats.hi_exact)
    return ColumnReach(
        column=path_text(path),
        type=type_name(dtype),
        partition=index.is_partition(path),
        lowest=_shown(_extreme(stats, "lo"), dtype),
        highest=_shown(_extreme(stats, "hi"), dtype),
        with_nulls=int(np.count_nonzero(stats.may_null)),
        shortened=0 if index.is_partition(path) else int(np.count_nonzero(cut)),
        missing=int(np.count_nonzero(stats.missing)),
    )


def known_of(index: ColumnStatsIndex, path: FieldPath, split: int) -> str:
    """Returns what is known of the column in one split."""
    stats, name = index.column(path), path_text(path)
    if stats.missing[split]:
        return f"{name}: no statistics"
    if not stats.may_value[split]:
        return f"{name} is {' or '.join(word for word, may in _kinds(stats) if may[split])}"
    dtype = type_of(index, path)
    low, high = (_shown(side[split].as_py(), dtype) for side in (stats.lo, stats.hi))
    if low is None and high is None:
        return f"{name} has values"
    span = str(low) if low == high else f"{low or _END} to {high or _END}"
    kinds = [span, *(word for word, may in _kinds(stats) if may[split])]
    return f"{name} is {' or '.join(kinds)}"


def _kinds(stats: ColumnStats) -> tuple[tuple[str, FileMask], ...]:
    return ("NaN", stats.may_nan), ("NULL", stats.may_null)


def type_of(index: ColumnStatsIndex, path: FieldPath) -> DataType:
    """Returns the type of a column or nested field."""
    return resolve(index.source.schema, path, case_sensitive=True)[1]


def _extreme(stats: ColumnStats, side: Literal["lo", "hi"]) -> Physical | None:
    """Returns the least lower or greatest upper bound; None if a split with values lacks that bound."""
    bounds = getattr(stats, side)
    if (stats.may_value & is_null(bounds)).any():
        return None
    found: Physical | None = (pc.min if side == "lo" else pc.max)(bounds).as_py()
    return found


def _shown(value: Physical | None, dtype: DataType) -> str | None:
    if value is None:
        return None
    if dtype == PrimitiveType("boolean"):
        return str(bool(value)).lower()
    encoded = encode_value(value, dtype)
    text = str(value if isinstance(encoded, Omit) else encoded)
    clean = visible(text)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + _END
