"""Where a table is: one reading of paths and URIs, for opening stores and for judging paths in actions."""

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
    """Returns the place a path or URI names, nothing decoded; None for a scheme that is not known.

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
    """Returns the location of a table as a user writes it: real names, except that a file: URI is encoded.

    Object store URIs are not decoded: `s3://b/a%20b` is the prefix 'a%20b', as in the aws tool.
    """
    location = parse_location(table_uri)
    if location is None or location.family not in {"", "file"}:
        return location and Location(location.family, location.authority, location.path.strip("/"))
    path = decode(location.path) if table_uri[:5].lower() == "file:" else location.path
    return Location("file", location.authority, os.path.abspath(path))  # noqa: PTH100 - keeps links


# Paths in actions are untrusted: each becomes the key of a file of this table, or an error.

LOG_DIRECTORY: Final = "_transaction_log"
# Characters besides letters, digits and '_.-~' that stand for themselves in a path of ours. A ':' does
# not: in a first segment it would read as a scheme.
_PLAIN: Final = "/=,@+$&!'()*;"
# Whatever may be anything but a key already; one scan of the column decides for all rows.
_SUSPICIOUS: Final = rf"[%:\\\x00-\x1f\x7f-\x{{9f}}]|//|^/|/$|^$|(^|/)\.\.?(/|$)|^{LOG_DIRECTORY}(/|$)"
_NEEDS_ENCODING: Final = r"[^A-Za-z0-9_.~/=,@+$&!'()*;-]"
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


def file_key(path: str, table_uri: str) -> str:
    """Returns the key of the file that an action's `path` names; UnsafePathError if it is not of this table.

    Percent-decoded exactly once; an absolute URI under the table's root becomes relative.

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
        # else a remove and a vacuum would delete the log itself
        raise _unsafe(path, table_uri, "it names a file of the transaction log")
    return key


def file_keys(paths: pa.Array, table_uri: str) -> pa.Array:
    """`file_key` for a column of paths; rows that are keys already cost one scan, no Python."""
    if paths.null_count:
        raise _unsafe("null", table_uri, "an action has no path")
    if _are_plainly_keys(paths):
        return paths
    suspicious = pc.match_substring_regex(paths, _SUSPICIOUS)
    return _rewritten(paths, suspicious, lambda path: file_key(path, table_uri))


def _are_plainly_keys(paths: pa.Array) -> bool:
    """Returns True only if nothing in this column is suspicious.

    A look at its bytes, where a pattern is costly.
    """
    if not (isinstance(paths, pa.Array) and paths.type == pa.string() and len(paths)):
        return False
    _, offsets, data = paths.buffers()
    at = np.frombuffer(offsets, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    if not (at[1:] > at[:-1]).all():
        return False
    text = np.frombuffer(data, np.uint8)[at[0] : at[-1]]
    firsts, lasts, slashes = text[at[:-1] - at[0]], text[at[1:] - at[0] - 1], text == ord("/")
    after = text[1:][slashes[:-1]]  # what follows a slash: no path ends in one
    return not (
        text.min() < ord(" ")
        or text.max() > ord("~")
        or any((text == ord(odd)).any() for odd in "%:\\")
        or any((firsts == ord(odd)).any() for odd in "/._")
        or any((after == ord(odd)).any() for odd in "/.")
        or (lasts == ord("/")).any()
    )


def action_path(key: str) -> str:
    """Returns how an action writes this key: percent-encoded, so that `file_key` gives the key back.

    Examples:
        >>> action_path("data/day=2024-01-01/a b%.parquet")
        'data/day=2024-01-01/a%20b%25.parquet'
    """
    return quote(check_new_key(key), safe=_PLAIN)


def action_paths(keys: pa.Array) -> pa.Array:
    """`action_path` for a column of keys; plain names cost one scan, no Python."""
    odd = pc.or_(
        pc.match_substring_regex(keys, _NEEDS_ENCODING), pc.match_substring_regex(keys, _SUSPICIOUS)
    )
    return _rewritten(keys, odd, action_path)


def _rewritten(column: pa.Array, chosen: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """Returns the column with `function` applied where `chosen`.

    The column itself if that is nowhere.
    """
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
        f"an action names the file {path!a}, which is not a file of this table: {reason}",
        hint=f"every file must lie below {table_uri!r}; check who wrote this log",
        **facts,
    )
