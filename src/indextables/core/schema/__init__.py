"""The types of columns, their names, and a schema's Arrow and JSON forms."""
