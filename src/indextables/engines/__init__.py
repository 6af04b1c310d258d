"""Adapters for query engines; only the folder of an engine imports it."""
