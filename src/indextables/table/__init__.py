"""What users hold: the table, its scans and its queries."""
