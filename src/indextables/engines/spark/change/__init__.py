"""Changes tables with Spark: inserts, updates, merges and deletes, with and without a key."""
