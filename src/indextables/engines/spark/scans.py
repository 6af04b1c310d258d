"""What the scans of a DataFrame skip: splits and bytes, table by table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from indextables.engines.spark.filters import has_subquery
from indextables.engines.spark.gateway import jvm_tools
from indextables.engines.spark.scan import NativeScan, find_scan
from indextables.errors import IndexTablesError
from indextables.scan.report import PruneReport


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One scan of one table."""

    location: str
    version: int
    filters: str
    """The conditions Spark gave the scan, in its words."""
    report: PruneReport

    def __str__(self) -> str:
        where = f" where {self.filters}" if self.filters else ""
        return f"IndexTables[{self.location}] v{self.version}{where}: {self.report}"


@dataclass(frozen=True, slots=True)
class QueryScans:
    """All scans of tables of ours in one query."""

    scans: tuple[ScanReport, ...]

    @property
    def total_files(self) -> int:
        """Splits in the tables, counted once per scan."""
        return sum(scan.report.total_files for scan in self.scans)

    @property
    def kept_files(self) -> int:
        """Splits that are read."""
        return sum(scan.report.kept_files for scan in self.scans)

    @property
    def skipped_files(self) -> int:
        """Splits that are not opened."""
        return self.total_files - self.kept_files

    @property
    def total_bytes(self) -> int:
        """Bytes in the tables, counted once per scan."""
        return sum(scan.report.total_bytes for scan in self.scans)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the splits that are read."""
        return sum(scan.report.kept_bytes for scan in self.scans)

    @property
    def skipped_bytes(self) -> int:
        """Bytes that need not be read."""
        return self.total_bytes - self.kept_bytes

    def __str__(self) -> str:
        return "\n".join(map(str, self.scans))


def last_scan(frame: Any) -> QueryScans:
    """What the scans of this DataFrame read and skip, as Spark planned them.

    Dynamic partition pruning can skip more while the query runs; this is what is known before.
    """
    if not isinstance(frame, DataFrame) or not hasattr(frame, "_jdf"):
        raise IndexTablesError(
            f"last_scan takes a DataFrame of a classic Spark session, not {type(frame).__name__}",
            hint="on Spark Connect plan the read with Table.plan(where).report",
        )
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    return QueryScans(tuple(_report(node, scan) for node, scan in _our_scans(plan)))


def _report(node: Any, scan: NativeScan) -> ScanReport:
    static = _static(node.partitionFilters())
    data = _static(node.dataFilters())
    plan = scan.plan(static, data)
    filters = [each.apply(i).sql() for each in (static, data) for i in range(each.length())]
    return ScanReport(scan.location, scan.snapshot.version, " AND ".join(filters), plan.report)


def _static(filters: Any) -> Any:
    """Without the filters that wait for a subquery: they have no value before the query runs."""
    kept = [filters.apply(i) for i in range(filters.length())]
    return jvm_tools().seq(f for f in kept if not has_subquery(json.loads(f.toJSON())))


def _our_scans(plan: Any) -> Iterator[tuple[Any, NativeScan]]:
    """The scans below a physical plan, in subqueries and cached plans too; each exchange once."""
    todo = [plan]
    while todo:
        node = todo.pop()
        name = str(node.nodeName())
        if name == "AdaptiveSparkPlan":
            # As it was planned at first: what ran replaces its parts, and may drop empty ones.
            todo.append(node.initialPlan())
            continue
        if name.startswith("Scan parquet"):
            scan = find_scan(node.relation().location().toString())
            if scan is not None:
                yield node, scan
        if name == "InMemoryTableScan":
            todo.append(node.relation().cachedPlan())
        for inner in (node.subqueries(), node.children()):
            todo.extend(inner.apply(i) for i in reversed(range(inner.length())))
