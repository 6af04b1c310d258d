"""Which rows a verb is about, as the user said it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.to_sql import to_sql
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Metadata
from indextables.ops.shared.partitions import partition_condition
from indextables.parquet.read.row_filter import check_evaluable
from indextables.parquet.write.write import Written


@dataclass(frozen=True, slots=True)
class Condition:
    """Which rows to remove, as the user said it; bound anew to each snapshot. None: all rows."""

    where: Predicate | None = None
    timezone: str = "UTC"
    shown: Mapping[str, str] | None = None
    """What history shows instead of the condition itself."""

    def bound(self, snapshot: Snapshot) -> Predicate | None:
        """In terms of this snapshot's columns; PredicateError if rows cannot be told apart by it."""
        if self.where is None:
            return None
        bound = bind(self.where, snapshot.schema, timezone=self.timezone)
        check_evaluable(bound)
        return bound

    @property
    def parameters(self) -> dict[str, str]:
        """What history shows."""
        if self.shown is not None:
            return dict(self.shown)
        return {} if self.where is None else {"predicate": to_sql(self.where)}


@dataclass(frozen=True, slots=True)
class SamePartitions:
    """The rows of every partition that the new data has a row in; all rows if there are no partitions."""

    def of(self, written: Written, metadata: Metadata) -> Condition:
        """The condition, now that the new data is known."""
        if not metadata.partition_columns:
            return Condition()
        return Condition(
            partition_condition([add.partition_values for add in written.adds], metadata),
            shown={"mode": "dynamic"},
        )
