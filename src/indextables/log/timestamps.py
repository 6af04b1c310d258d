"""Moments as people write them."""

from __future__ import annotations

import datetime as dt

from indextables.errors import ConfigError


def parse_moment(text: str) -> dt.datetime:
    """Returns ISO text as an aware datetime; UTC where it names no zone.

    >>> parse_moment("2024-05-01").isoformat()
    '2024-05-01T00:00:00+00:00'
    """
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a moment",
            hint="write a date or time such as 2024-05-01 or 2024-05-01T12:30:00+02:00",
            value=text,
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
