"""Changes rows by their record key: upsert, and delete and overwrite in tables with a key."""
