"""Finds the splits and slices a query needs, and reports what it could skip and why."""
