"""Spark's FileIndex, implemented in Python: Spark asks which files to read, and the answer names few.

Spark calls `listFiles` while it plans a query, with the filters as Catalyst expressions. Everything
after that (vectorised reading, column pruning, row groups, AQE) is Spark's own Parquet scan.
"""

from __future__ import annotations

import zlib

import numpy as np
from py4j.java_gateway import JavaObject

from indextables.engines.spark.jvm.callbacks import jvm_callback
from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.scan.explain_labels import splits_read
from indextables.engines.spark.scan.native_scan import NativeScan


class TableFileIndex:
    """A file index of one scan. Its methods have the JVM's names: py4j calls them through a proxy of the Scala trait."""

    def __init__(self, scan: NativeScan, partition_schema: JavaObject) -> None:
        self.scan = scan
        self.number: int | None = None
        """The number of the JVM's object for this one, known once it was described."""
        self._partition_schema = partition_schema
        self._roots: dict[str | None, JavaObject] = {}

    @jvm_callback
    def listFiles(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:  # noqa: N802
        """Returns the files that may hold rows, by partition."""
        plan = self.scan.plan(partition_filters, data_filters)
        return self.scan.files.directories(plan.rows)

    @jvm_callback
    def rootPaths(self) -> JavaObject:  # noqa: N802
        """Returns what a plan shows as the location: the table in words, then its directory.

        The words are a path for display only. From the directory Spark knows what a query reads.
        """
        read = splits_read(self)
        if read not in self._roots:
            tools = jvm_tools()
            total = self.scan.snapshot.num_files
            splits = f"{total} splits" if read is None else f"{read} of {total} splits"
            words = tools.path(None, None, f"{self.scan.label}, {splits}")
            self._roots[read] = tools.seq([words, tools.path(self.scan.root)])
        return self._roots[read]

    @jvm_callback
    def inputFiles(self) -> JavaObject:  # noqa: N802
        """Returns every file of the snapshot."""
        return self.scan.files.paths()

    def refresh(self) -> None:
        """Does nothing: a DataFrame is pinned to its snapshot."""

    @jvm_callback
    def sizeInBytes(self) -> int:  # noqa: N802
        """Returns the size of all files; Spark decides by it whether to broadcast the table."""
        return int(np.sum(self.scan.files.sizes))

    def partitionSchema(self) -> JavaObject:  # noqa: N802
        """Returns the partition columns."""
        return self._partition_schema

    def isTimeTravel(self) -> bool:  # noqa: N802
        """Returns False: this asks about a feature of other formats."""
        return False

    @jvm_callback
    def metadataOpsTimeNs(self) -> JavaObject:  # noqa: N802
        """Returns None to Spark's metrics; the line in the logging has the time."""
        return jvm_tools().none

    def toString(self) -> str:  # noqa: N802
        """Returns the table and its version as text, so that equal text means equal rows."""
        return self.scan.identity

    def hashCode(self) -> int:  # noqa: N802
        """Returns equal codes for equal scans, so that Spark reuses exchanges and cached data."""
        return zlib.crc32(self.scan.identity.encode()) - 2**31

    @jvm_callback
    def equals(self, other: JavaObject | None) -> bool:
        """Returns True for the same rows of the same version; another index may arrive as an object of the JVM."""
        return other is not None and bool(other.toString() == self.toString())

    class Java:
        """The interfaces of the proxy, for py4j."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)
