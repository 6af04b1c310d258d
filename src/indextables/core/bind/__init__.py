"""Binds a condition to a schema: names resolved, literals coerced as Spark coerces them."""
