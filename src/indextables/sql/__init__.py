"""SQL text to predicates and commands."""
