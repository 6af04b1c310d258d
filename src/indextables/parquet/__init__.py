"""Reads and writes the rows of Parquet files with Arrow, in this process."""
