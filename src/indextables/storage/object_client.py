"""From a URI and options to obstore's client: which option goes where, and which endpoints to mistrust."""

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


def custom_endpoint(location: Location, options: Mapping[str, Any]) -> str | None:
    """Returns the server that the user put in the place of the cloud's own, from options or environment."""
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


def make_client(location: Location, options: Mapping[str, Any]) -> Any:
    """Returns Obstore's client for this place.

    No request is made. ConfigError for an option it does not have.
    """
    config, client_options, passed_on = _sorted_options(options)
    endpoint = custom_endpoint(location, options)
    if endpoint is not None and endpoint.startswith("http://"):
        # whoever writes http:// has already decided
        client_options.setdefault("allow_http", True)
    prefix = location.path or None
    make: Any  # three constructors that differ only in the options they know
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
        return make(container, prefix=prefix, config=config, client_options=client_options, **passed_on)
    except UnknownConfigurationKeyError as error:
        raise ConfigError(
            f"{location.family}:// has no such option: {_headline(error)}",
            hint="options are obstore's: endpoint, region, access_key_id, secret_access_key, allow_http, …",
        ) from error
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise StorageError(
            f"cannot set up {location.family}://{location.authority}: {_headline(error)}",
            hint="give credentials and endpoint as options, or in the environment",
        ) from error


def _sorted_options(
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    config: dict[str, Any] = {}
    passed_on = {name: value for name, value in options.items() if name in _PASSED_ON}
    client: dict[str, Any] = dict(passed_on.pop("client_options", None) or {})
    for name, value in options.items():
        if name.lower() in _CLIENT_OPTIONS:
            client[name.lower()] = value
        elif name not in _PASSED_ON:
            config[name] = value
    return config, client, passed_on


def _headline(error: BaseException) -> str:
    return str(error).partition("\n")[0]


# Obstore's errors as this library's, so that 'not found' and 'exists' mean exactly that.

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
    """Returns what the server said, if it said so in XML.

    Else what obstore says, without its debug text.
    """
    said = str(error).partition("\n\nDebug source")[0]
    code, message = _CODE.search(said), _MESSAGE.search(said)
    if code is not None:
        return f"{message[1].strip().rstrip('.')} ({code[1]})" if message else code[1]
    return said.partition("\n")[0].partition("<?xml")[0].rstrip(" :")
