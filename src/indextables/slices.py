"""File slices of other systems: which of them a query must read, from a listing and a timeline.

Neither the base file of this slice nor the rollback and delete blocks over it can show a row with
`n = 100`, so the slice is skipped:

    >>> from indextables.core.types import Field, PrimitiveType, StructType
    >>> from indextables.sql.conditions.parser import parse_predicate
    >>> schema = StructType((Field("n", PrimitiveType("long")),))
    >>> known = SplitStats(10, {("n",): 1}, {("n",): 9}, {("n",): 0})
    >>> files = [
    ...     ListedFile("base", "group 1", "001", stats=known),
    ...     ListedFile(
    ...         "log.1", "group 1", "001", "log", 1, [LogBlock("rollback", "003", target="002")]
    ...     ),
    ...     ListedFile("log.2", "group 1", "001", "log", 2, [LogBlock("delete", "004")]),
    ... ]
    >>> slices = slices_from_listing(files, Timeline(["001", "003", "004"], rolled_back=["002"]))
    >>> condition = bind(parse_predicate("n = 100"), schema)
    >>> found = prune_slices(slices, index_of_listing(files, schema), condition, MergeMode.RECORD)
    >>> print(found.counts)
    0 of 1 slices kept, 1 if every file without statistics kept its slice
    >>> slices.names.filter(found.kept).to_pylist()
    []
"""

from indextables.core.bind.bind import bind
from indextables.core.stats.split_stats import SplitStats
from indextables.plan.foreign_listing import ListedFile, LogBlock, index_of_listing, slices_from_listing
from indextables.plan.merge_rule import MergeMode
from indextables.plan.report import SliceCounts
from indextables.plan.slices import Block, PrunedSlices, Slices, State, prune_slices
from indextables.plan.timeline import Timeline

__all__ = [
    "Block",
    "ListedFile",
    "LogBlock",
    "MergeMode",
    "PrunedSlices",
    "SliceCounts",
    "Slices",
    "SplitStats",
    "State",
    "Timeline",
    "bind",
    "index_of_listing",
    "prune_slices",
    "slices_from_listing",
]
