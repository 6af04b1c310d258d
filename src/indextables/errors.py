"""Every error that this library raises, as one tree.

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
    │   ├── LogCorruptedError       a file of the log is torn or garbled (file and line)
    │   ├── VersionNotFoundError    the version or time is outside the history that is kept
    │   ├── LogReplacedError        the log was replaced while a writer was at work
    │   └── UnsafePathError         an action names a file outside the table
    ├── CommitError
    │   ├── CommitConflictError     another writer's commit excludes this one
    │   └── CommitStateUnknownError the store never said whether it has the commit
    ├── StorageError
    │   ├── ObjectNotFoundError     no object has that key
    │   ├── ObjectExistsError       an object already has that key
    │   └── ReadOnlyStoreError      this store cannot write safely
    ├── PredicateError              a condition that cannot be parsed or bound
    ├── SqlSyntaxError              a statement of this library is not written as it should be
    ├── RepairError                 a log that cannot be rebuilt without losing rows
    └── MissingDependencyError      an optional package is not installed

A message says what happened, `hint` says what to do about it, and the facts are attributes.
"""

from __future__ import annotations

import re
from typing import Any, Final

_PASSWORD: Final = re.compile(r"(?<=://)[^/\s:@'\"]*:[^/\s'\"]*(?=@)")
_SIGNED: Final = re.compile(
    r"(?i)([?&;](?:x-(?:amz|goog)-(?:signature|credential|security-token)|signature|sig|awsaccesskeyid"
    r"|googleaccessid|(?:access_|sas_)?token)=)[^&;\s'\"#]+"
)


def redacted(text: str) -> str:
    """Returns the text without the passwords of URLs and the signatures of pre-signed ones.

    >>> redacted("http://me:secret@host/b?X-Amz-Signature=abc&x=1")
    'http://***@host/b?X-Amz-Signature=***&x=1'
    """
    if "://" in text:
        text = _PASSWORD.sub("***", text)
    return _SIGNED.sub(r"\1***", text) if "=" in text else text


class IndexTablesError(Exception):
    """An error of this library: what happened, what to do about it, and the facts as attributes.

    Examples:
        >>> error = VersionNotFoundError("there is no version 7", hint="the newest is 5", version=7)
        >>> print(error)
        there is no version 7
          Help: the newest is 5
        >>> error.hint, error.facts
        ('the newest is 5', {'version': 7})
    """

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        message = redacted(message)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else redacted(hint)
        self.facts: dict[str, Any] = {
            name: redacted(value) if isinstance(value, str) else value for name, value in facts.items()
        }
        for name, value in self.facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message}\n  Help: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.facts)


def _rebuild(
    kind: type[IndexTablesError], message: str, hint: str | None, facts: dict[str, object]
) -> IndexTablesError:
    return kind(message, hint=hint, **facts)


class ConfigError(IndexTablesError, ValueError):
    """An option has a value it cannot have."""


class SchemaError(IndexTablesError, ValueError):
    """Something is wrong with a schema, or with data that should fit it."""


class SchemaMismatchError(SchemaError):
    """The data does not fit the table's schema."""


class SchemaEvolutionError(SchemaError):
    """The table's schema cannot be changed in this way."""


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
    """A table is already stored at this location."""

    __str__ = IndexTablesError.__str__


class ProtocolError(IndexTablesError):
    """The table needs a feature this version of the library does not have."""


class LogError(IndexTablesError):
    """Something is wrong with the transaction log."""


class LogCorruptedError(LogError):
    """A file of the log is torn, garbled or missing; `file` and `line` say where."""


class VersionNotFoundError(LogError, LookupError):
    """The version or time asked for lies outside the history that is kept."""


class LogReplacedError(LogError):
    """Another log took the place of this one while a writer was at work."""


class UnsafePathError(LogError):
    """An action names a file outside the table."""


class CommitError(IndexTablesError):
    """A commit was not made, or may not have been made."""


class CommitConflictError(CommitError):
    """Another writer's commit excludes this one."""


class CommitStateUnknownError(CommitError):
    """The store never said whether it has the commit; it may or may not be there."""


class StorageError(IndexTablesError, OSError):
    """The store failed; only ObjectNotFoundError means that an object is missing."""

    __str__ = IndexTablesError.__str__


class ObjectNotFoundError(StorageError, FileNotFoundError):
    """No object is stored under this key."""

    __str__ = IndexTablesError.__str__


class ObjectExistsError(StorageError, FileExistsError):
    """An object is already stored under this key."""

    __str__ = IndexTablesError.__str__


class ReadOnlyStoreError(StorageError):
    """This store cannot write safely, so nothing was written."""


class PredicateError(IndexTablesError, ValueError):
    """A condition cannot be parsed, or cannot be bound to the table's schema."""


class SqlSyntaxError(IndexTablesError, ValueError):
    """A statement begins like one of this library, but is not written like it; the hint shows the usage."""


class RepairError(LogError):
    """The log cannot be rebuilt without losing rows."""


class MissingDependencyError(IndexTablesError, ImportError):
    """An optional package is not installed; the hint names the extra that installs it."""

    __str__ = IndexTablesError.__str__
