"""Knows where a Spark table is: Hadoop paths and stores, settings of sessions, options."""
