"""Obstore's errors as this library's, so that 'not found' and 'exists' mean exactly that."""

from __future__ import annotations

import re
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

_CODE: Final = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]+)</Message>")
# A sign of what is wrong, and what to do about it; the first that is found.
_ADVICE: Final = (
    ("|".join(_NO_CONTAINER), "create the bucket, or check its name, region and endpoint"),
    (
        r"(?i)access.?denied|forbidden|unauthori[sz]ed|signature|access.?key|token|credential",
        "check the credentials: storage_options, or those of the environment",
    ),
    (r"error sending request|dns error|timed out", "check the endpoint and the network"),
)


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
    if isinstance(error, InvalidPathError):
        hint: str | None = "rename or delete that object: no key can name it"
    else:
        hint = next((advice for sign, advice in _ADVICE if re.search(sign, str(error))), None)
    return StorageError(f"{key!r}: {_first_line(error)}", hint=hint, key=key)


def _first_line(error: BaseException) -> str:
    """What the server said, if it said so in XML; else what obstore says, without its debug text."""
    said = str(error).partition("\n\nDebug source")[0]
    code, message = _CODE.search(said), _MESSAGE.search(said)
    if code is not None:
        return f"{message[1].strip().rstrip('.')} ({code[1]})" if message else code[1]
    return said.partition("\n")[0].partition("<?xml")[0].rstrip(" :")
