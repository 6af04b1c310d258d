"""Queries built step by step, as ArcticDB's users know them."""

from indextables.query.builder import QueryBuilder

__all__ = ["QueryBuilder"]
