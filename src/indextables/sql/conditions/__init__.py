"""Parses a condition as Spark SQL means it; what it cannot read becomes opaque and keeps every split."""
