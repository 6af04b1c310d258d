"""Makes obstore's client from a location and options, and translates obstore's errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import obstore.store as clients
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PreconditionError,
    UnknownConfigurationKeyError,
)

from indextables.errors import (
    ConfigError,
    ObjectExistsError,
    ObjectNotFoundError,
    ReadOnlyStoreError,
    StorageError,
    redacted,
)
from indextables.storage.location import Location

# Options of the HTTP client; obstore takes everything else as options of the store.
_CLIENT_OPTIONS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_headers",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "read_timeout",
        "timeout",
        "user_agent",
    }
)
_ENDPOINT_OPTIONS: Final = (
    "endpoint",
    "endpoint_url",
    "aws_endpoint",
    "aws_endpoint_url",
    "aws_endpoint_url_s3",
    "azure_endpoint",
    "azure_storage_endpoint",
)
_PASSED_ON: Final = frozenset({"client_options", "retry_config", "credential_provider"})


def custom_endpoint(location: Location, options: Mapping[str, object]) -> str | None:
    """Returns the server that options or environment name instead of the cloud's own; None if they do not."""
    given = {name.lower(): value for name, value in options.items()}
    for name in _ENDPOINT_OPTIONS:
        if value := given.get(name):
            return str(value)
    for name in _ENDPOINT_OPTIONS:
        if (
            location.family == "s3"
            and name.startswith("aws_")
            and (value := os.environ.get(name.upper()))
        ):
            return str(value)
    return None


def make_client(location: Location, options: Mapping[str, object]) -> clients.ObjectStore:
    """Returns obstore's client for this location, without making a request.

    Raises ConfigError for an option that obstore does not have.
    """
    config, client_options, passed_on = _sorted_options(options)
    endpoint = custom_endpoint(location, options)
    if endpoint is not None and endpoint.startswith("http://"):
        # The user who writes http:// wants it.
        client_options.setdefault("allow_http", True)
    prefix = location.path or None
    make: Any  # three constructors that differ only in their options
    try:
        match location.family:
            case "s3":
                make, container = clients.S3Store, location.authority
            case "gs":
                make, container = clients.GCSStore, location.authority
            case _:
                container, _, account = location.authority.partition("@")
                make = clients.AzureStore
                if account:
                    config["account_name"] = account
        client: clients.ObjectStore = make(
            container, prefix=prefix, config=config, client_options=client_options, **passed_on
        )
    except UnknownConfigurationKeyError as error:
        raise ConfigError(
            f"a table at {location.family}:// does not have this option: {_headline(error)}",
            hint="options are obstore's: endpoint, region, access_key_id, secret_access_key, allow_http, …",
        ) from error
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise StorageError(
            f"cannot set up {location.family}://{location.authority}: {_headline(error)}",
            hint="give credentials and endpoint in storage_options or in the environment",
        ) from error
    return client


def _sorted_options(
    options: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, object], dict[str, object]]:
    config: dict[str, object] = {}
    passed_on: dict[str, Any] = {name: options[name] for name in options if name in _PASSED_ON}
    client: dict[str, object] = dict(passed_on.pop("client_options", None) or {})
    for name, value in options.items():
        if name.lower() in _CLIENT_OPTIONS:
            client[name.lower()] = value
        elif name not in _PASSED_ON:
            config[name] = value
    return config, client, passed_on


def _headline(error: BaseException) -> str:
    return str(error).partition("\n")[0]


# Obstore's errors as errors of this library, of which 'not found' and 'exists' mean exactly that.

# A 404 with one of these texts is about the bucket, which must not look like a missing object.
_NO_CONTAINER: Final = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")

_CODE: Final = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]+)</Message>")
# Patterns of what went wrong, and what to do about it; the first pattern that matches counts.
_ADVICE: Final = (
    ("|".join(_NO_CONTAINER), "create the bucket, or check its name, region and endpoint"),
    (
        r"(?i)access.?denied|forbidden|unauthori[sz]ed|signature|access.?key|token|credential",
        "check the credentials in storage_options or in the environment",
    ),
    (r"error sending request|dns error|timed out", "check the endpoint and the network"),
)


_first_used_by: list[int] = []


def _check_not_forked() -> None:
    """Raises StorageError in a process that was forked after requests were made.

    A fork does not copy the threads that do the client's work, so any request would wait for ever.
    """
    if not _first_used_by:
        _first_used_by.append(os.getpid())
    elif _first_used_by[0] != os.getpid():
        raise StorageError(
            "this process was forked from one that has used an object store, so it cannot use one itself",
            hint="start workers with the method 'spawn' or 'forkserver' (gunicorn: without --preload), or use "
            "no object store before the fork",
        )


def without_secrets(error: BaseException) -> BaseException | None:
    """Returns the error as a cause to be shown; None if its text holds a password or a signature."""
    return error if redacted(str(error)) == str(error) else None


@contextmanager
def translated_read(key: str) -> Iterator[None]:
    """Raises errors of a read as StorageError, and ObjectNotFoundError only if the object itself is missing."""
    _check_not_forked()
    try:
        yield
    except FileNotFoundError as error:
        if any(name in str(error) for name in _NO_CONTAINER):
            raise _failure(key, error) from without_secrets(error)
        raise ObjectNotFoundError(f"there is no object {key!r}", key=key) from error
    except (BaseError, OSError, ValueError) as error:
        raise _failure(key, error) from without_secrets(error)


@contextmanager
def translated_write(key: str) -> Iterator[None]:
    """Raises errors of a write as StorageError, and a failed condition as ObjectExistsError."""
    _check_not_forked()
    try:
        yield
    except (AlreadyExistsError, PreconditionError, FileExistsError) as error:
        raise ObjectExistsError(f"there is already an object {key!r}", key=key) from error
    except (NotSupportedError, NotImplementedError) as error:
        raise ReadOnlyStoreError(
            f"this store cannot write {key!r} exclusively: {_first_line(error)}",
            hint="do not switch off conditional writes (the option conditional_put)",
            key=key,
        ) from error
    except (BaseError, OSError, ValueError) as error:
        raise _failure(key, error) from without_secrets(error)


def _failure(key: str, error: BaseException) -> StorageError:
    if isinstance(error, InvalidPathError):
        hint: str | None = "rename or delete this object, because no key can name it"
    else:
        hint = next((advice for pattern, advice in _ADVICE if re.search(pattern, str(error))), None)
    return StorageError(f"{key!r}: {_first_line(error)}", hint=hint, key=key)


def _first_line(error: BaseException) -> str:
    """Returns what the server said if it said it in XML, else obstore's text without details for debugging."""
    said = str(error).partition("\n\nDebug source")[0]
    code, message = _CODE.search(said), _MESSAGE.search(said)
    if code is not None:
        return f"{message[1].strip().rstrip('.')} ({code[1]})" if message else code[1]
    return said.partition("\n")[0].partition("<?xml")[0].rstrip(" :")
