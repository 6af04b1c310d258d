"""Commits a version: what a writer wants, one exclusive put, and what it does when it loses the race."""
