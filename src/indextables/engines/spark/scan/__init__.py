"""Plans Spark's native Parquet scan: conditions, file index, slices, reports."""
