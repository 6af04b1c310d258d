"""The transaction log: actions, their encoding, snapshots, checkpoints and commits."""
