"""The transaction log: actions and their encoding, snapshots, checkpoints and commits."""
