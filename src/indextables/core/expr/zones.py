"""Time zones as arrays: when their offsets change, and which instant a local time is.

A zone's rules are Java's or Python's, which differ for old times in a hundred zones: so a zone knows where
its rules come from, and Spark's adapter brings the JVM's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Micros = npt.NDArray[np.int64]

_SECOND: Final = 1_000_000
CYCLE: Final = 146_097 * 86_400
"""Seconds after which the calendar, weekdays included, repeats: 400 years."""
_END: Final = 253_402_300_800
"""The year 10000, in seconds: nothing is known of what a zone with changing offsets does then."""
_FIRST, _LAST = -(2**63), 2**63 - 1
_DAY: Final = 86_400 * _SECOND


@dataclass(frozen=True, slots=False)
class Zone:
    """A time zone: from `starts[i]` on, local times are `offsets[i]` microseconds ahead of UTC.

    >>> from indextables.core.expr.zone_rules import zone_of
    >>> zone_of("Asia/Kathmandu").to_local(np.array([0])) // 1_000_000
    array([19800])
    """

    name: str
    rules: str = "python"
    """Whose rules these are; zones of one name but other rules are different zones."""
    starts: Micros = field(default_factory=lambda: np.array([_FIRST]), compare=False, repr=False)
    offsets: Micros = field(default_factory=lambda: np.array([0]), compare=False, repr=False)

    @property
    def known_until(self) -> int | None:
        """Returns the last instant these offsets are known for; None: there is no end.

        A zone whose clock changes every year is known up to the year 9999.
        """
        last_change = int(self.starts[-1])
        return None if last_change < _END * _SECOND - 800 * _DAY else _END * _SECOND - 2 * _DAY

    def offset_at(self, micros: Any) -> Micros:
        """Returns how far local time is ahead of UTC at these instants."""
        found: Micros = self.offsets[np.searchsorted(self.starts, micros, side="right") - 1]
        return found

    def to_local(self, micros: Any) -> Micros:
        """Returns the local time of instants, as microseconds since 1970-01-01 on a clock there."""
        return micros + self.offset_at(micros)  # type: ignore[no-any-return]

    @cached_property
    def local_starts(self) -> Micros:
        """Returns the local times from which each offset is the one a local time without a zone gets.

        A time that a clock change skips moves forward by the gap; one that happens twice is the first.
        So the offset before a change holds until the later of its two readings of the clock.
        """
        if len(self.starts) == 1:
            return self.starts
        later = np.maximum(self.offsets[1:], self.offsets[:-1])
        return np.append(self.starts[:1], np.maximum.accumulate(self.starts[1:] + later))

    def to_instant(self, local: Any, preferred: Any = None) -> Micros:
        """Returns the instants of local times; of one that happens twice, that of the preferred offset."""
        offsets = self.offsets[np.searchsorted(self.local_starts, local, side="right") - 1]
        found: Micros = local - offsets
        if preferred is None:
            return found
        wanted: Micros = local - preferred
        return np.where(self.offset_at(wanted) == preferred, wanted, found)


def fixed_zone(offset_micros: int) -> Zone:
    """Returns a zone whose offset never changes."""
    name = str(dt.timezone(dt.timedelta(microseconds=offset_micros)))
    return Zone(name, "fixed", offsets=np.array([offset_micros]))


UTC: Final = fixed_zone(0)


def zone_from_changes(
    name: str,
    rules: str,
    before: int,
    changes: Sequence[tuple[int, int]],
    cycle: Sequence[tuple[int, int]],
) -> Zone:
    """Returns the zone of its changes: seconds at which an offset, in seconds, begins.

    `cycle` are the changes of the 400 years after the last of them, which repeat for ever.
    """
    turns = round((_END - cycle[0][0]) / CYCLE) + 1 if cycle else 0
    repeated = [(at + turn * CYCLE, offset) for turn in range(turns) for at, offset in cycle]
    known = [(at, offset) for at, offset in (*changes, *repeated) if at < _END]
    if not known:
        return fixed_zone(before * _SECOND)
    starts = np.array([_FIRST, *(at * _SECOND for at, _ in known)])
    return Zone(name, rules, starts, np.array([before, *(offset for _, offset in known)]) * _SECOND)
