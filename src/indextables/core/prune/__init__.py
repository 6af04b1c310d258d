"""Evaluates a condition over the statistics of all splits at once, in arrays."""
