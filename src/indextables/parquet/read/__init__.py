"""Reads the rows of splits and slices, and statistics from Parquet footers."""
