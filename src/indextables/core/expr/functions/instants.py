"""Images of instants, local times and days that casts and functions of time share."""

from __future__ import annotations

from typing import Final

import numpy as np

from indextables.core.expr.image import Array, Pieces
from indextables.core.expr.zones import Zone
from indextables.core.states import Cuts, space_of
from indextables.core.types import PrimitiveType

DATE: Final = PrimitiveType("date")
TIMESTAMP: Final = PrimitiveType("timestamp")
TIMESTAMP_NTZ: Final = PrimitiveType("timestamp_ntz")
MICROS_OF_DAY: Final = 86_400_000_000

_DAYS, _INSTANTS, _LOCALS = (space_of(kind) for kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ))
_FIRST, _END = _INSTANTS.universe
_MARGIN: Final = 3 * 366 * MICROS_OF_DAY
"""So near the ends of 64 bits nothing is said of times: sums of them wrap."""


def known_span(zone: Zone) -> tuple[int, int]:
    """Returns the first and the last instant of which the zone's offset is known, the ends of the type aside."""
    until = zone.known_until
    return _FIRST + _MARGIN, _END - _MARGIN if until is None else until


def beyond(first: int, last: int) -> Cuts:
    """Returns the times outside of a span."""
    return (_FIRST, first, last + 1, _END)


def pieces_between(starts: Array, first: int, last: int) -> tuple[Array, Array]:
    """Returns the pieces that begin at these places, cut to a span."""
    inner = np.unique(starts[(starts > first) & (starts <= last)])
    return np.append([first], inner).astype(np.int64), np.append(inner - 1, [last]).astype(np.int64)


def to_local(zone: Zone) -> Pieces:
    """Returns instants as local times: back by an hour wherever clocks are put back."""
    first, last = known_span(zone)
    ends = pieces_between(zone.starts, first, last)
    return Pieces(_INSTANTS, _LOCALS, *ends, zone.to_local, anything=beyond(first, last))


def local_to_instant(zone: Zone) -> Pieces:
    """Returns local times as instants: not in order at the end of an hour that clocks skip."""
    first, last = known_span(zone)
    ends = pieces_between(zone.local_starts, first, last)
    return Pieces(_LOCALS, _INSTANTS, *ends, zone.to_instant, anything=beyond(first, last))


def floor_to(unit: int) -> Pieces:
    """Returns the days of local times, for a unit of a day."""
    ends = np.array([_FIRST]), np.array([_END - 1])
    return Pieces(_LOCALS, _DAYS, *ends, lambda x: x // unit, inverse=lambda days: days * unit)


def days_to_micros() -> Pieces:
    """Returns days as their midnights on a clock without a zone."""
    return _midnights(
        lambda days: days * MICROS_OF_DAY, space_of(TIMESTAMP_NTZ), _FIRST + _MARGIN, _END - _MARGIN
    )


def days_to_instants(zone: Zone) -> Pieces:
    """Returns days as the instants of their midnights; one that is skipped is the end of the gap."""
    first, last = known_span(zone)
    f = lambda days: zone.to_instant(days * MICROS_OF_DAY)  # noqa: E731
    return _midnights(f, _INSTANTS, first, last)


def _midnights(f: object, result: object, first: int, last: int) -> Pieces:
    begin, stop = -(-first // MICROS_OF_DAY), last // MICROS_OF_DAY
    low, end = _DAYS.universe
    ends = np.array([begin]), np.array([stop])
    return Pieces(_DAYS, result, *ends, f, anything=(low, begin, stop + 1, end))  # type: ignore[arg-type]
