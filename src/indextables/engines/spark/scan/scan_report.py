"""What the scans of a DataFrame skip: splits and bytes, table by table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from indextables.engines.spark.jvm.gateway import each, jvm_tools
from indextables.engines.spark.scan.conditions import has_subquery
from indextables.engines.spark.scan.file_index import NativeScan, find_scan
from indextables.engines.spark.scan.plan_scans import PlannedScan, planned_scans
from indextables.errors import IndexTablesError
from indextables.plan.planner import Plan
from indextables.plan.report import PruneReport


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What one scan of one table reads and skips."""

    location: str
    version: int
    filters: str
    """The conditions that Spark gave the scan, in Spark's words."""
    report: PruneReport

    def __str__(self) -> str:
        where = f" where {self.filters}" if self.filters else ""
        return f"IndexTables[{self.location}] v{self.version}{where}: {self.report}"


@dataclass(frozen=True, slots=True)
class QueryScans:
    """All scans of tables in one query."""

    scans: tuple[ScanReport, ...]

    @property
    def total_files(self) -> int:
        """Returns the number of splits in the tables, counted once for each scan."""
        return sum(scan.report.total_files for scan in self.scans)

    @property
    def kept_files(self) -> int:
        """Returns the number of splits that are read."""
        return sum(scan.report.kept_files for scan in self.scans)

    @property
    def skipped_files(self) -> int:
        """Returns the number of splits that are not opened."""
        return self.total_files - self.kept_files

    @property
    def total_bytes(self) -> int:
        """Returns the number of bytes in the tables, counted once for each scan."""
        return sum(scan.report.total_bytes for scan in self.scans)

    @property
    def kept_bytes(self) -> int:
        """Returns the number of bytes in the splits that are read."""
        return sum(scan.report.kept_bytes for scan in self.scans)

    @property
    def skipped_bytes(self) -> int:
        """Returns the number of bytes that need not be read."""
        return self.total_bytes - self.kept_bytes

    def __str__(self) -> str:
        return "\n".join(map(str, self.scans))


def last_scan(frame: DataFrame) -> QueryScans:
    """Returns what the scans of a DataFrame read and skip, as Spark planned them.

    Dynamic partition pruning can skip more while the query runs; this is what is known before.

    Args:
        frame: A DataFrame of a classic Spark session.

    Returns:
        The scans of tables in its plan, each with a report; their totals are properties.

    Raises:
        IndexTablesError: It is not a DataFrame of a classic session.

    Example:
        >>> import indextables as it
        >>> trips = spark.read.format("indextables").load("/data/trips")  # doctest: +SKIP
        >>> it.last_scan(trips.where("km > 5")).skipped_files  # doctest: +SKIP
        397
    """
    if not isinstance(frame, DataFrame) or not hasattr(frame, "_jdf"):
        raise IndexTablesError(
            f"last_scan takes a DataFrame of a classic Spark session, not {type(frame).__name__}",
            hint="on Spark Connect plan the read with Table.plan(where).report",
        )
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    return QueryScans(tuple(_reports(our_scans(plan))))


def reads_table(frame: DataFrame, root: str) -> bool:
    """Returns True if the frame is computed from rows of the table at this root."""
    return any(scan.root == root for scan in _scans_read(frame))


def reads_tables(frame: DataFrame) -> bool:
    """Returns True if the frame is computed from rows of any table."""
    return any(True for _ in _scans_read(frame))


def _scans_read(frame: DataFrame) -> Iterator[NativeScan]:
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    for part in (plan, *each(plan.subqueriesAll())):
        for leaf in each(part.collectLeaves()):
            location = _location(leaf)
            scan = None if location is None else find_scan(location)
            if scan is not None:
                yield scan


def _location(leaf: JavaObject) -> str | None:
    """Returns what the index of a scan of files says of itself; None for other leaves of a logical plan."""
    if leaf.nodeName() != "LogicalRelation":
        return None
    relation = leaf.relation()
    is_of_files = relation.getClass().getSimpleName() == "HadoopFsRelation"
    return str(relation.location().toString()) if is_of_files else None


@dataclass(frozen=True, slots=True)
class OurScan:
    """A scan of a table in a physical plan."""

    scan: NativeScan
    found: PlannedScan

    def plan(self) -> Plan:
        """Returns the files it reads, as far as this is known before the query runs."""
        return self.scan.plan(*self._static, self.found.above)

    @property
    def filters(self) -> str:
        """Returns the conditions that Spark gives the scan, in Spark's words."""
        parts = [each.apply(i).sql() for each in self._static for i in range(each.length())]
        return " AND ".join(parts)

    @property
    def _static(self) -> tuple[JavaObject, JavaObject]:
        node = self.found.node
        return _static(node.partitionFilters()), _static(node.dataFilters())


@dataclass(frozen=True, slots=True)
class _Planned:
    """One scan node of a plan, and the files it reads."""

    scan: NativeScan
    filters: str
    plan: Plan


def _reports(found: Iterable[OurScan]) -> Iterator[ScanReport]:
    """Yields one report for each read of a table, which several scans share if it has delta files."""
    reads: dict[tuple[str, int], list[_Planned]] = {}
    seen: Counter[str] = Counter()
    for one in found:
        scan = one.scan
        # the second scan of the same files belongs to the second read of the table, and so on
        number = seen[scan.identity]
        seen[scan.identity] += 1
        reads.setdefault((scan.version_identity, number), []).append(
            _Planned(scan, one.filters, one.plan())
        )
    for scans in reads.values():
        scan, filters = scans[0].scan, max((one.filters for one in scans), key=len)
        report = scans[0].plan.report if scan.subset is None else _together(scans)
        yield ScanReport(scan.location, scan.snapshot.version, filters, report)


def _together(scans: Sequence[_Planned]) -> PruneReport:
    """Returns what several scans of one version read; a file that two of them open counts once."""
    whole = scans[0].scan.whole
    kept = np.zeros(whole.num_files, np.bool_)
    for one in scans:
        if one.scan.subset is not None:
            kept[np.flatnonzero(one.scan.subset.mask)[one.plan.rows]] = True
    sizes = whole.column("size")
    skipped = int(np.count_nonzero(~kept))
    by_partition = min(skipped, sum(one.plan.report.partition_pruned for one in scans))
    return PruneReport(
        total_files=whole.num_files,
        partition_pruned=by_partition,
        stats_pruned=skipped - by_partition,
        kept_files=whole.num_files - skipped,
        total_bytes=whole.total_bytes,
        kept_bytes=pc.sum(sizes.filter(pa.array(kept))).as_py() or 0,
        missing_stats=reduce(_added, (one.plan.report.missing_stats for one in scans)),
        opaque={k: v for one in scans for k, v in one.plan.report.opaque.items()},
        planning_ms=sum(one.plan.report.planning_ms for one in scans),
    )


def _added(left: Mapping[str, int], right: Mapping[str, int]) -> Mapping[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}


def _static(filters: JavaObject) -> JavaObject:
    """Returns the filters without those that wait for a subquery and have no value before the query runs."""
    kept = [filters.apply(i) for i in range(filters.length())]
    return jvm_tools().seq(f for f in kept if not has_subquery(json.loads(f.toJSON())))


def our_scans(plan: JavaObject) -> Iterator[OurScan]:
    """Yields the scans of tables below a physical plan, in subqueries and cached plans too, each exchange once."""
    for found in planned_scans(plan):
        scan = find_scan(found.node.relation().location().toString())
        if scan is not None:
            yield OurScan(scan, found)
