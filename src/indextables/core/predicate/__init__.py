"""Builds conditions as a tree, walks and reshapes them, and writes them as SQL."""
