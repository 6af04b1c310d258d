"""Expressions: values computed from columns, and what is known of each function that computes them."""
