"""Dates and times as people write them."""

from __future__ import annotations

import datetime as dt

from indextables.errors import ConfigError


def parse_moment(text: str) -> dt.datetime:
    """Returns ISO text as an aware datetime; a text without a zone is in UTC.

    >>> parse_moment("2024-05-01").isoformat()
    '2024-05-01T00:00:00+00:00'
    """
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a date or time",
            hint="write a date or time such as 2024-05-01 or 2024-05-01T12:30:00+02:00",
            value=text,
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
