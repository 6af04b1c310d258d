"""Every error this library raises, as one tree.

    IndexTablesError
    ├── ConfigError                 an option has a value it cannot have
    ├── SchemaError
    │   ├── SchemaMismatchError     the data does not fit the table
    │   ├── SchemaEvolutionError    this change of schema is not possible
    │   ├── UnsupportedTypeError    the format cannot hold this type
    │   ├── DuplicateKeyError       two rows of the data have the same record key
    │   └── UnknownColumnError      no such column
    ├── TableError
    │   ├── TableNotFoundError      nothing is there
    │   ├── NotATableError          something else is there
    │   └── TableExistsError        a table is there already
    ├── ProtocolError               the table needs a newer version of this library
    ├── LogError
    │   ├── LogCorruptedError       a log file is torn or garbled (file and line)
    │   ├── VersionNotFoundError    outside the history that is kept
    │   ├── LogReplacedError        the log was replaced while we wrote
    │   └── UnsafePathError         an action names a file outside the table
    ├── CommitError
    │   ├── CommitConflictError     another writer's commit excludes this one
    │   └── CommitStateUnknownError the store never said whether the commit landed
    ├── StorageError
    │   ├── ObjectNotFoundError     no object under that key
    │   ├── ObjectExistsError       put_if_absent found the key taken
    │   └── ReadOnlyStoreError      this store cannot write safely
    ├── PredicateError              a condition that cannot be parsed or bound
    ├── SqlSyntaxError              a command of ours that is not written as it should be
    ├── RepairError                 a log that cannot be rebuilt without losing rows
    └── MissingDependencyError      an optional package is not installed

A message says what happened; `hint` says what to do about it; the facts are attributes.
"""

from __future__ import annotations

from typing import Any


class IndexTablesError(Exception):
    """What happened, what to do about it (`hint`), and the facts as attributes."""

    def __init__(self, message: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message}\n  Help: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.facts)


def _rebuild(
    kind: type[IndexTablesError], message: str, hint: str | None, facts: dict[str, Any]
) -> IndexTablesError:
    return kind(message, hint=hint, **facts)


class ConfigError(IndexTablesError, ValueError):
    """An option has a value it cannot have."""


class SchemaError(IndexTablesError, ValueError):
    """Something about the schema is wrong."""


class SchemaMismatchError(SchemaError):
    """The data does not fit the table's schema."""


class SchemaEvolutionError(SchemaError):
    """The table's schema cannot change in this way."""


class UnsupportedTypeError(SchemaError):
    """The format cannot hold this type."""


class DuplicateKeyError(SchemaError):
    """Two rows of the data have the same record key."""


class UnknownColumnError(SchemaError, KeyError):
    """No column of the table has this name."""

    __str__ = IndexTablesError.__str__


class TableError(IndexTablesError):
    """The table as a whole is not what the call needs."""


class TableNotFoundError(TableError, FileNotFoundError):
    """Nothing is stored at this location."""

    __str__ = IndexTablesError.__str__


class NotATableError(TableError):
    """There is something at this location, but it is not a table."""


class TableExistsError(TableError, FileExistsError):
    """A table is stored at this location already."""

    __str__ = IndexTablesError.__str__


class ProtocolError(IndexTablesError):
    """The table needs a feature this version of the library does not have."""


class LogError(IndexTablesError):
    """Something is wrong with the transaction log."""


class LogCorruptedError(LogError):
    """A log file is torn, garbled or missing; `file` and `line` say where."""


class VersionNotFoundError(LogError, LookupError):
    """The version or time asked for lies outside the history that is kept."""


class LogReplacedError(LogError):
    """The log was replaced by another one while this writer was at work."""


class UnsafePathError(LogError):
    """An action names a file outside the table."""


class CommitError(IndexTablesError):
    """A commit did not happen, or may not have."""


class CommitConflictError(CommitError):
    """A commit of another writer excludes this one."""


class CommitStateUnknownError(CommitError):
    """The store never said whether the commit was written; it may or may not be there."""


class StorageError(IndexTablesError, OSError):
    """The store failed; only ObjectNotFoundError means that something is missing."""

    __str__ = IndexTablesError.__str__


class ObjectNotFoundError(StorageError, FileNotFoundError):
    """No object is stored under this key."""

    __str__ = IndexTablesError.__str__


class ObjectExistsError(StorageError, FileExistsError):
    """put_if_absent found an object under this key."""

    __str__ = IndexTablesError.__str__


class ReadOnlyStoreError(StorageError):
    """This store cannot write safely, so it does not write."""


class PredicateError(IndexTablesError, ValueError):
    """A condition that cannot be parsed, or cannot be bound to the table's schema."""


class SqlSyntaxError(IndexTablesError, ValueError):
    """A statement that begins like a command of ours and goes on like none.

    The hint shows the usage.
    """


class RepairError(LogError):
    """The log cannot be rebuilt without losing rows."""


class MissingDependencyError(IndexTablesError, ImportError):
    """An optional package is not installed; the hint names the extra that brings it."""

    __str__ = IndexTablesError.__str__
