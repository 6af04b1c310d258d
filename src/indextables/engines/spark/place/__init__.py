"""Knows where a Spark table is: Hadoop paths and stores, sessions' settings, options."""
