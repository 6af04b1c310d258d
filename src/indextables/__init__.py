"""IndexTables: Parquet tables whose log skips every file a query does not need."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from indextables import errors
from indextables._version import __version__

if TYPE_CHECKING:
    from indextables.core.column import col
    from indextables.query import QueryBuilder
    from indextables.scan.stats import query_stats
    from indextables.sql.predicate import parse_predicate
    from indextables.table import Table, convert

# Public names by the module they live in; loaded when they are first used, so that importing the
# package costs next to nothing and needs no engine.
_LAZY: Final = {
    "Table": "indextables.table",
    "convert": "indextables.table",
    "QueryBuilder": "indextables.query",
    "col": "indextables.core.column",
    "parse_predicate": "indextables.sql.predicate",
    "query_stats": "indextables.scan.stats",
}

__all__ = [
    "QueryBuilder",
    "Table",
    "__version__",
    "col",
    "convert",
    "errors",
    "parse_predicate",
    "query_stats",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
