"""Moves rows in and out of Parquet files with Arrow, in this process."""
