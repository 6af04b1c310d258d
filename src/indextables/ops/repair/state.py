"""Do two intact sources tell the same story of the table? If not, the first thing they differ in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.state.snapshot import Snapshot

_OF_EVERY_WRITER: Final = ("size", "partition_values", "stats")
_OF_OURS: Final = ("seq", "file_group", "kind", "block", "schema_id")
_FEW: Final = 3


def difference(left: Snapshot, right: Snapshot, *, ours: bool) -> str | None:
    """What the two states disagree about, in words; None if nothing.

    What only one of them knows is no disagreement: other writers leave statistics out of checkpoints, and
    `seq` (`ours`: both are files of this library, so these fields are there too).
    """
    for name in ("schema", "partition_columns", "properties"):
        if getattr(left, name) != getattr(right, name):
            return f"the table's {name.replace('_', ' ')}"
    if ours and (left.protocol, dict(left.txns)) != (right.protocol, dict(right.txns)):
        return "the protocol or the transactions of applications"
    return _files_difference(left, right, (*_OF_EVERY_WRITER, *(_OF_OURS if ours else ())))


def _files_difference(left: Snapshot, right: Snapshot, columns: tuple[str, ...]) -> str | None:
    keys = [snapshot.column("key").combine_chunks() for snapshot in (left, right)]
    for one, two in (keys, keys[::-1]):
        alone = one.filter(pc.invert(pc.is_in(one, two)))
        if len(alone):
            names = ", ".join(map(repr, alone.slice(0, _FEW).to_pylist()))
            return (
                f"{len(alone)} splits that only one of them has ({names}{', …' * (len(alone) > _FEW)})"
            )
    at = [pc.sort_indices(column) for column in keys]
    for name in columns:
        one, two = (
            snapshot.column(name).combine_chunks().take(rows)
            for snapshot, rows in zip((left, right), at, strict=True)
        )
        for row in _rows_that_differ(one, two):
            return f"the {name.replace('_', ' ')} of {keys[0].take(at[0])[row].as_py()!r}"
    return None


def _rows_that_differ(one: Any, two: Any) -> Iterator[int]:
    """Rows with two different values; a null says nothing, and neither does a list."""
    if pa.types.is_struct(one.type):
        for part in range(one.type.num_fields):
            yield from _rows_that_differ(pc.struct_field(one, [part]), pc.struct_field(two, [part]))
    elif not pa.types.is_list(one.type):
        unequal = pc.fill_null(pc.not_equal(one, two), fill_value=False)
        yield from pc.indices_nonzero(unequal).to_pylist()
