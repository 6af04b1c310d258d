"""Conditions evaluated over the statistics of all splits at once."""
