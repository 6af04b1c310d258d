"""The heavy work of a verb, behind a protocol: Arrow does it in this process, Spark on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from indextables.config import Config
from indextables.core.predicate.nodes import Predicate
from indextables.core.stats import SplitStats
from indextables.core.stats.columns import FileMask
from indextables.core.types import FieldPath, StructType
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Metadata
from indextables.parquet.write.write import Changes, Rewritten, WriteTarget, Written
from indextables.plan.merge_rule import Piece


class RowsByKey(Protocol):
    """The rows of a change as a table with certain metadata takes them; no two have one key."""

    @property
    def condition(self) -> Predicate:
        """Returns a condition that is TRUE for every row with one of these keys."""
        ...

    @property
    def is_partial(self) -> bool:
        """Returns True if they set some columns only."""
        ...


class ChangeByKey(Protocol):
    """The work of one change of a table with a record key; its rows are computed once, however often it is planned."""

    def source_schema(self) -> StructType:
        """Returns the schema a table of exactly these rows would have."""
        ...

    def fit(self, metadata: Metadata, *, merge: bool) -> RowsByKey:
        """Returns the rows as a table with this metadata takes them; DuplicateKeyError if two have one key."""
        ...

    def find(self, snapshot: Snapshot, rows: Any, condition: Predicate) -> Changes:
        """Returns where each row belongs: into the slice that has its key, or into a new one.

        The condition is that of the rows, for the statistics of the snapshot.
        """
        ...

    def find_removed(
        self, snapshot: Snapshot, metadata: Metadata, among: FileMask, condition: Predicate | None
    ) -> Changes:
        """Returns the rows in these files that the condition is TRUE for or that have the key of a new row.

        The files are all those of some slices; the metadata is that of the table after the change.
        """
        ...

    def shown_rows(self, snapshot: Snapshot) -> int | None:
        """Returns how many rows this version shows; None where slices would be read for nothing else."""
        ...

    def write_all(
        self, metadata: Metadata, target: WriteTarget, *, merge: bool, within: Predicate | None
    ) -> Written:
        """Returns all rows as new slices; DuplicateKeyError if two have one key.

        PredicateError if the condition `within` is not TRUE for one.
        """
        ...

    def write_deltas(self, changes: Changes, target: WriteTarget) -> Written:
        """Returns the rows that are replaced or removed as delta files of their slices."""
        ...

    def write_bases(self, changes: Changes, target: WriteTarget) -> Written:
        """Returns the rows that are new, or come from another slice, as new slices."""
        ...

    def discard(self) -> None:
        """Deletes all that was written: for a change that never tried to commit."""
        ...


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

    def write(
        self, data: Any, target: WriteTarget, *, merge: bool = False, within: Predicate | None = None
    ) -> Written:
        """Writes the prepared data as new splits of `target`; SchemaMismatchError if it does not fit.

        With `merge` a nullable column may be left out. PredicateError if `within` is not TRUE for a row.
        """
        ...

    def change_by_key(self, data: Any | None, config: Config) -> AbstractContextManager[ChangeByKey]:
        """Returns the work of one change by key with the prepared data; without data it removes rows."""
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

    def compact(
        self, snapshot: Snapshot, pieces: Sequence[Piece], target: WriteTarget
    ) -> Iterable[Written]:
        """Writes the rows that each slice shows as files of its own, and yields them in the order of the slices."""
        ...
