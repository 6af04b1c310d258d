"""Builds queries as ArcticDB's QueryBuilder does, and runs them over the files they need."""
