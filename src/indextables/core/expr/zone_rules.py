"""The rules of time zones as Python's zone files have them."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH

from indextables.core.expr.datetimes import session_zone
from indextables.core.expr.zones import CYCLE, Zone, fixed_zone, zone_from_changes


@lru_cache(maxsize=256)
def zone_of(name: str) -> Zone:
    """Returns a zone by the rules Python has; PredicateError if there is none of that name."""
    zone = session_zone(name)
    if isinstance(zone, dt.timezone):
        return fixed_zone(zone.utcoffset(None) // dt.timedelta(microseconds=1))
    before, changes = _read_changes(name)
    offset = lambda second: _offset(zone, second)  # noqa: E731
    last = changes[-1][0] if changes else 0
    return zone_from_changes(name, "python", before, changes, _cycle(offset, last))


def _read_changes(name: str) -> tuple[int, list[tuple[int, int]]]:
    """Returns the offset before all changes, and the changes a zone file lists (RFC 8536)."""
    data = _zone_file(name)
    block = 44 + _block_size(data, 0, width=4)
    times, kinds = struct.unpack_from(">ll", data, block + 32)
    at = block + 44
    instants = struct.unpack_from(f">{times}q", data, at)
    chosen = data[at + 8 * times : at + 9 * times]
    start = at + 9 * times
    offsets = [struct.unpack_from(">lB", data, start + 6 * i) for i in range(kinds)]
    before = next((offset for offset, is_dst in offsets if not is_dst), offsets[0][0])
    found = [(second, offsets[kind][0]) for second, kind in zip(instants, chosen, strict=True)]
    # the oldest files begin with a change at the big bang
    first = [offset for second, offset in found if second < -(2**55)]
    return (first[-1] if first else before), [pair for pair in found if pair[0] >= -(2**55)]


def _block_size(data: bytes, at: int, width: int) -> int:
    counts: tuple[int, ...] = struct.unpack_from(">6l", data, at + 20)
    universal, standard, leaps, times, kinds, chars = counts
    return times * (width + 1) + kinds * 6 + chars + leaps * (width + 4) + standard + universal


def _zone_file(name: str) -> bytes:
    for folder in TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    package = resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
    return package.read_bytes()


def _offset(zone: dt.tzinfo, second: int) -> int:
    at = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(seconds=second)
    found = at.astimezone(zone).utcoffset()
    assert found is not None
    return found // dt.timedelta(seconds=1)


def _cycle(offset: Callable[[int], int], last: int) -> list[tuple[int, int]]:
    """Returns the changes of the 400 years after the last one listed, found by looking every ten days."""
    step, found = 10 * 86_400, []
    start, known = last + 1, offset(last + 1)
    if all(offset(start + month * 3 * step) == known for month in range(30)):
        return []
    for at in range(start, start + CYCLE, step):
        after = min(at + step, start + CYCLE)
        if (new := offset(after)) != known:
            low, high = at, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == known else (low, middle)
            found.append((high, new))
            known = new
    return found
