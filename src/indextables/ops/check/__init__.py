"""Checks a table: its log, its files and its rows, without changing anything."""
