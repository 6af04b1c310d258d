"""A query over tables by their paths, on a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb
import pyarrow as pa

from indextables.engines.duckdb.tables import register, sql
from indextables.errors import IndexTablesError, SqlSyntaxError, StorageError
from indextables.log.timestamps import parse_moment
from indextables.log.transaction_log import TransactionLog
from indextables.sql.select import Select, TableAt, find_tables
from indextables.storage.open import open_store

_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE_INTO", "DROP", "ALTER"})
_HINT: Final = 'this is for DuckDB\'s SQL; tables are written indextables.`path` or indextables."path"'


def query(text: str, *, storage_options: Mapping[str, object] | None = None) -> pa.Table:
    """Returns the result of DuckDB's SQL over ``indextables.`path` ``, in memory.

    Only the files that the query's conditions need are opened. An error of DuckDB's about the query
    becomes a SqlSyntaxError.
    """
    found = find_tables(text)
    connection = duckdb.connect()
    try:
        _check_reads_only(found)
        for name, table in found.tables.items():
            version = _version(table, storage_options)
            register(connection, name, table.path, version=version, storage_options=storage_options)
        relation = sql(connection, found.text)
        return pa.table({}) if relation is None else relation.to_arrow_table()
    except duckdb.Error as error:
        own = _own_error(error)
        if own is not None:
            raise own from error
        raise _failure(error) from error
    finally:
        connection.close()


def _check_reads_only(found: Select) -> None:
    if not found.tables:
        return
    for statement in duckdb.extract_statements(found.text):
        if statement.type.name in _WRITES:
            raise SqlSyntaxError(
                f"{statement.type.name} cannot reach a table through DuckDB",
                hint="write with Spark, or with the methods of indextables.Table",
            )


def _version(table: TableAt, storage_options: Mapping[str, object] | None) -> int | None:
    if table.timestamp is None:
        return table.version
    log = TransactionLog(open_store(table.path, options=storage_options))
    return log.snapshot(timestamp=parse_moment(table.timestamp)).version


def _failure(error: duckdb.Error) -> IndexTablesError:
    said = str(error).partition("\n")[0]
    if isinstance(error, duckdb.IOException) or ".parquet'" in said:
        return StorageError(
            said, hint="`indextables check` names every file that is missing or damaged"
        )
    return SqlSyntaxError(said, hint=_HINT)


def _own_error(error: BaseException) -> IndexTablesError | None:
    """Returns this library's error that DuckDB ran into while it read a table."""
    cause = error.__cause__ or error.__context__
    return cause if isinstance(cause, IndexTablesError) else None
