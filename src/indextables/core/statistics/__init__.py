"""What a split's statistics say: collected, merged, truncated, and written to the wire."""
