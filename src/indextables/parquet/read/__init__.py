"""Reads splits and slices into rows, and statistics from Parquet footers."""
