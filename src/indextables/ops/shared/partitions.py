"""Partitions as a condition: TRUE for exactly the rows that lie in one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from indextables.core.predicate.nodes import And, Compare, IsIn, IsNull, Literal, Or, Predicate, Ref
from indextables.core.prune.partitions import decode_partition
from indextables.core.types import DataType
from indextables.log.wire.actions import Metadata


def partition_condition(values: Iterable[Mapping[str, str | None]], metadata: Metadata) -> Predicate:
    """A condition over the partition columns alone; of no partitions it is FALSE."""
    types = {field.name: field.type for field in metadata.schema}
    columns = metadata.partition_columns
    distinct = dict.fromkeys(tuple(each.get(name) for name in columns) for each in values)
    if len(columns) == 1:
        return _one_of(columns[0], [texts[0] for texts in distinct], types[columns[0]])
    return Or(
        tuple(
            And(tuple(_is(name, text, types[name]) for name, text in zip(columns, texts, strict=True)))
            for texts in distinct
        )
    )


def _one_of(name: str, texts: list[str | None], kind: DataType) -> Predicate:
    values = IsIn(Ref((name,)), tuple(_literal(text, kind) for text in texts if text is not None))
    return values | IsNull(Ref((name,))) if None in texts else values


def _is(name: str, text: str | None, kind: DataType) -> Predicate:
    ref = Ref((name,))
    return IsNull(ref) if text is None else Compare("=", ref, _literal(text, kind))


def _literal(text: str, kind: DataType) -> Literal:
    return Literal(decode_partition(text, kind), kind)
