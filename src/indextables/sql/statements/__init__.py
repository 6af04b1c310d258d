"""Runs the statements: DESCRIBE, REPAIR, and what changes logs and slices."""
