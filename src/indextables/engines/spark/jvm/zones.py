"""Time zones by the JVM's rules, which for old times are not those Python has."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from functools import lru_cache
from typing import Any, Final

from pyspark import SparkContext

from indextables.core.expr.zones import Zone, fixed_zone, zone_from_changes

_CHANGE: Final = re.compile(
    r"Transition\[\w+ at ([-+]?\d+)-(\d\d)-(\d\d)T([\d:.]+?)([+-][\d:]+|Z) to ([+-][\d:]+|Z)\]"
)
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()


@lru_cache(maxsize=64)
def zone_of_jvm(name: str) -> Zone:
    """Returns a zone as Java knows it; asked once in a process."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - there is no other way to it
    assert context is not None
    time: Any = context._jvm.java.time  # type: ignore[union-attr]  # noqa: SLF001
    rules = time.ZoneId.of(name, time.ZoneId.SHORT_IDS).getRules()
    if rules.isFixedOffset():
        return fixed_zone(rules.getOffset(time.Instant.EPOCH).getTotalSeconds() * 1_000_000)
    changes = [_change(found) for found in _CHANGE.finditer(rules.getTransitions().toString())]
    before = _offset(next(_CHANGE.finditer(rules.getTransitions().toString()))[5])
    yearly = list(rules.getTransitionRules())
    last = dt.datetime.fromtimestamp(changes[-1][0], dt.UTC).year
    cycle = _cycle(yearly, last) if yearly else []
    return zone_from_changes(name, "java", before, changes, cycle)


def _change(found: re.Match[str]) -> tuple[int, int]:
    """Returns at which second which offset begins; the text says when it was on the clock before."""
    year, month, day = (int(found[i]) for i in (1, 2, 3))
    days = dt.date(year, month, day).toordinal() - _EPOCH
    return days * 86_400 + _seconds(found[4]) - _offset(found[5]), _offset(found[6])


def _seconds(clock: str) -> int:
    parts = [int(part) for part in clock.split(":")]
    return sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    return _seconds(text[1:]) * (-1 if text[0] == "-" else 1)


def _cycle(yearly: list[Any], last: int) -> list[tuple[int, int]]:
    """Returns the changes of 400 years: years of one length that begin on one weekday have the same."""
    kinds: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    found: list[tuple[int, int]] = []
    for year in range(last + 1, last + 401):
        kind = (calendar.isleap(year), dt.date(year, 1, 1).weekday())
        start = (dt.date(year, 1, 1).toordinal() - _EPOCH) * 86_400
        if kind not in kinds:
            texts = [rule.createTransition(year).toString() for rule in yearly]
            made = sorted(_change(match) for text in texts if (match := _CHANGE.match(text)))
            kinds[kind] = [(at - start, offset) for at, offset in made]
        found += [(start + at, offset) for at, offset in kinds[kind]]
    return found
