"""Tables registered with DuckDB connections, and queries over them.

`register` alone prunes: DuckDB hands its filters to the scan. `sql` asks DuckDB's optimiser first
which filters reach which table, plans with them, and lets DuckDB's own Parquet reader run the query.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import duckdb

from indextables.core.predicate.nodes import And, Or, Predicate
from indextables.engines.arrow.dataset import TableDataset
from indextables.engines.duckdb.explain import explain
from indextables.engines.duckdb.shadow import is_select, shadowed
from indextables.engines.duckdb.views import quoted, select_of
from indextables.engines.native_files import native_plan
from indextables.plan.planner import Planner
from indextables.storage.base import LogStore

_logger: Final = logging.getLogger(__name__)
_numbers: Final = itertools.count(1)
_registered: Final[WeakKeyDictionary[Any, dict[str, _Registered]]] = WeakKeyDictionary()
# PIVOT looks at the data while it is planned; a glob in the path of a table is not for DuckDB to expand.
_RUNS_WHILE_PLANNED: Final = re.compile(r"\b(un)?pivot(_\w+)?\b", re.IGNORECASE)
_GLOB: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class _Registered:
    """A table of one connection; `source` is None where DuckDB lacks the hook for one."""

    name: str
    planner: Planner
    source: Any | None

    @property
    def source_name(self) -> str:
        return f"__indextables_{self.source.reference}" if self.source else self.name


def register(
    connection: Any,
    name: str,
    table: str | Path | LogStore,
    *,
    version: int | None = None,
    read_optimized: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Makes the table queryable under a name; every query opens only the files its filters need.

    It is the version of this moment, or the one asked for, until it is registered again. With
    `read_optimized` log files are left out: rows are those of the last compaction.
    """
    planner = Planner.open(
        table, version=version, storage_options=storage_options, read_optimized=read_optimized
    )
    found = _Registered(name, planner, _source(connection, planner))
    unregister(connection, name)
    _show(connection, found)
    _registered.setdefault(connection, {})[name.lower()] = found


def unregister(connection: Any, name: str) -> None:
    """Forgets a table; nothing happens if there is none of that name."""
    found = _registered.get(connection, {}).pop(name.lower(), None)
    if found is None:
        return
    connection.execute(f"DROP VIEW IF EXISTS temp.{quoted(found.name)}")
    if found.source is not None:
        connection.unregister(found.source_name)


def sql(connection: Any, query: str, params: Sequence[Any] | Mapping[str, object] | None = None) -> Any:
    """Returns the result of a query over registered tables, as a relation that holds its rows.

    Runs on the connection itself: its transaction, its settings, its other tables. What cannot be
    planned beforehand runs like any query: `register` prunes there too.
    """
    tables = _registered.get(connection, {})
    needed = _filters(connection, query, params, tables) if _is_plannable(query, tables) else None
    if not needed:
        return connection.sql(query, params=params)
    with _pruned(connection, {name: tables[name] for name in needed}, needed) as selects:
        pruned = shadowed(query, selects) if selects else None
        relation = connection.sql(pruned or query, params=params)
        # its rows must be read while the relations of our reader are there
        return relation.materialize() if hasattr(relation, "materialize") else relation.execute()


def _source(connection: Any, planner: Planner) -> Any | None:
    if not hasattr(connection, "_register_arrow_source"):
        return None
    try:
        from indextables.engines.duckdb.source import TableSource  # noqa: PLC0415 - needs a private module
    except ImportError:
        return None
    return TableSource(planner, next(_numbers))


def _show(connection: Any, table: _Registered) -> None:
    """The table under its name, as our reader reads it."""
    if table.source is None:
        connection.register(table.name, TableDataset(table.planner))
        return
    from indextables.engines.duckdb.source import REFERENCE  # noqa: PLC0415 - needs a private module

    connection._register_arrow_source(table.source_name, table.source)  # noqa: SLF001 - tested for
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {quoted(table.name)} AS "  # noqa: S608 - quoted
        f"SELECT * EXCLUDE ({quoted(REFERENCE)}) FROM {quoted(table.source_name)} "
        f"WHERE {quoted(REFERENCE)} = {table.source.reference}"
    )


def _is_plannable(query: str, tables: Mapping[str, _Registered]) -> bool:
    if not tables or any(table.source is None for table in tables.values()):
        return False
    return is_select(query) and not _RUNS_WHILE_PLANNED.search(query)


def _filters(
    connection: Any, query: str, params: Any, tables: Mapping[str, _Registered]
) -> dict[str, Predicate | None] | None:
    """For each table of the query the condition its rows must satisfy to matter; None: any may matter.

    None for all of them if the query could not be explained. A table that no scan was found of is left
    out: whatever is done with it goes through its source, which plans for itself.
    """
    for table in tables.values():
        table.source.offered.clear()  # type: ignore[union-attr] # _is_plannable
    try:
        plan = explain(connection, query, params)
    except (duckdb.Error, ValueError):
        return None  # the query itself will say what is wrong
    scans: dict[str, list[Predicate | None]] = {name: [] for name in tables}
    for operator in plan:
        for name, table in tables.items():
            if table.source is not None and table.source.reference_filter in operator.filters:
                scans[name].append(_condition(table, operator.filters))
    return {name: _any(conditions) for name, conditions in scans.items() if conditions}


def _condition(table: _Registered, filters: Sequence[str]) -> Predicate | None:
    """Returns all filters of one scan that the table's source was offered."""
    assert table.source is not None
    offered = dict(table.source.offered)  # another thread may clear it
    known = tuple(offered[f] for f in filters if f in offered)
    return And(known) if known else None


def _any(conditions: Sequence[Predicate | None]) -> Predicate | None:
    """Returns what one of several scans needs."""
    known = tuple(condition for condition in conditions if condition is not None)
    return Or(known) if len(known) == len(conditions) else None


@contextmanager
def _pruned(
    connection: Any, tables: Mapping[str, _Registered], needed: Mapping[str, Predicate | None]
) -> Iterator[dict[str, str]]:
    """For each table the SELECT of DuckDB's own reader over the files that are needed."""
    rests: list[str] = []
    selects: dict[str, str] = {}
    try:
        for name, table in tables.items():
            if not _GLOB.search(table.planner.store.uri):
                selects[table.name] = _select_pruned(connection, table, needed[name], rests)
        yield selects
    finally:
        for rest in rests:
            # nobody knows its name: it may stay if the connection is busy or its transaction failed
            with suppress(duckdb.Error):
                connection.unregister(rest)


def _select_pruned(
    connection: Any, table: _Registered, condition: Predicate | None, rests: list[str]
) -> str:
    """Of the files the condition needs.

    Those our reader must read become a relation, named in `rests`.
    """
    planner = table.planner
    plan = planner.plan_bound(condition)
    found = native_plan(plan, planner.store)
    found.counted(plan)
    rest = None
    if found.others.any():
        rest = f"__indextables_rest_{next(_numbers)}"
        connection.register(rest, TableDataset(replace(planner, within=found.others)))
        rests.append(rest)
    _logger.debug(
        "Table %s reads %d of %d files", table.name, plan.report.kept_files, plan.report.total_files
    )
    return select_of(found.groups, planner.schema, rest)
