"""Conditions of the rest of the world: Trino's and Presto's domains, Hive's search arguments, Substrait."""

from indextables.engines.exchange.hive import from_search_argument, to_search_argument
from indextables.engines.exchange.substrait import from_substrait
from indextables.engines.exchange.trino import from_tuple_domain, to_tuple_domain

__all__ = [
    "from_search_argument",
    "from_substrait",
    "from_tuple_domain",
    "to_search_argument",
    "to_tuple_domain",
]
