"""Builds queries as ArcticDB's QueryBuilder does, over pruned scans."""
