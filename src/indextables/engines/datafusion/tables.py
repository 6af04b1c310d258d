"""Tables registered with DataFusion's contexts, and queries over them.

A registered table alone skips files by what DataFusion hands to Arrow datasets: comparisons. `sql` reads the
optimised plan, with the filters above each table, and puts datasets of the needed files in place of the tables.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from datafusion import DataFrame, SessionContext
from datafusion.substrait import Producer

from indextables.core.predicate.nodes import And, Or, Predicate
from indextables.engines.arrow.dataset import TableDataset
from indextables.engines.datafusion.plans import scans_of
from indextables.plan.planner import Planner
from indextables.plan.report import Recorder
from indextables.storage.base import LogStore

_registered: Final[WeakKeyDictionary[SessionContext, dict[str, Planner]]] = WeakKeyDictionary()
_numbers: Final = itertools.count(1)
_QUERY: Final = re.compile(r"\s*(?:WITH(\s+RECURSIVE\b)?|(?=SELECT\b))", re.IGNORECASE)


def register(
    context: SessionContext,
    name: str,
    table: str | Path | LogStore,
    *,
    version: int | None = None,
    read_optimized: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Makes a table queryable under a name, which DataFusion reads as an Arrow dataset.

    The version stays the one of this moment, or the one asked for, until the table is registered again.

    Args:
        context: The context.
        name: The name of the table in queries, in lower case unless queries quote it.
        table: The table's path or URI, or a store.
        version: The version to read; the newest without it.
        read_optimized: Leave delta files out: the rows are those of the last compaction.
        storage_options: Credentials and endpoints of an object store.

    Raises:
        TableNotFoundError: There is no table at this path.

    Example:
        >>> import datafusion, indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://datafusion.register", pa.schema({"n": pa.int64()}))
        >>> _ = table.append(pa.table({"n": [1, 2]}))
        >>> context = datafusion.SessionContext()
        >>> it.datafusion.register(context, "numbers", "memory://datafusion.register")
        >>> context.sql("SELECT sum(n) AS s FROM numbers").to_pydict()
        {'s': [3]}
    """
    planner = Planner.open(
        table, version=version, storage_options=storage_options, read_optimized=read_optimized
    )
    if context.table_exist(name):
        context.deregister_table(name)
    context.register_dataset(name, _Dataset(planner))
    _registered.setdefault(context, {})[name] = planner


def sql(context: SessionContext, query: str) -> DataFrame:
    """Plans a query over registered tables, of which it will open only the files that it needs.

    Conditions that DataFusion evaluates above a table skip files too: LIKE, functions, casts. A query whose plan
    cannot be read runs like any other, and the tables still skip files by comparisons.

    Args:
        context: The context that the tables are registered with.
        query: The query.

    Returns:
        DataFusion's frame; it reads nothing before it is collected.

    Example:
        >>> import datafusion, indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://datafusion.sql", pa.schema({"s": pa.string()}))
        >>> _ = table.append(pa.table({"s": ["apple", "bean"]}))
        >>> context = datafusion.SessionContext()
        >>> it.datafusion.register(context, "words", "memory://datafusion.sql")
        >>> it.datafusion.sql(context, "SELECT s FROM words WHERE s LIKE 'b%'").to_pydict()
        {'s': ['bean']}
    """
    tables = _registered.get(context, {})
    found = _QUERY.match(query)
    needed = needed_by(context, query) if tables and found else {}
    if not needed or found is None:
        return context.sql(query)
    names: list[str] = []
    parts = []
    try:
        for name, condition in needed.items():
            names.append(f"__indextables_{next(_numbers)}")
            context.register_dataset(names[-1], _restricted(tables[name], condition))
            quoted = name.replace('"', '""')
            parts.append(f'"{quoted}" AS (SELECT * FROM {names[-1]})')  # noqa: S608 - quoted
        # a name in WITH hides the table for this query alone; what is planned holds on to its datasets
        own = query[found.end() :]
        head = "WITH" + (found[1] or "")
        comma = "," if found[0].strip() else ""
        try:
            return context.sql(f"{head} {', '.join(parts)}{comma} {own}")
        except Exception:  # noqa: BLE001 - its own WITH may have the name; DataFusion's errors have no class
            return context.sql(query)
    finally:
        for name in names:
            context.deregister_table(name)


def needed_by(context: SessionContext, query: str) -> dict[str, Predicate]:
    """Returns, for each table of a query of which not all rows matter, the condition on those that do."""
    tables = _registered.get(context, {})
    plan = context.sql(query).optimized_logical_plan()
    try:
        found = Producer.to_substrait_plan(plan, context)
    except Exception:  # noqa: BLE001 - a plan that Substrait has no form for; DataFusion's errors have no class
        return {}
    schemas = {name: planner.schema for name, planner in tables.items()}
    scans: dict[str, list[Sequence[Predicate]]] = {}
    for name, conditions in scans_of(found, schemas) or ():
        scans.setdefault(name, []).append(conditions)
    return {
        name: Or(tuple(And(tuple(parts)) for parts in each))
        for name, each in scans.items()
        if all(each)
    }


def _restricted(planner: Planner, condition: Predicate) -> TableDataset:
    plan = planner.plan(condition)
    Recorder.of_engine().add(pruned=plan.report.total_files - plan.report.kept_files)
    return _Dataset(replace(planner, within=plan.rows))


class _Dataset(TableDataset):
    """A table with one part at least: DataFusion can neither sort nor join what has none."""

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Any]:  # noqa: A002
        """Yields the fragments that the filter needs, or one without rows."""
        found = list(super().get_fragments(filter))
        yield from found or (_NoRows(self.schema),)


@dataclass(frozen=True, slots=True)
class _NoRows:
    """A fragment without rows."""

    physical_schema: pa.Schema

    def scanner(self, *_schema: object, columns: Any = None, **_others: object) -> ds.Scanner:
        """Returns a scanner over nothing."""
        return ds.dataset(self.physical_schema.empty_table()).scanner(columns=columns)
