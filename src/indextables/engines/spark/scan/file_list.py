"""The files of a snapshot in the form Spark wants them: made in bulk, chosen by mask."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.compute as pc
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from indextables.core.prune.source import FileMask
from indextables.core.types import StructType
from indextables.engines.spark.jvm.gateway import handles, jvm_tools
from indextables.engines.spark.scan.lineage import Lineage
from indextables.engines.spark.scan.partition_rows import (
    build_rows,
    file_groups,
    matching_groups,
    partition_groups,
)
from indextables.engines.spark.scan.row_group_filters import reader_options
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
        ranges = tools.integers(ends - counts[kept]).zip(tools.integers(ends))
        rows = tools.positions(kept).map(self._rows)
        return rows.zip(ranges).map(handles().directories_of(self._files(mask))).toSeq()

    def _files(self, mask: FileMask) -> JavaObject:
        """Returns the kept files as a Scala IndexedSeq, with those of one partition next to each other."""
        ordered = mask if self._groups.order is None else mask[self._groups.order]
        if self._statuses is None and np.count_nonzero(mask) * _FEW < len(mask):
            return self._build(ordered)
        with self._lock:
            if self._statuses is None:
                self._statuses = self._build(np.ones(len(mask), np.bool_))
        return self._statuses if mask.all() else jvm_tools().positions(ordered).map(self._statuses)

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
