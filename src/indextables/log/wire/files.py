"""Reading the files of a log: bytes, and what can be said about them before they are parsed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from indextables.errors import ObjectNotFoundError
from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.lenient import Place
from indextables.log.wire.lines import written_lines
from indextables.log.wire.names import LogFile
from indextables.log.wire.trailer import Torn, Unverified, Verdict, Whole, last_info, unpack, verify
from indextables.storage.base import LogStore

_FIRST_READ: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class LogBody:
    """The text of one file and whether it is whole."""

    file: LogFile
    data: bytes
    verdict: Verdict

    def place(self, line: int) -> Place:
        """A line of this file, for messages."""
        return Place(self.file.name, line)


def read_body(store: LogStore, file: LogFile) -> LogBody:
    """The file's text; bytes that cannot be unpacked are a torn file, not an exception.

    ObjectNotFoundError if another file than the one that was listed is under its name by now.
    """
    raw = store.get(file.key)
    if 0 <= file.size != len(raw):
        # Between listing and reading the whole log was exchanged for another one: neither is to be mixed.
        raise ObjectNotFoundError(
            f"{file.name} had {file.size} bytes when it was listed and has {len(raw)} now",
            hint="the log was replaced meanwhile; open the table again",
            key=file.key,
        )
    return body_of(file, raw)


def body_of(file: LogFile, raw: bytes) -> LogBody:
    """The same for bytes that are at hand."""
    try:
        data = unpack(raw)
    except (OSError, EOFError, zlib.error) as error:
        return LogBody(file, b"", Torn(f"the compressed text is damaged ({error})", 1))
    verdict = verify(data)
    empty = isinstance(verdict, Torn) and not verdict.has_lines
    return LogBody(file, b"" if empty else data, verdict)


def read_info(store: LogStore, file: LogFile) -> CommitInfo | None:
    """The commitInfo of a commit, reading no more than its end where that is enough."""
    if file.size > _FIRST_READ:
        tail = store.get_range(file.key, file.size - _FIRST_READ, _FIRST_READ)
        if (info := last_info(tail.partition(b"\n")[2])) is not None:
            return info
    body = read_body(store, file)
    match body.verdict:
        case Whole(info):
            return info
        case Torn(reason, line):
            raise body.place(line).corrupted(reason)
        case Unverified():
            return any_info(body)


def any_info(body: LogBody) -> CommitInfo | None:
    """The commitInfo of another writer's commit, wherever in the file it is."""
    for _, line in written_lines(body.data):
        if b'"commitInfo"' in line and (info := last_info(line)) is not None:
            return info
    return None
