"""Obstore's errors as this library's, so that 'not found' and 'exists' mean exactly that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PreconditionError,
)

from indextables.errors import ObjectExistsError, ObjectNotFoundError, ReadOnlyStoreError, StorageError

# A 404 about these is not about the object: a wrong bucket must not look like a missing file.
_NO_CONTAINER: Final = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")


@contextmanager
def reading(key: str) -> Iterator[None]:
    """Obstore's errors as ours: 'not found' only if the object is what was not found."""
    try:
        yield
    except FileNotFoundError as error:
        if any(name in str(error) for name in _NO_CONTAINER):
            raise _failure(key, error) from error
        raise ObjectNotFoundError(f"there is no object {key!r}", key=key) from error
    except (BaseError, OSError, ValueError) as error:
        raise _failure(key, error) from error


@contextmanager
def writing(key: str) -> Iterator[None]:
    """The same for writes, where nothing means 'not found' and a broken condition means 'exists'."""
    try:
        yield
    except (AlreadyExistsError, PreconditionError, FileExistsError) as error:
        raise ObjectExistsError(f"there is already an object {key!r}", key=key) from error
    except (NotSupportedError, NotImplementedError) as error:
        raise ReadOnlyStoreError(
            f"this store cannot write {key!r} exclusively: {_first_line(error)}",
            hint="do not switch conditional writes off (conditional_put)",
            key=key,
        ) from error
    except (BaseError, OSError, ValueError) as error:
        raise _failure(key, error) from error


def _failure(key: str, error: BaseException) -> StorageError:
    hint = (
        "rename or delete that object: no key can name it"
        if isinstance(error, InvalidPathError)
        else None
    )
    return StorageError(f"{key!r}: {_first_line(error)}", hint=hint, key=key)


def _first_line(error: BaseException) -> str:
    # what follows is obstore's debug text: pages of nested structures
    return str(error).partition("\n\nDebug source")[0].partition("\n")[0]
