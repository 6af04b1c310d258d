"""The gate: a table that needs more than this library knows is refused before it is misread."""

from __future__ import annotations

from collections.abc import Iterable

from indextables.errors import ProtocolError
from indextables.log.wire.actions import (
    COMMIT_TRAILER,
    READER_FEATURES,
    READER_VERSION,
    WRITER_FEATURES,
    WRITER_VERSION,
    Protocol,
)


def check_readable(protocol: Protocol) -> None:
    """Raises unless this library can read a table under this protocol."""
    _check("read", protocol.min_reader, READER_VERSION, protocol.reader_features, READER_FEATURES)


def check_writable(protocol: Protocol) -> None:
    """Raises unless this library can write to a table under this protocol."""
    check_readable(protocol)
    _check("written", protocol.min_writer, WRITER_VERSION, protocol.writer_features, WRITER_FEATURES)


def needs_trailer(protocol: Protocol | None) -> bool:
    """True if every commit must end in its checksum, so that one without it is torn."""
    return protocol is not None and COMMIT_TRAILER in protocol.writer_features


def _check(verb: str, needs: int, has: int, features: Iterable[str], known: frozenset[str]) -> None:
    unknown = sorted(set(features) - known)
    if needs <= has and not unknown:
        return
    needed = [f"protocol version {needs} (this library has {has})"] if needs > has else []
    needed += [f"the feature {name!r}" for name in unknown]
    raise ProtocolError(
        f"the table cannot be {verb}: it needs {' and '.join(needed)}",
        hint="upgrade indextables",
        needs_version=needs,
        has_version=has,
        unknown_features=tuple(unknown),
    )
