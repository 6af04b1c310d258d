"""Statistics: what is known of the values in a split, how it is collected, and its form in the log."""

from indextables.core.stats.collect import collect_stats, stats_columns
from indextables.core.stats.split_stats import (
    SplitStats,
    from_wire,
    stats_wire_type,
    to_wire,
    to_wire_row,
)

__all__ = [
    "SplitStats",
    "collect_stats",
    "from_wire",
    "stats_columns",
    "stats_wire_type",
    "to_wire",
    "to_wire_row",
]
