"""Spark: native scans, native writes and SQL, from Python."""
