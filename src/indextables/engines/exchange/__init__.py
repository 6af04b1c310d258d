"""Conditions of other systems, in and out.

Trino's and Presto's domains, Hive's search arguments, Substrait, and expressions of PyArrow, Polars and
DuckDB. Each reader is loaded when its function is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from indextables.engines.arrow.conditions import predicate_of as from_pyarrow
    from indextables.engines.duckdb import from_duckdb
    from indextables.engines.exchange.hive import from_search_argument, to_search_argument
    from indextables.engines.exchange.substrait import from_substrait
    from indextables.engines.exchange.trino import from_tuple_domain, to_tuple_domain
    from indextables.engines.polars import predicate_of as from_polars

# The module of each function, loaded with the library it needs when the function is first used.
_LAZY: Final = {
    "from_duckdb": ("indextables.engines.duckdb", "from_duckdb"),
    "from_polars": ("indextables.engines.polars", "predicate_of"),
    "from_pyarrow": ("indextables.engines.arrow.conditions", "predicate_of"),
    "from_search_argument": ("indextables.engines.exchange.hive", "from_search_argument"),
    "from_substrait": ("indextables.engines.exchange.substrait", "from_substrait"),
    "from_tuple_domain": ("indextables.engines.exchange.trino", "from_tuple_domain"),
    "to_search_argument": ("indextables.engines.exchange.hive", "to_search_argument"),
    "to_tuple_domain": ("indextables.engines.exchange.trino", "to_tuple_domain"),
}

__all__ = [
    "from_duckdb",
    "from_polars",
    "from_pyarrow",
    "from_search_argument",
    "from_substrait",
    "from_tuple_domain",
    "to_search_argument",
    "to_tuple_domain",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, found = _LAZY[name]
    return getattr(import_module(module), found)
