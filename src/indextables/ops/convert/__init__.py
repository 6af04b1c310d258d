"""Makes a table of a directory of Parquet files, in place."""
