"""The heavy work of a verb, behind a protocol: Arrow does it in this process, Spark on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.source import FileMask
from indextables.core.stats import SplitStats
from indextables.core.types import FieldPath, StructType
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.write.write import Rewritten, WriteTarget, Written
from indextables.plan.merge_rule import Piece


class Executor(Protocol):
    """Reads and writes rows and never commits. Every file it returns is durable."""

    @property
    def at_once(self) -> int:
        """Returns how many splits to pass to one call of `collect`."""
        ...

    def prepare(self, data: object) -> Any:
        """Returns the user's data as this engine takes it; it is read once."""
        ...

    def source_schema(self, data: Any) -> StructType:
        """Returns the schema that a table of exactly this prepared data would have."""
        ...

    def fetch(self, data: Any) -> pa.Table:
        """Returns the prepared data as an Arrow table in this process; writes by key look at its rows one by one."""
        ...

    def write(
        self, data: Any, target: WriteTarget, *, merge: bool = False, within: Predicate | None = None
    ) -> Written:
        """Writes the prepared data as new splits of `target`; SchemaMismatchError if it does not fit.

        With `merge` a nullable column may be left out. PredicateError if `within` is not TRUE for a row.
        """
        ...

    def rewrite(
        self, snapshot: Snapshot, mask: FileMask, condition: Predicate, target: WriteTarget
    ) -> Mapping[str, Rewritten]:
        """Writes each split without the rows the bound condition is TRUE for; returns them by path.

        Splits without such a row are not in the answer: they stay as they are.
        """
        ...

    def collect(
        self, splits: Sequence[Split], schema: StructType, columns: Sequence[FieldPath]
    ) -> Mapping[str, SplitStats]:
        """Returns exact statistics of these leaves, read from the rows of each split."""
        ...

    def cluster(
        self,
        groups: Sequence[Sequence[Split]],
        target: WriteTarget,
        clustering: Any | None,
    ) -> Sequence[Written]:
        """Writes the rows of each set of splits, all of one partition, as new splits of the target's size.

        Rows are sorted along the curve of an `ops.optimize.Clustering`, or keep their order without one.
        """
        ...

    def compact(self, pieces: Sequence[Piece], target: WriteTarget) -> Iterable[Written]:
        """Writes the rows that each slice shows as files of its own, and yields them in the order of the slices."""
        ...
