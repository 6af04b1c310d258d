"""File slices of other systems: which of them a query must read, from a listing and a timeline.

    files = [ListedFile("b.parquet", "group-1", "001", stats=...), ...]
    slices = slices_from_listing(files, Timeline(completed=["001", "002"]))
    found = prune_slices(slices, index_of_listing(files, schema), condition, MergeMode.RECORD)
    slices.names.filter(pa.array(found.kept)), str(found.counts)

The condition is bound to the schema: `bind(parse_predicate("a = 1"), schema)`.
"""

from indextables.core.binding.bind import bind
from indextables.core.statistics.split_stats import SplitStats
from indextables.scan.listing import ListedFile, LogBlock, index_of_listing, slices_from_listing
from indextables.scan.merge import MergeMode
from indextables.scan.report import SliceCounts
from indextables.scan.slices import Block, PrunedSlices, Slices, State, prune_slices
from indextables.scan.timeline import Timeline

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
