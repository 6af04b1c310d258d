"""Holds what users hold: the table and its scans."""
