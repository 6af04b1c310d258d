"""Talks to the JVM: the gateway, callbacks into Python, handles and attributes."""
