"""Reads and writes the files of the log: names, lines, actions, and the trailer that proves a file whole."""
