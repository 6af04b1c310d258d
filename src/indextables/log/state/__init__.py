"""Holds a table at one version: live splits as columns, one bit per row for the dead."""
