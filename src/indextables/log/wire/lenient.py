"""JSON as it should be, and as other writers leave it: a bad value costs a statistic, never a split."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from indextables.errors import LogCorruptedError


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a log file, for messages."""

    file: str
    line: int

    def corrupted(self, reason: str) -> LogCorruptedError:
        """The error that names this line."""
        return LogCorruptedError(
            f"{self.file}, line {self.line}: {reason}",
            hint="run REPAIR INDEXFILES TRANSACTION LOG, or `indextables check` to see every problem",
            file=self.file,
            line=self.line,
        )


def loads(text: bytes, place: Place) -> Any:
    """The value of a line; NaN, lone surrogates and stray bytes are let through for `is_clean` to find.

    Examples:
        >>> loads(b'{"min": NaN}', Place("0.json", 1))
        {'min': nan}
    """
    return parse(text, place)[0]


def parse(text: bytes, place: Place) -> tuple[Any, bool]:
    """The same, and whether it is plain JSON: its texts are clean and its numbers finite.

    Examples:
        >>> parse(b'{"min": 1}', Place("0.json", 1)), parse(b'{"min": NaN}', Place("0.json", 1))
        (({'min': 1}, True), ({'min': nan}, False))
    """
    try:
        return orjson.loads(text), True
    except orjson.JSONDecodeError:
        pass
    try:
        # surrogateescape turns half a UTF-8 character into lone surrogates: both are found by one test
        decoded = text.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        return json.loads(decoded, strict=False), False
    except json.JSONDecodeError as error:
        # its own text counts lines too, and in here there is only one
        raise place.corrupted(f"not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise place.corrupted(f"not JSON ({error})") from None


def dumps(value: Any) -> bytes:
    """Compact JSON of everything `loads` can return."""
    try:
        return orjson.dumps(value)
    except (
        TypeError,
        orjson.JSONEncodeError,
    ):  # a number beyond 64 bits, which only the lenient reader keeps
        return json.dumps(value, separators=(",", ":")).encode()


def is_clean(value: Any) -> bool:
    """True if every text in the value is text: no lone surrogate that UTF-8 cannot hold.

    Examples:
        >>> is_clean({"a": ["x"]}), is_clean({"a": [chr(0xD800)]})
        (True, False)
    """
    match value:
        case str():
            return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)
        case dict():
            return all(is_clean(k) and is_clean(v) for k, v in value.items())
        case list():
            return all(map(is_clean, value))
        case _:
            return True
