"""Conditions as a tree: built, walked, reshaped and written as SQL."""
