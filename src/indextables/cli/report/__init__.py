"""Reports on a table for people: text and HTML pages."""
