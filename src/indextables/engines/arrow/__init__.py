"""Reads Arrow's expressions, and shows a table as an Arrow dataset."""
