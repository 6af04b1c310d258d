"""Opens a log: lists it, reads a checkpoint, replays the commits after it; also history and cleanup."""
