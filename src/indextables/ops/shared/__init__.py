"""Shares what several verbs need: commit results, the executor, schemas, record keys."""
