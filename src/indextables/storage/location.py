"""Where a table is: one reading of paths and URIs, for opening stores and for judging paths in actions."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

# Two letters at least: 'C:' is a drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_FAMILIES: Final = {
    "file": "file",
    "memory": "memory",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
}


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a store: 's3://b/t' and 's3a://b/t' are the same one.

    `family` is the kind of store, "" for a relative path; `authority` the bucket or container (for
    Azure with '@account' if the URI names it); `path` has no leading slash except for local files.
    """

    family: str
    authority: str
    path: str


def parse_location(uri: str) -> Location | None:
    """The place a path or URI names, nothing decoded; None for a scheme that is not known.

    Examples:
        >>> parse_location("s3a://bucket/my table")
        Location(family='s3', authority='bucket', path='my table')
        >>> parse_location("file:/tmp/t").path, parse_location("data/x").family
        ('/tmp/t', '')
    """
    found = _SCHEME.fullmatch(uri)
    if found is None:
        return Location("file" if uri.startswith("/") else "", "", uri)
    family = _FAMILIES.get(found[1].lower())
    if family is None:
        return None
    return _parse_rest(family, found[2])


def _parse_rest(family: str, rest: str) -> Location | None:
    if not rest.startswith("//"):
        # Java writes file:/x; no other scheme has a place without '//'
        return Location(family, "", rest) if family == "file" and rest.startswith("/") else None
    authority, slash, path = rest[2:].partition("/")
    if family == "file":
        authority = "" if authority == "localhost" else authority
        return Location(family, authority, slash + path)
    return Location(family, _account(authority) if family == "az" else authority, path)


def _account(authority: str) -> str:
    """`container@account`, without the host name's tail."""
    container, at, host = authority.partition("@")
    return f"{container}{at}{host.partition('.')[0]}"


def decode(text: str) -> str:
    """Percent-decoded once, as UTF-8 (UnicodeDecodeError if it is not); a stray '%' stays as it is."""
    return unquote_to_bytes(text).decode("utf-8") if "%" in text else text


def root_of(table_uri: str) -> Location | None:
    """The location of a table as a user writes it: real names, except that a file: URI is encoded.

    Object store URIs are not decoded: `s3://b/a%20b` is the prefix 'a%20b', as in the aws tool.
    """
    location = parse_location(table_uri)
    if location is None or location.family not in {"", "file"}:
        return location and Location(location.family, location.authority, location.path.strip("/"))
    path = decode(location.path) if table_uri[:5].lower() == "file:" else location.path
    return Location("file", location.authority, os.path.abspath(path))  # noqa: PTH100 - keeps links
