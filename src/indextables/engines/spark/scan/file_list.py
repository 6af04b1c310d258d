"""The files of a snapshot in the form Spark wants them: made in bulk, chosen by mask."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from indextables.core.stats.columns import FileMask
from indextables.core.types import FieldPath, Leaf, PrimitiveType, StructType, is_float, leaves
from indextables.engines.spark.jvm.gateway import handles, jvm_tools
from indextables.engines.spark.scan.partition_rows import (
    Lineage,
    build_rows,
    file_groups,
    matching_groups,
    partition_groups,
)
from indextables.log.state.snapshot import Snapshot

_FEW: Final = 8
"""If fewer than one file in this many is kept, it is cheaper to make just those than all of them."""


class FileList:
    """All files of one snapshot on the JVM's side; masks are in the snapshot's order.

    With `lineage`, each row also says which file it comes from (`lineage.COLUMNS`).
    """

    def __init__(
        self, snapshot: Snapshot, root: str, session: SparkSession, lineage: Lineage | None = None
    ) -> None:
        self.snapshot = snapshot
        self._root = root
        self._session = session
        self._statuses: JavaObject | None = None
        self._lock = threading.Lock()
        self._groups = partition_groups(snapshot) if lineage is None else file_groups(snapshot, lineage)

    @property
    def partition_columns(self) -> StructType:
        """Returns the columns whose values Spark knows before it opens a file."""
        return self._groups.columns

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Returns the number of bytes of each file."""
        known = self.snapshot.column("size")
        if not known.null_count:
            return np.asarray(known, np.int64)
        return self._with_missing_sizes(np.asarray(known.fill_null(-1), np.int64).copy())

    def _with_missing_sizes(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the sizes with missing ones looked up: other writers may leave them out, and Spark needs them.

        Spark reads a file up to the length it is told.
        """
        tools = jvm_tools()
        conf = self._session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        for place in np.flatnonzero(sizes < 0):
            path = tools.path(self._uris(np.asarray([place]))[0])
            sizes[place] = path.getFileSystem(conf).getFileStatus(path).getLen()
        return sizes

    @cached_property
    def reader_options(self) -> Mapping[str, str]:
        """Returns the options with which Spark's Parquet reader reads these files right."""
        return reader_options(self.snapshot)

    @cached_property
    def _rows(self) -> JavaObject:
        return build_rows(self._groups, self._session)

    def paths(self) -> JavaObject:
        """Returns the URIs of all files as a String[]."""
        return jvm_tools().strings(self._uris(np.ones(len(self.sizes), np.bool_)))

    def partitions_matching(self, filters: JavaObject) -> FileMask:
        """Returns one bit per file, True if Spark finds all these filters TRUE for the file's partition."""
        return matching_groups(filters, self._groups, self._rows)[self._groups.group]

    def directories(self, mask: FileMask) -> JavaObject:
        """Returns the kept files as a Scala Seq of PartitionDirectory, one for each partition that has any."""
        tools = jvm_tools()
        if not self.partition_columns.fields:
            made = tools.partition_directory(tools.empty_row, self._files(mask))
            return tools.some(made).toList()
        counts = np.bincount(self._groups.group[mask], minlength=self._groups.count)
        kept = counts > 0
        ends = np.cumsum(counts[kept])
        # iterators, because a sequence of Scala 2.12 wants to be told what it is mapped to
        ranges = tools.integers(ends - counts[kept]).iterator().zip(tools.integers(ends).iterator())
        rows = tools.positions(kept).iterator().map(self._rows)
        return rows.zip(ranges).map(handles().directories_of(self._files(mask))).toIndexedSeq()

    def _files(self, mask: FileMask) -> JavaObject:
        """Returns the kept files as a Scala IndexedSeq, with those of one partition next to each other."""
        ordered = mask if self._groups.order is None else mask[self._groups.order]
        if self._statuses is None and np.count_nonzero(mask) * _FEW < len(mask):
            return self._build(ordered)
        with self._lock:
            if self._statuses is None:
                self._statuses = self._build(np.ones(len(mask), np.bool_))
        if mask.all():
            return self._statuses
        return jvm_tools().positions(ordered).iterator().map(self._statuses).toIndexedSeq()

    def _build(self, ordered: FileMask) -> JavaObject:
        """Returns the statuses of these files; Jackson makes all of them from one text."""
        tools = jvm_tools()
        places = np.flatnonzero(ordered)
        if self._groups.order is not None:
            places = self._groups.order[places]
        times = self.snapshot.column("modification_time").take(places).to_pylist()
        rows = zip(self._uris(places), self.sizes[places].tolist(), times, strict=True)
        text = orjson.dumps(
            [{"path": uri, "length": size, "modification_time": time or 0} for uri, size, time in rows]
        ).decode()
        statuses = tools.field_json.readValue(text, tools.status_array)
        return tools.partition_directory(tools.empty_row, statuses).files().toIndexedSeq()

    def _uris(self, places: npt.NDArray[np.intp] | FileMask) -> list[str]:
        # real names, because Hadoop's Path(String) percent-encodes them itself
        keys = self.snapshot.column("key")
        chosen = keys.filter(places) if places.dtype == np.bool_ else keys.take(places)
        return list(pc.binary_join_element_wise(self._root, chosen, "/").to_pylist())


# Which filters Spark may use inside of files, because some of them can lose rows.
#
# Spark takes 0.0 and -0.0 for equal and NaN for the greatest number. Parquet's reader, which skips row
# groups for it, does not: its dictionary and Bloom filters tell the zeros apart by their bits, and the
# bounds that most writers record leave NaN out. Constants of dates and times reach the reader through
# java.sql.Date and Timestamp, which have no 5 to 14 October 1582 and turn those days into later ones; some
# hours of the 19th century fare alike. `docs/adr/0018-floats-inside-files.md` has the cases.

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
