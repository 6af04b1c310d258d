"""One split as an object; made only for the splits a plan returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.core.stats import SplitStats, from_wire
from indextables.core.types import StructType
from indextables.log.state.rows import loads_extra
from indextables.log.wire.actions import Add


@dataclass(frozen=True, slots=True)
class Split:
    """A live file of the table; `path` is its key in the store."""

    path: str
    size: int
    modification_time: int | None
    partition_values: Mapping[str, str | None] = field(hash=False)
    """By column, as text; None is NULL."""
    seq: int
    schema_id: int | None
    file_group: str | None
    kind: str | None
    block: str | None
    data_change: bool
    schema: StructType = field(repr=False, compare=False)
    wire_stats: Mapping[str, Any] | None = field(repr=False, hash=False)
    extra_json: str | None = field(repr=False)

    @classmethod
    def of(cls, row: Mapping[str, Any], schema: StructType) -> Split:
        """The split of one row of `Snapshot.files()`."""
        return cls(
            path=row["key"],
            size=row["size"] or 0,
            modification_time=row["modification_time"],
            partition_values=row["partition_values"] or {},
            seq=row["seq"],
            schema_id=row["schema_id"],
            file_group=row["file_group"],
            kind=row["kind"],
            block=row["block"],
            data_change=row["data_change"],
            schema=schema,
            wire_stats=row["stats"],
            extra_json=row["extra"],
        )

    @property
    def stats(self) -> SplitStats:
        """What is known of its values; decoded when asked for."""
        return from_wire(dict(self.wire_stats) if self.wire_stats else None, self.schema)

    @property
    def is_log(self) -> bool:
        """True for a log file of a slice, whose rows replace or delete rows of older files."""
        return self.kind == "log"

    def to_add(self) -> Add:
        """The action that would add exactly this split again, unknown fields and `seq` included."""
        extra = loads_extra(self.extra_json)
        return Add(
            path=self.path,
            size=self.size,
            partition_values=self.partition_values,
            modification_time=self.modification_time,
            data_change=self.data_change,
            stats=self.stats if self.wire_stats is not None else None,
            tags=extra.pop("tags", None) or {},
            schema_id=self.schema_id,
            seq=self.seq,
            file_group=self.file_group,
            kind=self.kind,
            block=self.block,
            extra=extra,
        )
