"""MERGE looks at those rows of the table that a row of the source may match, and skips the files of others.

Where a condition says that a column of the table equals something of the source, the values there bound
the rows that can match. Only without WHEN NOT MATCHED BY SOURCE: that is about all the other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import Constant, Predicate
from indextables.core.prune.evaluate import may_match
from indextables.engines.spark.change.reading import Reading
from indextables.engines.spark.jvm.gateway import column_of
from indextables.engines.spark.write.changed_rows import Target, kept
from indextables.engines.spark.write.key_ranges import is_known, with_keys

_ANY: Final = Constant(True)


@dataclass(frozen=True)
class Narrowed:
    """A statement and the rows of the table that it has to look at."""

    reading: Reading
    target: Target
    condition: Predicate = _ANY
    """TRUE for each of these rows."""

    @property
    def metrics(self) -> dict[str, int]:
        """Returns how many files of the table the source's values exclude.

        Nothing for another statement.
        """
        if self.reading.operation != "MERGE":
            return {}
        snapshot = self.reading.snapshot
        skipped = ~may_match(self.condition, snapshot.index())
        return {"numSkippedFiles": int(np.count_nonzero(skipped))}


@contextmanager
def narrowed(reading: Reading, target: Target) -> Iterator[Narrowed]:
    """Yields the statement with the source of a MERGE computed, once, if its values can skip files.

    A source that gave other rows the second time would match rows that were left out by the first.
    """
    if not _can_narrow(reading) or not _equalities(reading, target):
        yield Narrowed(reading, target)
        return
    with kept(reading.source) as source, ExitStack() as until:
        fixed = replace(reading, fixed_source=source)
        values = _equalities(fixed, target)
        named = [value.alias(name) for name, value in values.items()]
        matching = reduce(Column.__and__, (value.isNotNull() for value in values.values()))
        rows = source.where(matching).select(named)
        _, keys = with_keys(rows, reading.snapshot.schema, [*values], until)
        if keys.is_empty:
            nothing = replace(target, frame=target.frame.where(F.lit(False)))
            yield Narrowed(fixed, nothing, Constant(False))
        else:
            matched = replace(target, frame=target.frame.where(keys.filter))
            yield Narrowed(fixed, matched, keys.condition)


def _can_narrow(reading: Reading) -> bool:
    if reading.operation != "MERGE" or reading.plan.notMatchedBySourceActions().length():
        return False
    return reading.snapshot.num_files > 1


def _equalities(reading: Reading, target: Target) -> dict[str, Column]:
    """Returns columns of the table, and what of the source the condition says each is equal to."""
    pairs = _analyzed(target.frame.join(reading.source, column_of(reading.condition), "inner"))
    mine, theirs = _analyzed(target.frame).outputSet(), _analyzed(reading.source).outputSet()
    fields = {field.name: field for field in reading.snapshot.schema}
    found: dict[str, Column] = {}
    for part in _conjuncts(pairs.condition().get()):
        if part.nodeName() != "EqualTo":
            continue
        for column, value in ((part.left(), part.right()), (part.right(), part.left())):
            if column.nodeName() != "AttributeReference" or not mine.contains(column):
                continue
            field = fields.get(column.name())
            of_source = value.deterministic() and value.references().subsetOf(theirs)
            same = column.dataType().json() == value.dataType().json()
            if field is not None and is_known(field) and same and of_source:
                found.setdefault(field.name, column_of(value))
    return found


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
