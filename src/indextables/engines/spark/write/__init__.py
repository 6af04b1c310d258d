"""Writes splits with Spark: rows fitted, files written, statistics gathered."""
