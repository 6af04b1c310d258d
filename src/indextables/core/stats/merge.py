"""The statistics of a whole from those of its parts: row groups of a split, splits of a slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from indextables.core.stats.split_stats_split_stats import SplitStats
from indextables.core.stats.wire import Physical
from indextables.core.types.types import FieldPath


def merge_stats(parts: Sequence[SplitStats]) -> SplitStats:
    """What is true of all rows together; a bound is kept only where every part vouches for it.

    Merge before truncation: the marked prefix of a truncated bound does not compare as a value.

    >>> a = SplitStats(2, {("x",): 1}, {("x",): 5}, {("x",): 0})
    >>> b = SplitStats(1, {}, {}, {("x",): 1})
    >>> merge_stats([a, b])  # doctest: +ELLIPSIS
    SplitStats(num_records=3, min_values={('x',): 1}, max_values={('x',): 5}, null_count={('x',): 1}...
    """
    if len(parts) == 1:
        return parts[0]
    low, inexact_min = _bounds(parts, min, lambda part: (part.min_values, part.inexact_min))
    high, inexact_max = _bounds(parts, max, lambda part: (part.max_values, part.inexact_max))
    records = [part.num_records for part in parts]
    return SplitStats(
        num_records=None if None in records else sum(n for n in records if n is not None),
        min_values=low,
        max_values=high,
        null_count=_counts([part.null_count for part in parts]),
        nan_count=_counts([part.nan_count for part in parts]),
        inexact_min=inexact_min,
        inexact_max=inexact_max,
        dropped=frozenset[FieldPath]().union(*(part.dropped for part in parts)),
    )


def exchange_columns(old: SplitStats, new: SplitStats, columns: Sequence[FieldPath]) -> SplitStats:
    """`old` with everything it says of these columns exchanged for what `new` says."""
    names = set(columns)

    def mapping(one: Mapping[FieldPath, Any], two: Mapping[FieldPath, Any]) -> dict[FieldPath, Any]:
        kept = {path: value for path, value in one.items() if path not in names}
        return kept | {path: value for path, value in two.items() if path in names}

    return SplitStats(
        num_records=old.num_records if new.num_records is None else new.num_records,
        min_values=mapping(old.min_values, new.min_values),
        max_values=mapping(old.max_values, new.max_values),
        null_count=mapping(old.null_count, new.null_count),
        nan_count=mapping(old.nan_count, new.nan_count),
        inexact_min=(old.inexact_min - names) | (new.inexact_min & names),
        inexact_max=(old.inexact_max - names) | (new.inexact_max & names),
        dropped=(old.dropped - names) | (new.dropped & names),
    )


def _bounds(
    parts: Sequence[SplitStats],
    better: Callable[[Any, Any], Any],
    side: Callable[[SplitStats], tuple[Mapping[FieldPath, Physical], frozenset[FieldPath]]],
) -> tuple[dict[FieldPath, Physical], frozenset[FieldPath]]:
    bounds: dict[FieldPath, Physical] = {}
    inexact: set[FieldPath] = set()
    for path in dict.fromkeys(path for part in parts for path in side(part)[0]):
        known = [part for part in parts if path in side(part)[0]]
        if any(not _has_no_value(part, path) for part in parts if path not in side(part)[0]):
            continue
        best = side(known[0])[0][path]
        for part in known[1:]:
            best = better(best, side(part)[0][path])
        bounds[path] = best
        # exact as soon as one part really holds this value
        if all(path in side(part)[1] for part in known if side(part)[0][path] == best):
            inexact.add(path)
    return bounds, frozenset(inexact)


def _has_no_value(part: SplitStats, path: FieldPath) -> bool:
    """True only if every row is known to be NULL or NaN there."""
    if part.num_records is None:
        return False
    return part.null_count.get(path, 0) + part.nan_count.get(path, 0) == part.num_records


def _counts(parts: Sequence[Mapping[FieldPath, int]]) -> dict[FieldPath, int]:
    return {
        path: sum(part[path] for part in parts)
        for path in parts[0]
        if all(path in part for part in parts)
    }
