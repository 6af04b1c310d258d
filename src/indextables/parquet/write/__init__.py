"""Writes rows as splits and delta files, sorted along a curve if wanted; commits nothing."""
