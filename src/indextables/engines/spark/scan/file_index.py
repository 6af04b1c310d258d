"""Spark's FileIndex, implemented in Python: Spark asks which files to read, and the answer names few.

Spark calls `listFiles` while it plans a query, with the filters as Catalyst expressions. Everything
after that (vectorised reading, column pruning, row groups, AQE) is Spark's own Parquet scan.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

import numpy as np
from py4j.java_gateway import JavaObject

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import And, Opaque, Predicate
from indextables.core.predicate.tree import columns_of
from indextables.core.stats.columns import FileMask
from indextables.core.types import StructType
from indextables.engines.spark.jvm.callbacks import jvm_callback
from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.scan.conditions import to_predicate
from indextables.engines.spark.scan.explain_labels import described_query, explained, splits_read
from indextables.engines.spark.scan.file_list import FileList
from indextables.engines.spark.scan.plan_scans import condition_being_planned
from indextables.errors import PredicateError, UnknownColumnError
from indextables.log.state.snapshot import Snapshot
from indextables.plan.planner import Plan, plan_files


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
        above = condition_being_planned(described_query()) if self.scan.is_partitioned else None
        plan = self.scan.plan(partition_filters, data_filters, above)
        return self.scan.files.directories(plan.rows)

    @jvm_callback
    def rootPaths(self) -> JavaObject:  # noqa: N802
        """Returns what a plan shows as the location: the table in words, then its directory.

        The words are a path for display only. From the directory Spark knows what a query reads.
        """
        read = splits_read(self) if explained else None
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


# One version of a table as Spark scans it: filters in, splits to read out.

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Subset:
    """Some of a version's files, read for all or some of their columns."""

    name: str
    """A name that tells it from every other subset of the version."""
    mask: FileMask
    """One bit per file of the version."""
    schema: StructType | None = None
    """The columns to read; None means all of the table's."""
    lineage: bool = False
    """Whether each row also says where it comes from (`partition_rows.LINEAGE`)."""
    is_sliced: bool = True
    """False reads each file by itself, such as the keys of delta files, whatever its rows mean in its slice."""

    is_pruned: bool = False
    """Whether the files were chosen by the conditions of the query, which then skip no more of them."""

    @classmethod
    def with_lineage(cls, mask: FileMask) -> Subset:
        """Returns these files with where each row comes from; the name tells subsets of one version apart."""
        chosen = hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:16]
        return cls(f"files {chosen}", mask, lineage=True)

    def of(self, snapshot: Snapshot) -> Snapshot:
        """Returns a snapshot of just these files."""
        chosen = snapshot.subset(self.mask)
        return chosen if self.is_sliced else chosen.unsliced()


@dataclass(frozen=True, eq=False)
class NativeScan:
    """A table pinned to one version, which all queries over one DataFrame share."""

    whole: Snapshot
    """The version."""
    files: FileList
    """The files that are read: all of the version's, or the subset."""
    location: str
    """The table's location as its user wrote it."""
    root: str
    """The table's directory as Hadoop writes it."""
    subset: Subset | None = None
    """Which of the version's files are read; None if all of them are."""
    settings: Callable[[], Mapping[str, object]] = dict
    """Returns the settings of the session that reads."""

    @property
    def snapshot(self) -> Snapshot:
        """Returns the version as far as it is read."""
        return self.files.snapshot

    @property
    def label(self) -> str:
        """Returns the scan as logging shows it."""
        return f"IndexTables[{self.location}] v{self.whole.version}{self._subset_name}"

    @property
    def identity(self) -> str:
        """Returns a text that is equal for two scans only if they read the same rows."""
        return f"{self.version_identity}{self._subset_name} {self.snapshot.excerpt}".rstrip()

    @property
    def _subset_name(self) -> str:
        return f" {self.subset.name}" if self.subset else ""

    @property
    def version_identity(self) -> str:
        """Returns a text that is equal for two scans only if they read the same version of one table, or some of it."""
        # a log of another writer has no commit ids; then only the same object is known to be the same version
        commit = self.whole.commit_id or id(self.whole)
        return f"IndexTables[{self.root}] v{self.whole.version} {self.whole.metadata.id} {commit}"

    @property
    def is_partitioned(self) -> bool:
        """Returns whether conditions may be on partition columns."""
        return bool(self.snapshot.partition_columns)

    def plan(
        self,
        partition_filters: JavaObject,
        data_filters: JavaObject,
        above: JavaObject | None = None,
    ) -> Plan:
        """Returns the splits that may hold rows; partition filters are applied exactly, others by statistics.

        Of the condition above the scan those parts are used that Spark does not hand down: they are on
        partition columns and others together.
        """
        within = None
        if partition_filters.length():
            within = self.files.partitions_matching(partition_filters)
        conditions: list[Predicate] = []
        if self.subset is None or not self.subset.is_pruned:
            conditions += (to_predicate(data_filters.apply(i)) for i in range(data_filters.length()))
            if above is not None and self.is_partitioned:
                conditions += self._mixed(to_predicate(above))
        plan = self._planned(conditions, within)
        _logger.info("%s: %s", self.label, plan.report)
        return plan

    def _mixed(self, condition: Predicate) -> list[Predicate]:
        """Returns the parts of a condition that need partition columns and others."""
        partitions = set(self.snapshot.partition_columns)
        parts = condition.children if isinstance(condition, And) else (condition,)
        names = [{path[0] for path in columns_of(part)} for part in parts]
        return [
            part
            for part, used in zip(parts, names, strict=True)
            if used & partitions and used - partitions
        ]

    def _planned(self, conditions: Sequence[Predicate], within: FileMask | None) -> Plan:
        """Returns the plan; a condition that cannot be bound skips nothing, so a scan never fails where Spark would not."""
        try:
            return self._plan(conditions, within)
        except (PredicateError, UnknownColumnError) as e:
            _logger.debug("A filter is not used to skip splits: %s", e)
            return self._plan([self._readable(condition) for condition in conditions], within)

    def _plan(self, conditions: Sequence[Predicate], within: FileMask | None) -> Plan:
        self.snapshot.check_parquet()
        where = And(tuple(conditions)) if conditions else None
        # Catalyst spells columns as the table does, so `a` and `A` may be two columns
        return plan_files(
            self.snapshot, where, within=within, case_sensitive=True, settings=self.settings
        )

    def _readable(self, condition: Predicate) -> Predicate:
        try:
            bind(condition, self.snapshot.schema, case_sensitive=True)
        except (PredicateError, UnknownColumnError) as e:
            return Opaque(str(condition)[:200], why=e.message)
        return condition


# While any scan of an identity is in use, the identity stands for rows of the table.
_scans: Final[dict[str, WeakSet[NativeScan]]] = {}
_lock: Final = threading.Lock()


def register(scan: NativeScan) -> NativeScan:
    """Returns the scan itself, which can then be found by what its index prints in the JVM."""
    with _lock:
        for identity in [identity for identity, scans in _scans.items() if not scans]:
            del _scans[identity]
        _scans.setdefault(scan.identity, WeakSet()).add(scan)
    return scan


def known_scans() -> list[NativeScan]:
    """Returns one scan for each identity that a DataFrame uses."""
    with _lock:
        found = [next(iter(scans), None) for scans in _scans.values()]
    return [scan for scan in found if scan is not None]


def find_scan(identity: str) -> NativeScan | None:
    """Returns a scan with this identity, as long as a DataFrame uses one."""
    with _lock:
        return next(iter(_scans.get(identity, ())), None)
