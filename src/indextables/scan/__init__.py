"""From a snapshot and a condition to the files a query must read."""
