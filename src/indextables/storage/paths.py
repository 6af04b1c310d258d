"""Paths in actions are untrusted: each becomes the key of a file of this table, or an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import UnsafePathError
from indextables.storage.keys import check_new_key, why_not_a_key
from indextables.storage.location import Location, decode, parse_location, root_of

LOG_DIRECTORY: Final = "_transaction_log"
# Characters besides letters, digits and '_.-~' that stand for themselves in a path of ours. A ':' does
# not: in a first segment it would read as a scheme.
_PLAIN: Final = "/=,@+$&!'()*;"
# Whatever may be anything but a key already; one scan of the column decides for all rows.
_SUSPICIOUS: Final = rf"[%:\\\x00-\x1f\x7f-\x{{9f}}]|//|^/|/$|^$|(^|/)\.\.?(/|$)|^{LOG_DIRECTORY}(/|$)"
_NEEDS_ENCODING: Final = r"[^A-Za-z0-9_.~/=,@+$&!'()*;-]"
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


def file_key(path: str, table_uri: str) -> str:
    """The key of the file that an action's `path` names; UnsafePathError if it is not of this table.

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
    """True only if nothing in this column is suspicious; a look at its bytes, where a pattern is costly."""
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
    """How an action writes this key: percent-encoded, so that `file_key` gives the key back.

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
    """The column with `function` applied where `chosen`; the column itself if that is nowhere."""
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
