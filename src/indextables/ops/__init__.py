"""The verbs of a table, one module each: a plan computed from a snapshot, then its execution by an executor."""
