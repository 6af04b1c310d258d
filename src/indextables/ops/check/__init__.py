"""Checks the log, the files and the rows of a table without changing anything."""
