"""Adapters for query engines; each folder alone imports its engine."""
