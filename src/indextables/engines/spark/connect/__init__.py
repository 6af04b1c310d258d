"""Spark Connect: plans in the client, reads with Spark."""
