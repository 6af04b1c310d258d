"""Finds the splits and slices that a query must read, and reports what was skipped and why."""
