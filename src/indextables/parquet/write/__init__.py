"""Writes rows into splits, delta files and curves of better splits; commits nothing."""
