"""The rules of time zones as DuckDB has them: its tables are its own, and differ from Python's for old times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
from duckdb import DuckDBPyConnection

from indextables.core.expr.zones import CYCLE, UTC, Zone, zone_from_changes

_UTC: Final = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Universal", "Zulu"})
_OFFSETS: Final = (
    "SELECT list((epoch_us(timezone($1, make_timestamptz(moment * 1000000))) - moment * 1000000) // 1000000 ORDER BY place) "
    "FROM (SELECT unnest($2::BIGINT[]) AS moment, unnest(range(len($2))) AS place)"
)
_STEP: Final = 10 * 86_400
_FIRST: Final = -3_786_825_600
"""The year 1850, before which local time was the sun's everywhere."""
_LAST: Final = 2_145_916_800
"""The year 2038: from here on rules repeat."""
_known: Final[dict[str, Zone | None]] = {}


def zone_of_duckdb(connection: DuckDBPyConnection, name: str) -> Zone | None:
    """Returns a zone by DuckDB's rules; None if it cannot be asked. Each zone is asked for once."""
    if name in _UTC:
        return UTC
    if name not in _known:
        try:
            _known[name] = _asked(connection, name)
        except duckdb.Error:
            _known[name] = None
    return _known[name]


def _asked(connection: DuckDBPyConnection, name: str) -> Zone:
    seconds = list(range(_FIRST, _LAST + CYCLE + _STEP, _STEP))
    offsets = _offsets(connection, name, seconds)
    turns = [i for i in range(1, len(seconds)) if offsets[i] != offsets[i - 1]]
    low, high = [seconds[i - 1] for i in turns], [seconds[i] for i in turns]
    before, after = [offsets[i - 1] for i in turns], [offsets[i] for i in turns]
    while any(b - a > 1 for a, b in zip(low, high, strict=True)):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        for i, offset in enumerate(_offsets(connection, name, middle)):
            if offset == before[i]:
                low[i] = middle[i]
            else:
                high[i], after[i] = middle[i], offset
    changes = list(zip(high, after, strict=True))
    early = [change for change in changes if change[0] < _LAST]
    cycle = [change for change in changes if _LAST <= change[0] < _LAST + CYCLE]
    return zone_from_changes(name, "duckdb", offsets[0], early, cycle)


def _offsets(connection: DuckDBPyConnection, name: str, seconds: Sequence[int]) -> list[int]:
    if not seconds:
        return []
    ((found,),) = connection.sql(_OFFSETS, params={"1": name, "2": list(seconds)}).fetchall()
    return list(found)
