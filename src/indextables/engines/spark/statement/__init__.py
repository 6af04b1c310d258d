"""Reads Spark's own statements on a table and rewrites their plans."""
