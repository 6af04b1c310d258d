"""Stores of bytes: a few calls with exact promises, on local disks, object stores and in memory."""

from indextables.storage.base import LogStore, ObjectMeta
from indextables.storage.location import LOG_DIRECTORY, action_path, action_paths, file_key, file_keys
from indextables.storage.open import open_store

__all__ = [
    "LOG_DIRECTORY",
    "LogStore",
    "ObjectMeta",
    "action_path",
    "action_paths",
    "file_key",
    "file_keys",
    "open_store",
]
