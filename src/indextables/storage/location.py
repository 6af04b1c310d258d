"""Parses locations of tables, and turns paths in actions into keys and back."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import UnsafePathError
from indextables.storage.base import check_new_key, why_not_a_key

# A scheme has two letters or more, because 'C:' is a drive.
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
    """A path in a store; 's3://b/t' and 's3a://b/t' are the same location.

    `family` is the kind of store, and "" for a relative path. `authority` is the bucket or container (for
    Azure with '@account' if the URI has it). `path` has no leading slash except for local files.
    """

    family: str
    authority: str
    path: str


def parse_location(uri: str) -> Location | None:
    """Returns the location that a path or URI names, without decoding it; None if its scheme is not known.

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
        # Java writes file:/x; every other scheme needs '//'
        return Location(family, "", rest) if family == "file" and rest.startswith("/") else None
    authority, slash, path = rest[2:].partition("/")
    if family == "file":
        authority = "" if authority == "localhost" else authority
        return Location(family, authority, slash + path)
    return Location(family, _account(authority) if family == "az" else authority, path)


def _account(authority: str) -> str:
    """Returns `container@account` without the rest of the host name."""
    container, at, host = authority.partition("@")
    return f"{container}{at}{host.partition('.')[0]}"


def decode(text: str) -> str:
    """Returns the text percent-decoded once; a '%' that encodes nothing is kept.

    Raises UnicodeDecodeError if the result is not UTF-8.
    """
    return unquote_to_bytes(text).decode("utf-8") if "%" in text else text


def root_of(table_uri: str) -> Location | None:
    """Returns the location of a table from what a user wrote; None if its scheme is not known.

    Only a file: URI is percent-decoded: `s3://b/a%20b` is the prefix 'a%20b', as in the aws tool.
    """
    location = parse_location(table_uri)
    if location is None or location.family not in {"", "file"}:
        return location and Location(location.family, location.authority, location.path.strip("/"))
    path = decode(location.path) if table_uri[:5].lower() == "file:" else location.path
    return Location("file", location.authority, os.path.abspath(path))  # noqa: PTH100 - keeps links


# Paths in actions are not trusted: each becomes the key of a file in this table, or an error.

LOG_DIRECTORY: Final = "_transaction_log"
# Characters besides letters, digits and '_.-~' that are not encoded in a path. A ':' is encoded, since a
# first segment with it would look like a scheme.
_PLAIN: Final = "/=,@+$&!'()*;"
# Matches every path that may not be a key as it is; one scan of a column finds all of these paths.
_SUSPICIOUS: Final = rf"[%:\\\x00-\x1f\x7f-\x{{9f}}]|//|^/|/$|^$|(^|/)\.\.?(/|$)|^{LOG_DIRECTORY}(/|$)"
_NEEDS_ENCODING: Final = r"[^A-Za-z0-9_.~/=,@+$&!'()*;-]"
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


def file_key(path: str, table_uri: str) -> str:
    """Returns the key of the file that an action's `path` names.

    The path is percent-decoded once, and an absolute URI under the table's root becomes relative. Raises
    UnsafePathError if the file is not in this table.

    Examples:
        >>> file_key("data/a%20b.parquet", "/tables/t")
        'data/a b.parquet'
        >>> file_key("s3a://bucket/t/x.parquet", "s3://bucket/t")
        'x.parquet'
    """
    try:
        key = _relative(path, table_uri) if _ABSOLUTE.match(path) else decode(path)
    except UnicodeDecodeError as error:
        raise _unsafe(path, table_uri, "it is not UTF-8 once decoded") from error
    if reason := why_not_a_key(key):
        raise _unsafe(path, table_uri, reason)
    if key.split("/", 1)[0] == LOG_DIRECTORY:
        # otherwise a remove and a vacuum would delete the log itself
        raise _unsafe(path, table_uri, "it names a file of the transaction log")
    return key


def file_keys(paths: pa.Array, table_uri: str) -> pa.Array:
    """Returns `file_key` of each path in a column; one scan finds the few that need Python."""
    if paths.null_count:
        raise _unsafe("null", table_uri, "an action has no path")
    if _are_plainly_keys(paths):
        return paths
    suspicious = pc.match_substring_regex(paths, _SUSPICIOUS)
    return _rewritten(paths, suspicious, lambda path: file_key(path, table_uri))


def _are_plainly_keys(paths: pa.Array) -> bool:
    """Returns True only if every path in the column is a key; its bytes say that faster than a pattern does."""
    if not (isinstance(paths, pa.Array) and paths.type == pa.string() and len(paths)):
        return False
    _, offsets, data = paths.buffers()
    at = np.frombuffer(offsets, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    if not (at[1:] > at[:-1]).all():
        return False
    text = np.frombuffer(data, np.uint8)[at[0] : at[-1]]
    firsts, lasts, slashes = text[at[:-1] - at[0]], text[at[1:] - at[0] - 1], text == ord("/")
    after = text[1:][slashes[:-1]]  # the character after each slash, as no path may end with one
    return not (
        text.min() < ord(" ")
        or text.max() > ord("~")
        or any((text == ord(odd)).any() for odd in "%:\\")
        or any((firsts == ord(odd)).any() for odd in "/._")
        or any((after == ord(odd)).any() for odd in "/.")
        or (lasts == ord("/")).any()
    )


def action_path(key: str) -> str:
    """Returns the path that an action has for this key, percent-encoded so that `file_key` returns the key.

    Examples:
        >>> action_path("data/day=2024-01-01/a b%.parquet")
        'data/day=2024-01-01/a%20b%25.parquet'
    """
    return quote(check_new_key(key), safe=_PLAIN)


def action_paths(keys: pa.Array) -> pa.Array:
    """Returns `action_path` of each key in a column; one scan finds the few that need Python."""
    odd = pc.or_(
        pc.match_substring_regex(keys, _NEEDS_ENCODING), pc.match_substring_regex(keys, _SUSPICIOUS)
    )
    return _rewritten(keys, odd, action_path)


def _rewritten(column: pa.Array, chosen: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """Returns the column with `function` applied where `chosen` is True; the column itself if it never is."""
    if not pc.any(chosen).as_py():
        return column
    values = pa.array([function(text) for text in column.filter(chosen).to_pylist()], column.type)
    mask = chosen.combine_chunks() if isinstance(chosen, pa.ChunkedArray) else chosen
    return pc.replace_with_mask(column, mask, values)


def _relative(path: str, table_uri: str) -> str:
    root, named = _root(table_uri), parse_location(path)
    if root is None or named is None:
        raise _unsafe(path, table_uri, "it is not under the table's root")
    found = Location(named.family, named.authority, decode(named.path))
    base = root.path if root.path.endswith("/") or not root.path else f"{root.path}/"
    same_store = (found.family, found.authority) == (root.family, root.authority)
    if not same_store or not found.path.startswith(base):
        raise _unsafe(path, table_uri, "it is not under the table's root")
    return found.path[len(base) :]


@lru_cache(maxsize=64)
def _root(table_uri: str) -> Location | None:
    return root_of(table_uri)


def _unsafe(path: str, table_uri: str, reason: str) -> UnsafePathError:
    facts: dict[str, Any] = {"path": path, "table_uri": table_uri}
    return UnsafePathError(
        f"an action names the file {path!a}, which is not in this table: {reason}",
        hint=f"every file must be below {table_uri!r}; find out which writer wrote this log",
        **facts,
    )
