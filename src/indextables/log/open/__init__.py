"""Opens a log: listing, checkpoints, replay of the commits after them, history and its cleanup."""
