"""Fixtures that several folders share; each is defined in tests/support."""

from support.s3 import s3_server

__all__ = ["s3_server"]
