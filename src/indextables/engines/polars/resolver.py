"""Polars' hook for tables, called when filters have been pushed down."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from polars.lazyframe.resolver import FilterExpr, LazyFrameResolver, ResolvedLazyFrameProps

from indextables.core.predicate.nodes import And, Predicate
from indextables.core.types import StructType
from indextables.engines.polars.expressions import predicate_of
from indextables.engines.polars.frames import lazy_frame, polars_schema
from indextables.errors import SchemaMismatchError
from indextables.plan.planner import Planner


class TableResolver(LazyFrameResolver):
    """Answers Polars with a scan of the files that the pushed-down filters need."""

    def __init__(self, planner: Planner, *, follow: bool) -> None:
        self._planner, self._follow = planner, follow
        self._schema = polars_schema(planner.schema)

    def schema(self) -> pl.Schema:
        """Returns the table's columns."""
        return self._schema

    def resolve_lazyframe(
        self,
        *,
        projection: list[str] | None,  # noqa: ARG002 - Polars projects what it gets
        limit: int | None,
        filters: Sequence[FilterExpr],
        filter_columns: list[str],  # noqa: ARG002
        filter_drop_columns_idx: int | None,  # noqa: ARG002
        existing_resolved_version_key: str | None,
    ) -> tuple[pl.LazyFrame | None, ResolvedLazyFrameProps]:
        """Returns the rows of these files unfiltered, because Polars applies every filter itself."""
        planner = self._newest() if self._follow else self._planner
        # without a key Polars would keep the files of the first collect
        props = ResolvedLazyFrameProps(version_key=str(planner.snapshot.version))
        if existing_resolved_version_key == props.version_key:
            return None, props
        # a limit is applied before the filters: it means the first rows of the table, not the first that match
        where = _conjunction(filters, planner.schema) if limit is None else None
        return lazy_frame(planner.plan(where), planner.store, where).select(self._schema.names()), props

    def _newest(self) -> Planner:
        newest = self._planner.newest()
        now = polars_schema(newest.schema)
        changed = [name for name, dtype in self._schema.items() if now.get(name) != dtype]
        if changed:
            raise SchemaMismatchError(
                f"the columns {', '.join(map(repr, changed))} changed since scan_polars() was called",
                hint="call scan_polars() again",
                columns=tuple(changed),
            )
        return newest


def _conjunction(filters: Sequence[FilterExpr], schema: StructType) -> Predicate | None:
    parts = tuple(predicate_of(each.expr, schema) for each in filters)
    return And(parts) if parts else None
