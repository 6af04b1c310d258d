"""Tables registered with DuckDB connections, and queries over them.

`register` alone skips files, because DuckDB hands its filters to the scan. `sql` first asks DuckDB's
optimiser which conditions stand above which table, plans with them, and lets DuckDB's own Parquet reader
run the query.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import duckdb
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from indextables.core.predicate.nodes import And, Or, Predicate
from indextables.engines.arrow.dataset import TableDataset
from indextables.engines.duckdb.optimised import scans_of, stand_in
from indextables.engines.duckdb.parameters import Params, with_values
from indextables.engines.duckdb.views import quoted, select_of
from indextables.engines.native_files import native_plan
from indextables.plan.planner import Planner
from indextables.storage.base import LogStore

if TYPE_CHECKING:
    from indextables.engines.duckdb.source import TableSource

_logger: Final = logging.getLogger(__name__)
_numbers: Final = itertools.count(1)
_registered: Final[WeakKeyDictionary[DuckDBPyConnection, dict[str, _Registered]]] = WeakKeyDictionary()
# PIVOT reads the data while it is planned; DuckDB must not expand a glob in the path of a table.
_RUNS_WHILE_PLANNED: Final = re.compile(r"\b(un)?pivot(_\w+)?\b", re.IGNORECASE)
_GLOB: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class _Registered:
    """A table of one connection; `source` is None if this DuckDB lacks the hook for it."""

    name: str
    planner: Planner
    source: TableSource | None


def register(
    connection: DuckDBPyConnection,
    name: str,
    table: str | Path | LogStore,
    *,
    version: int | None = None,
    read_optimized: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Makes a table queryable under a name. Every query opens only the files its filters need.

    The version stays the one of this moment, or the one asked for, until the table is registered again.

    Args:
        connection: The DuckDB connection.
        name: The name of the table in queries.
        table: The table's path or URI, or a store.
        version: The version to read; the newest without it.
        read_optimized: Leave delta files out: the rows are those of the last compaction.
        storage_options: Credentials and endpoints of an object store.

    Raises:
        TableNotFoundError: There is no table at this path.

    Example:
        >>> import duckdb, indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://duckdb.register", pa.schema({"n": pa.int64()}))
        >>> _ = table.append(pa.table({"n": [1, 2]}))
        >>> connection = duckdb.connect()
        >>> it.duckdb.register(connection, "numbers", "memory://duckdb.register")
        >>> connection.sql("SELECT sum(n) FROM numbers").fetchall()
        [(3,)]
    """
    planner = Planner.open(
        table, version=version, storage_options=storage_options, read_optimized=read_optimized
    )
    found = _Registered(name, planner, _source(connection, planner))
    unregister(connection, name)
    _show(connection, found)
    _registered.setdefault(connection, {})[name.lower()] = found


def unregister(connection: DuckDBPyConnection, name: str) -> None:
    """Forgets a table; does nothing if there is none of that name.

    Args:
        connection: The DuckDB connection.
        name: The name it was registered under.

    Example:
        >>> import duckdb, indextables as it
        >>> import pyarrow as pa
        >>> _ = it.Table.create("memory://duckdb.unregister", pa.schema({"n": pa.int64()}))
        >>> connection = duckdb.connect()
        >>> it.duckdb.register(connection, "numbers", "memory://duckdb.unregister")
        >>> it.duckdb.unregister(connection, "numbers")
    """
    found = _registered.get(connection, {}).pop(name.lower(), None)
    if found is None:
        return
    connection.unregister(found.name)


def sql(
    connection: DuckDBPyConnection,
    query: str,
    params: Params = None,
) -> DuckDBPyRelation | None:
    """Runs a query over registered tables with DuckDB's own Parquet reader, over only the files it needs.

    It runs on the connection itself, with its transaction, its settings and its other tables. A query that
    cannot be planned beforehand runs like any other, and `register` still skips files for it.

    Args:
        connection: The DuckDB connection.
        query: The query.
        params: Values for the query's parameters.

    Returns:
        A relation that holds the rows; None if the statement has no result.

    Example:
        >>> import duckdb, indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://duckdb.sql", pa.schema({"n": pa.int64()}))
        >>> _ = table.append(pa.table({"n": [1, 2]}))
        >>> connection = duckdb.connect()
        >>> it.duckdb.register(connection, "numbers", "memory://duckdb.sql")
        >>> it.duckdb.sql(connection, "SELECT count(*) FROM numbers WHERE n > 1").fetchall()
        [(1,)]
    """
    tables = _registered.get(connection, {})
    needed = _conditions(connection, query, params, tables) if _is_plannable(query, tables) else None
    if not needed:
        return connection.sql(query, params=params)
    with _pruned(connection, {name: tables[name] for name in needed}, needed) as selects:
        pruned = shadowed(query, selects) if selects else None
        relation = connection.sql(pruned or query, params=params)
        # its rows must be read before the relations of `_pruned` are unregistered
        return relation.materialize()


def _source(connection: DuckDBPyConnection, planner: Planner) -> TableSource | None:
    if not hasattr(connection, "_register_arrow_source"):
        return None
    try:
        from indextables.engines.duckdb.source import TableSource  # noqa: PLC0415 - needs a private module
    except ImportError:
        return None
    return TableSource(planner)


def _show(connection: DuckDBPyConnection, table: _Registered) -> None:
    """Makes the table visible under its name, read by this library's reader."""
    if table.source is None:
        connection.register(table.name, TableDataset(table.planner))
    else:
        connection._register_arrow_source(table.name, table.source)  # noqa: SLF001 - tested for


def _is_plannable(query: str, tables: Mapping[str, _Registered]) -> bool:
    return bool(tables) and is_select(query) and not _RUNS_WHILE_PLANNED.search(query)


def _conditions(
    connection: DuckDBPyConnection, query: str, params: Params, tables: Mapping[str, _Registered]
) -> dict[str, Predicate | None] | None:
    """Returns, for each table of the query, the condition on rows that matter; None there means that any may.

    Returns None if the query cannot be planned beforehand. A table without a scan in the plan is left out: it
    is read through its source, which plans for itself.
    """
    text = query.lower()
    named = [table for name, table in tables.items() if name in text or '"' in name]
    schemas = [table.planner.schema for table in named]
    stand_ins = {t.name: stand_in(i, t.planner.schema) for i, t in enumerate(named)}
    try:
        constant = query if params is None else with_values(connection, query, params)
        probe = shadowed(constant, stand_ins) if constant and stand_ins else None
        scans = None if probe is None else scans_of(connection, probe, schemas)
    except duckdb.Error:
        return None  # running the query will say what is wrong
    found: dict[str, list[Predicate | None]] = {}
    for scan in scans or ():
        if scan.table >= 0:
            condition = And(tuple(scan.conditions)) if scan.conditions else None
            found.setdefault(named[scan.table].name.lower(), []).append(condition)
    return {name: _any(conditions) for name, conditions in found.items()}


def _any(conditions: Sequence[Predicate | None]) -> Predicate | None:
    """Returns the condition that covers what several scans need; None if one of them needs everything."""
    known = tuple(condition for condition in conditions if condition is not None)
    return Or(known) if len(known) == len(conditions) else None


@contextmanager
def _pruned(
    connection: DuckDBPyConnection,
    tables: Mapping[str, _Registered],
    needed: Mapping[str, Predicate | None],
) -> Iterator[dict[str, str]]:
    """Yields, for each table, a SELECT with DuckDB's own reader over the files that are needed."""
    rests: list[str] = []
    selects: dict[str, str] = {}
    try:
        for name, table in tables.items():
            if not _GLOB.search(table.planner.store.uri):
                selects[table.name] = _select_pruned(connection, table, needed[name], rests)
        yield selects
    finally:
        for rest in rests:
            # the name is not used again, so it may stay if the connection is busy or its transaction failed
            with suppress(duckdb.Error):
                connection.unregister(rest)


def _select_pruned(
    connection: DuckDBPyConnection, table: _Registered, condition: Predicate | None, rests: list[str]
) -> str:
    """Returns a SELECT over the files that the condition needs.

    Files that this library's reader must read become a relation, whose name is added to `rests`.
    """
    planner = table.planner
    plan = planner.plan(condition)
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


# SELECTs in place of tables for one query, with nothing else on the connection changed.


_WITH: Final = re.compile(rb"WITH(\s+RECURSIVE\b)?", re.IGNORECASE)


def shadowed(query: str, tables: Mapping[str, str]) -> str | None:
    """Returns the query with these names standing for these SELECTs; None if it cannot take a WITH.

    A name in WITH hides the table for this query alone. A view replaced for as long as the query runs
    would be seen by other threads of the connection, and would stay if it could not be put back. What
    reaches the table in another way, through a view of the user's or as `temp.name`, still sees all of it.
    """
    text = query.encode()  # positions of tokens count bytes
    start = next((at for at, kind in duckdb.tokenize(query) if kind != duckdb.token_type.comment), 0)
    own = _WITH.match(text, start)
    # a materialised result would be read whole, even if each use of it asks for less
    parts = [f"{quoted(name)} AS NOT MATERIALIZED ({select})" for name, select in tables.items()]
    head, tail = (text[: own.end()], text[own.end() :]) if own else (b"WITH", text)
    changed = b" ".join((head, ", ".join(parts).encode() + b"," * bool(own), tail)).decode()
    return changed if is_select(changed) else None


def is_select(query: str) -> bool:
    """Returns True if the text is one statement that only reads."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error:  # its own WITH may have the name already, and DESCRIBE takes none
        return False
    return len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
