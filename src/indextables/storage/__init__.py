"""Where bytes live: a few calls with exact promises, for local disks, object stores and memory."""
