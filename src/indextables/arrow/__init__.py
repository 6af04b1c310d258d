"""The embedded engine: reads and writes splits with Arrow, without a JVM."""
