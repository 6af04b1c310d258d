"""A table at one version: live splits as Arrow columns, with a bit for each row that is removed."""
