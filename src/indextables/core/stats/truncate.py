"""Keeps long bounds out of the log without ever losing a row.

`drop` forgets both bounds of the column. `truncate` stores a prefix that is marked as one. `bound` stores
a shorter text that is still a bound: a prefix as the minimum, the next prefix as the maximum.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from indextables.core.stats.split_stats import SplitStats
from indextables.core.stats.truncation_options import (
    SUFFIX,
    Strategy,
    TruncationOptions,
    TruncationRule,
    lower_bound_of,
    lower_bounds,
    marked,
    next_prefix,
    stem,
    upper_bound_of,
    upper_bounds,
)
from indextables.core.stats.wire import Physical
from indextables.core.types.types import FieldPath, StructType, path_text

__all__ = [
    "SUFFIX",
    "Strategy",
    "TruncatedColumn",
    "TruncationMetrics",
    "TruncationOptions",
    "TruncationRule",
    "log_truncation",
    "lower_bound_of",
    "lower_bounds",
    "marked",
    "next_prefix",
    "truncate_stats",
    "upper_bound_of",
    "upper_bounds",
]

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TruncatedColumn:
    """How long the bounds of a column were (0: there was none) and what became of them."""

    min_length: int
    max_length: int
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class TruncationMetrics:
    """What truncation did to one split or, added up, to all splits of a commit."""

    bytes_saved: int = 0
    truncated: Mapping[FieldPath, TruncatedColumn] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """Returns the number of different columns that were truncated."""
        return len(self.truncated)

    def __add__(self, other: TruncationMetrics) -> TruncationMetrics:
        if not other.truncated:
            return self
        merged = dict(self.truncated)
        for path, new in other.truncated.items():
            old = merged.get(path, new)
            longest = (max(old.min_length, new.min_length), max(old.max_length, new.max_length))
            merged[path] = TruncatedColumn(*longest, new.strategy)
        return TruncationMetrics(self.bytes_saved + other.bytes_saved, merged)


def log_truncation(metrics: TruncationMetrics) -> None:
    """Logs a line for each column and one for all; to be called once per commit, not once per split."""
    for path, column in metrics.truncated.items():
        _logger.info(
            "Truncating statistics for column '%s' (min length: %d, max length: %d, strategy: %s)",
            path_text(path),
            column.min_length,
            column.max_length,
            column.strategy,
        )
    if metrics.truncated:
        _logger.info(
            "Statistics truncated: %d columns, estimated size reduction: %d bytes",
            metrics.columns,
            metrics.bytes_saved,
        )


@dataclass(frozen=True, slots=True)
class _Bound:
    value: str | bytes | None
    inexact: bool = False

    @property
    def length(self) -> int:
        return 0 if self.value is None else len(self.value)


def truncate_stats(
    stats: SplitStats,
    schema: StructType,  # noqa: ARG001 - a physical value says itself whether it is text
    options: TruncationOptions,
    partition_columns: Sequence[str] = (),
) -> tuple[SplitStats, TruncationMetrics]:
    """Returns statistics without long bounds, and what was done; they never skip more than before."""
    paths = _text_columns(stats, partition_columns) if options.enabled else ()
    found = {path: _bounds(stats, path) for path in paths}
    rules = {path: _rule(options.rule(path), *found[path]) for path in found}
    long = [p for p, (low, high) in found.items() if max(low.length, high.length) > rules[p].max_length]
    if not long:
        return stats, TruncationMetrics()
    shortened = {path: _shortened(*found[path], rules[path]) for path in long}
    lost = {path for path in long if _has_lost(found[path], shortened[path])}
    low = {path: bounds[0] for path, bounds in shortened.items()}
    high = {path: bounds[1] for path, bounds in shortened.items()}
    result = replace(
        stats,
        min_values=_values(stats.min_values, low),
        max_values=_values(stats.max_values, high),
        inexact_min=_inexact(stats.inexact_min, low),
        inexact_max=_inexact(stats.inexact_max, high),
        dropped=stats.dropped | lost,
    )
    saved = sum(_size(b) for p in long for b in found[p])
    saved -= sum(_size(b) for p in long for b in shortened[p])
    return result, TruncationMetrics(saved, {p: _report(*found[p], rules[p]) for p in long})


def _report(low: _Bound, high: _Bound, rule: TruncationRule) -> TruncatedColumn:
    return TruncatedColumn(low.length, high.length, rule.strategy)


def _text_columns(stats: SplitStats, partition_columns: Sequence[str]) -> Iterator[FieldPath]:
    for path, value in {**stats.min_values, **stats.max_values}.items():
        if isinstance(value, str | bytes) and path[0] not in partition_columns:
            yield path


def _bounds(stats: SplitStats, path: FieldPath) -> tuple[_Bound, _Bound]:
    low, high = stats.min_values.get(path), stats.max_values.get(path)
    assert isinstance(low, str | bytes | None)
    assert isinstance(high, str | bytes | None)
    return _Bound(low, path in stats.inexact_min), _Bound(high, path in stats.inexact_max)


def _rule(rule: TruncationRule, low: _Bound, high: _Bound) -> TruncationRule:
    """Returns the rule for this column's type: bytes cannot carry a readable mark, so they are dropped."""
    is_binary = isinstance(low.value, bytes) or isinstance(high.value, bytes)
    return replace(rule, strategy="drop") if is_binary and rule.strategy == "truncate" else rule


def _shortened(low: _Bound, high: _Bound, rule: TruncationRule) -> tuple[_Bound, _Bound]:
    match rule.strategy:
        case "drop":
            return _Bound(None), _Bound(None)
        case "truncate":
            return _marked(low, rule.max_length), _marked(high, rule.max_length)
        case "bound":
            return _prefix(low, rule.max_length), _next_prefix(high, rule.max_length)
        case _:
            assert_never(rule.strategy)


def _stem(bound: _Bound) -> str | bytes | None:
    # The mark of a bound that was cut before is not a piece of its text, so it comes off before the next cut.
    return stem(bound.value, inexact=bound.inexact) if isinstance(bound.value, str) else bound.value


def _marked(bound: _Bound, max_length: int) -> _Bound:
    text = _stem(bound)
    if bound.length <= max_length or not isinstance(text, str):
        return bound
    return _Bound(text[: max_length - len(SUFFIX)] + SUFFIX, inexact=True)


def _prefix(bound: _Bound, max_length: int) -> _Bound:
    text = _stem(bound)
    if bound.length <= max_length or text is None:
        return bound
    # The empty prefix is below everything, so it says nothing: the bound is unknown.
    return _Bound(text[:max_length] or None, inexact=True)


def _next_prefix(bound: _Bound, max_length: int) -> _Bound:
    text = _stem(bound)
    if bound.length <= max_length or text is None:
        return bound
    return _Bound(next_prefix(text[:max_length]), inexact=True)


def _has_lost(before: tuple[_Bound, _Bound], after: tuple[_Bound, _Bound]) -> bool:
    pairs = zip(before, after, strict=True)
    return any(old.value is not None and new.value is None for old, new in pairs)


def _values(
    old: Mapping[FieldPath, Physical], new: Mapping[FieldPath, _Bound]
) -> dict[FieldPath, Physical]:
    kept = {path: value for path, value in old.items() if path not in new}
    return kept | {path: bound.value for path, bound in new.items() if bound.value is not None}


def _inexact(old: frozenset[FieldPath], new: Mapping[FieldPath, _Bound]) -> frozenset[FieldPath]:
    listed = {path for path, bound in new.items() if bound.inexact and bound.value is not None}
    return (old - new.keys()) | listed


def _size(bound: _Bound) -> int:
    """Returns about how many bytes a bound takes in an action."""
    match bound.value:
        case None:
            return 0
        case str() as text:
            return len(text.encode("utf-8", "surrogatepass"))
        case data:
            return -(-len(data) // 3) * 4
