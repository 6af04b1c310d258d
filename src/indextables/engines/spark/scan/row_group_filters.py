"""Which filters Spark may use inside of files, because some of them can lose rows.

Spark takes 0.0 and -0.0 for equal and NaN for the greatest number. Parquet's reader, which skips row
groups for it, does not: its dictionary and Bloom filters tell the zeros apart by their bits, and the
bounds that most writers record leave NaN out. Constants of dates and times reach the reader through
java.sql.Date and Timestamp, which have no 5 to 14 October 1582 and turn those days into later ones; some
hours of the 19th century fare alike. `docs/adr/0018-floats-inside-files.md` has the cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.source import FileMask
from indextables.core.types import FieldPath, Leaf, PrimitiveType, is_float, leaves
from indextables.log.state.snapshot import Snapshot

_BY_VALUE: Final = {
    "parquet.filter.dictionary.enabled": "false",
    "parquet.filter.bloom.enabled": "false",
    "parquet.filter.record-level.enabled": "false",
}
_BY_BOUNDS: Final = {
    "parquet.filter.stats.enabled": "false",
    "parquet.filter.columnindex.enabled": "false",
}
UNFILTERED: Final[Mapping[str, str]] = {**_BY_VALUE, **_BY_BOUNDS}
"""Options of a read that skips nothing inside of files."""
ALL_FILES: Final[Mapping[str, str]] = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""Options that hold whatever a session says: files left out silently lose their rows."""
AS_STORED: Final[Mapping[str, str]] = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Options that hold whatever a session says: what a file holds must not depend on the reader's settings.

They concern files that do not say which calendar they use; bounds in the log are of the values as stored.
"""
ANY_NAME: Final[Mapping[str, str]] = {"ignoredPathSegmentRegex": "(?!)"}
"""Makes Spark read files even if their names begin with a dot or an underscore."""

# Between these two values a constant may reach Parquet's reader as another one.
_SHIFTED: Final = {
    "date": (-141_441, -141_411),  # 1 and 31 October 1582
    "timestamp": (-12_220_502_400_000_000, -2_208_988_800_000_000),  # from then until 1900
}

# Where this library's writers put their files, which have no bounds where there is a NaN.
_OWN_FILES: Final = r"^data/\d+-[0-9a-f-]{36}/"


def reader_options(snapshot: Snapshot) -> dict[str, str]:
    """Returns options for Spark's Parquet reader with which no query over this version loses a row."""
    stored = [
        leaf for leaf in leaves(snapshot.schema) if leaf.path[0] not in snapshot.partition_columns
    ]
    if any(_may_hold_shifted(snapshot, leaf).any() for leaf in stored):
        return dict(UNFILTERED)
    floats = [leaf.path for leaf in stored if is_float(leaf.type)]
    options: dict[str, str] = {}
    if any(_may_hold_zero(snapshot, path).any() for path in floats):
        options |= _BY_VALUE
    foreign = _foreign(snapshot) if floats else np.zeros(0, np.bool_)
    if foreign.any() and any((foreign & _may_hold_nan(snapshot, path)).any() for path in floats):
        options |= UNFILTERED
    return options


def _may_hold_shifted(snapshot: Snapshot, leaf: Leaf) -> FileMask:
    """Returns True for files that may hold dates or times for which a constant is taken for another one."""
    match leaf.type:
        case PrimitiveType(name) if name in _SHIFTED:
            first, later = _SHIFTED[name]
        case _:
            return np.zeros(snapshot.num_files, np.bool_)
    stats = snapshot.index().column(leaf.path)
    apart = np.zeros(snapshot.num_files, np.bool_)
    if stats.lo is not None:
        apart |= np.asarray(_known(pc.greater_equal(_number(stats.lo), later)), np.bool_)
    if stats.hi is not None:
        apart |= np.asarray(_known(pc.less(_number(stats.hi), first)), np.bool_)
    return stats.may_value & ~apart


def _number(bounds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns days or microseconds since 1970."""
    return bounds.cast(pa.int32() if bounds.type == pa.date32() else pa.int64())


def _may_hold_zero(snapshot: Snapshot, path: FieldPath) -> FileMask:
    """Returns True for files whose bounds do not exclude both zeros."""
    stats = snapshot.index().column(path)
    if stats.lo is None or stats.hi is None:
        return stats.may_value
    apart = pc.or_(_known(pc.greater(stats.lo, 0)), _known(pc.less(stats.hi, 0)))
    return stats.may_value & ~np.asarray(apart, np.bool_)


def _may_hold_nan(snapshot: Snapshot, path: FieldPath) -> FileMask:
    """Returns True for files of which the log does not say that they hold no NaN."""
    source = snapshot.index().source
    counts = source.count("nan", path)
    if counts is None:
        counts = pa.nulls(snapshot.num_files, pa.int64())
    may = ~np.asarray(_known(pc.equal(counts, 0)), np.bool_)
    absent = source.absent(path)
    return may if absent is None else may & ~absent


def _foreign(snapshot: Snapshot) -> FileMask:
    """Returns True for files of other writers, whose bounds may not cover NaN."""
    own = pc.match_substring_regex(snapshot.column("key"), _OWN_FILES)
    return ~np.asarray(own, np.bool_)


def _known(truth: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(truth, fill_value=False)
