"""The indextables command."""
