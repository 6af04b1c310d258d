"""Adopts a directory of Parquet files as a table, in place."""
