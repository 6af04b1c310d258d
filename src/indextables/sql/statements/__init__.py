"""Runs the statements of this library: DESCRIBE, REPAIR, and those that maintain logs and slices."""
