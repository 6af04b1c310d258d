"""Knows where a Spark table is, and the settings and options (`mergeSchema`, `replaceWhere`) of its reads and writes."""
