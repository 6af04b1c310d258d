"""IndexTables: Parquet tables whose log skips every file a query does not need."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from indextables import errors
from indextables._version import __version__

if TYPE_CHECKING:
    from indextables.core.predicate.col import col
    from indextables.engines import datafusion, duckdb
    from indextables.engines.polars import scan_polars
    from indextables.engines.spark.scan.scan_report import last_scan
    from indextables.engines.spark.session import enable
    from indextables.ops.repair import plan_repair, repair
    from indextables.plan.report import query_stats
    from indextables.sql.conditions.parser import parse_predicate
    from indextables.table.query.builder import QueryBuilder
    from indextables.table.recovery import check_table, describe_log
    from indextables.table.table import Table, convert

# The module of each public name. A name is loaded when it is first used, so that importing the package
# costs next to nothing and needs no engine.
_LAZY: Final = {
    "Table": "indextables.table.table",
    "check_table": "indextables.table.recovery",
    "describe_log": "indextables.table.recovery",
    "convert": "indextables.table.table",
    "QueryBuilder": "indextables.table.query.builder",
    "col": "indextables.core.predicate.col",
    "parse_predicate": "indextables.sql.conditions.parser",
    "query_stats": "indextables.plan.report",
    "scan_polars": "indextables.engines.polars",
    "plan_repair": "indextables.ops.repair",
    "repair": "indextables.ops.repair",
    "enable": "indextables.engines.spark.session",
    "last_scan": "indextables.engines.spark.scan.scan_report",
}
_MODULES: Final = {
    "datafusion": "indextables.engines.datafusion",
    "duckdb": "indextables.engines.duckdb",
}
# The optional packages behind these names, and the extra that installs each.
_EXTRAS: Final = {"pyspark": "spark", "duckdb": "duckdb", "polars": "polars", "pandas": "pandas"}

__all__ = [
    "QueryBuilder",
    "Table",
    "__version__",
    "check_table",
    "col",
    "convert",
    "datafusion",
    "describe_log",
    "duckdb",
    "enable",
    "errors",
    "last_scan",
    "parse_predicate",
    "plan_repair",
    "query_stats",
    "repair",
    "scan_polars",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = import_module(_MODULES[name]) if name in _MODULES else _imported(name)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        raise errors.MissingDependencyError(
            f"indextables.{name} needs {error.name}, which is not installed",
            hint=f"pip install 'indextables[{_EXTRAS[error.name]}]'",
            package=error.name,
        ) from error
    globals()[name] = value
    return value


def _imported(name: str) -> object:
    value: object = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
