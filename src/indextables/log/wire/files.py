"""The files of a log: their names, their text, and the trailer that proves a file whole."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

from indextables.core.types import StructType
from indextables.errors import LogCorruptedError, ObjectNotFoundError
from indextables.log.wire.actions import Action, CommitInfo
from indextables.log.wire.codec import decode_action, encode_action
from indextables.log.wire.indextables4spark import STATE, state_text
from indextables.log.wire.lines import LinePosition, count_lines, loads, written_lines
from indextables.storage.base import LogStore, ObjectMeta

# Names of files in a log.

LOG_DIRECTORY: Final = "_transaction_log"
WIDTH: Final = 18
"""Digits of a version in the names of a log that this library creates."""
WIDTHS: Final = (18, 20)
"""Numbers of digits that a reader understands; other writers of this format use 20."""

Kind: TypeAlias = Literal["commit", "checkpoint", "part"]

_NAME: Final = re.compile(
    r"(?P<version>[0-9]{18}|[0-9]{20})"
    r"(?P<rest>\.json|\.checkpoint\.json|\.checkpoint\.[0-9A-Za-z-]+\.parquet)"
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log as a listing shows it."""

    kind: Kind
    version: int
    width: int
    key: str
    size: int = -1
    modified_ms: int = -1

    @property
    def is_state(self) -> bool:
        """Returns whether it is a whole version in Avro, as IndexTables4Spark writes one instead of a commit."""
        return self.key.endswith(".avro")

    @property
    def name(self) -> str:
        """Returns the name without the directory of the log, as error messages show it."""
        return self.key.removeprefix(f"{self.directory}/")

    @property
    def directory(self) -> str:
        """Returns the directory of the log."""
        return self.key.rsplit("/", 2 if self.is_state else 1)[0]


@dataclass(frozen=True, slots=True)
class LogNames:
    """The names of files in one log; a repair reads and writes logs in other directories than usual."""

    directory: str = LOG_DIRECTORY

    @property
    def prefix(self) -> str:
        """Returns the beginning of every key in the log."""
        return f"{self.directory}/"

    @property
    def hint(self) -> str:
        """Returns the key of the hint, which names a checkpoint and is never believed."""
        return f"{self.directory}/_last_checkpoint"

    @property
    def turns(self) -> str:
        """Returns what the requests of writers for their turn start with; it sorts behind all versions."""
        return f"{self.directory}/_turn."

    def turn(self, commit_id: str) -> str:
        """Returns the key of one writer's request for its turn."""
        return f"{self.turns}{commit_id}"

    def commit(self, version: int, width: int = WIDTH) -> str:
        """Returns the key of a commit.

        Examples:
            >>> LogNames().commit(7)
            '_transaction_log/000000000000000007.json'
        """
        return f"{self.directory}/{version:0{width}d}.json"

    def checkpoint(self, version: int, width: int = WIDTH) -> str:
        """Returns the key of a checkpoint, which may be a manifest of parts."""
        return f"{self.directory}/{version:0{width}d}.checkpoint.json"

    def part(self, version: int, identity: str, width: int = WIDTH) -> str:
        """Returns the key of a part, which is named after the checkpoint that wrote it first."""
        return f"{self.directory}/{version:0{width}d}.checkpoint.{identity}.parquet"

    def before(self, version: int, width: int = WIDTH) -> str:
        """Returns a key that sorts right before every file of this version in this width."""
        return f"{self.directory}/{version:0{width}d}"

    def parse(self, meta: ObjectMeta) -> LogFile | None:
        """Returns the object as a file of the log; None if it is not one."""
        directory, _, name = meta.key.rpartition("/")
        found = _NAME.fullmatch(name) if directory == self.directory else None
        if found is None:
            return self._state(meta)
        digits, rest = found["version"], found["rest"]
        return LogFile(_kind(rest), int(digits), len(digits), meta.key, meta.size, meta.modified_ms)

    def _state(self, meta: ObjectMeta) -> LogFile | None:
        found = (
            STATE.fullmatch(meta.key.removeprefix(self.prefix)) if meta.key.endswith(".avro") else None
        )
        if found is None:
            return None
        digits = found["version"]
        return LogFile("checkpoint", int(digits), len(digits), meta.key, meta.size, meta.modified_ms)

    def parse_all(self, listing: Iterable[ObjectMeta]) -> Iterator[LogFile]:
        """Yields those objects that are files of the log."""
        for meta in listing:
            if (file := self.parse(meta)) is not None:
                yield file


def _kind(rest: str) -> Kind:
    if rest == ".json":
        return "commit"
    return "checkpoint" if rest == ".checkpoint.json" else "part"


# The text of a file, plain or compressed. What unpacks to more than any log would is refused.

_GZIP: Final = b"\x1f\x8b"
_PREFIXED_GZIP: Final = b"\x01\x01" + _GZIP
_WINDOW: Final = 31
_SMALL: Final = 64 << 20
_DENSEST: Final = 200
"""More than 64 MB of text that is packed better than this is no log, as the paths in a log differ more."""


def inflated(pieces: Iterator[bytes], at_once: int) -> Iterator[bytes]:
    """Returns the text of a plain or gzip file in pieces; one that was packed has `at_once` bytes at most.

    Raises zlib.error or EOFError if the file is damaged.
    """
    first = next(pieces, b"")
    if first.startswith(_PREFIXED_GZIP):
        first = first[2:]
    stored = chain([first], pieces)
    return _members(stored, at_once) if first.startswith(_GZIP) else stored


def _members(pieces: Iterable[bytes], at_once: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(_WINDOW)
    packed = unpacked = 0
    for piece in pieces:
        packed += len(piece)
        left = piece
        while left.strip(b"\0"):  # some tools pad with zeros
            if inflater.eof:
                inflater = zlib.decompressobj(_WINDOW)
            text = inflater.decompress(left, at_once)
            unpacked += len(text)
            _check_density(packed, unpacked)
            yield text
            left = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        yield inflater.flush()
    if not inflater.eof:
        raise EOFError("it ends too early")


def _check_density(packed: int, unpacked: int) -> None:
    if unpacked > _SMALL and unpacked > _DENSEST * packed:
        raise zlib.error(
            f"{packed:,} bytes unpack to over {unpacked:,}, more than {_DENSEST} times as many: "
            "this is not a log"
        )


# The trailer: the last line, which proves that the file is whole or shows that it is not.

_AT_ONCE: Final = 16 << 20
_TAIL: Final = 64
_MANY: Final = 1_000_000
_SHORTEST: Final = 8
"""Bytes of the shortest line with an action, its newline included."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Every byte is there, as the checksum in the trailer proves."""

    info: CommitInfo


@dataclass(frozen=True, slots=True)
class Torn:
    """Bytes are missing or changed; `line` says where that shows."""

    reason: str
    line: int
    has_lines: bool = True
    """False if this is not a file of a log at all, so that none of its lines is worth a look."""


@dataclass(frozen=True, slots=True)
class Unverified:
    """Another writer's file, which may be whole although nothing proves it."""


Verdict: TypeAlias = Whole | Torn | Unverified


def seal(actions: Sequence[Action], info: CommitInfo, *, seq: int, schema: StructType) -> bytes:
    """Returns the bytes of a commit: its actions, then the trailer with their number and checksum."""
    lines = [encode_action(action, seq=seq, schema=schema) for action in actions]
    body = b"".join(lines)
    sealed = replace(info, actions=len(lines), crc32=zlib.crc32(body))
    return body + encode_action(sealed, seq=seq, schema=schema)


def unpack(raw: bytes) -> bytes:
    """Returns the text of a file that is stored plain, as gzip, or as gzip after two marker bytes."""
    texts = list(inflated(iter([raw]), _AT_ONCE))
    return texts[0] if len(texts) == 1 else b"".join(texts)


def verify(data: bytes) -> Verdict:
    """Returns Whole only if the last line is a trailer whose count and checksum fit all bytes before it."""
    if not data or data.isspace():
        return Torn("the file is empty", 1)
    end = _end(data)
    start = data.rfind(b"\n", 0, end) + 1
    line = count_lines(data, start) + 1
    if (blank := mostly_blank(len(data), line + len(data) - end)) is not None:
        return blank
    info = _trailer(data[start:end])
    if info is None:
        return Unverified()
    if info.crc32 != zlib.crc32(memoryview(data)[:start]):
        return Torn("the checksum in the last line does not fit the lines before it", line)
    if info.actions != line - 1:
        return Torn(f"the last line counts {info.actions} actions, there are {line - 1}", line)
    return Whole(info)


def mostly_blank(size: int, lines: int) -> Torn | None:
    """Returns Torn for a text with many lines, most of which are too short for an action; else None."""
    if lines <= _MANY or size >= lines * _SHORTEST:
        return None
    return Torn(
        f"not a log: about {lines:,} lines in {size:,} bytes, most of them blank", 1, has_lines=False
    )


def _end(data: bytes) -> int:
    """Returns where the text of the last line ends, without copying the file, which may be large."""
    tail = data[-_TAIL:]
    if text := tail.rstrip(b"\r\n"):
        return len(data) - len(tail) + len(text)
    return len(data.rstrip(b"\r\n"))


def last_info(data: bytes) -> CommitInfo | None:
    """Returns the commitInfo in the last line, whoever wrote it, without checking anything."""
    end = _end(data)
    return _info(data[data.rfind(b"\n", 0, end) + 1 : end])


def _trailer(line: bytes) -> CommitInfo | None:
    """Returns the commitInfo of a line that is a trailer; None for any other line."""
    info = _info(line) if line.startswith(b'{"commitInfo":') else None
    return info if info is not None and info.crc32 is not None else None


def _info(line: bytes) -> CommitInfo | None:
    position = LinePosition("", 0)
    try:
        value: Any = loads(line, position)  # a value without .get raises AttributeError
        info = decode_action("commitInfo", value.get("commitInfo"), line, position)
    except (LogCorruptedError, AttributeError):
        return None
    return info if isinstance(info, CommitInfo) else None


_FIRST_READ: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class LogBody:
    """The text of one file and whether it is whole."""

    file: LogFile
    data: bytes
    verdict: Verdict

    def position(self, line: int) -> LinePosition:
        """Returns a line of this file, for messages."""
        return LinePosition(self.file.name, line)


def read_body(store: LogStore, file: LogFile) -> LogBody:
    """Returns the text of a file; if its bytes cannot be unpacked, the verdict is Torn.

    Raises ObjectNotFoundError if the file is not the one that was listed.
    """
    raw = store.get(file.key)
    if file.is_state:
        text = state_text(lambda key: unpack(store.get(key)), file.directory, file.key)
        return LogBody(file, text, Unverified())
    if 0 <= file.size != len(raw):
        # Another log took the place of this one since it was listed, and files of both must not be mixed.
        raise ObjectNotFoundError(
            f"{file.name} had {file.size} bytes when it was listed and has {len(raw)} now",
            hint="another log took its place in the meantime; open the table again",
            key=file.key,
        )
    return body_of(file, raw)


def body_of(file: LogFile, raw: bytes) -> LogBody:
    """Returns the text in the bytes of a file; if they cannot be unpacked, the verdict is Torn."""
    try:
        data = unpack(raw)
    except (OSError, EOFError, zlib.error) as error:
        return LogBody(file, b"", Torn(f"the compressed text is damaged ({error})", 1))
    verdict = verify(data)
    empty = isinstance(verdict, Torn) and not verdict.has_lines
    return LogBody(file, b"" if empty else data, verdict)


def read_info(store: LogStore, file: LogFile) -> CommitInfo | None:
    """Returns the commitInfo of a commit; only the end of the file is read if that is enough."""
    if file.size > _FIRST_READ and not file.is_state:
        tail = store.get_range(file.key, file.size - _FIRST_READ, _FIRST_READ)
        if (info := last_info(tail.partition(b"\n")[2])) is not None:
            return info
    body = read_body(store, file)
    match body.verdict:
        case Whole(info):
            return info
        case Torn(reason, line):
            raise body.position(line).corrupted(reason)
        case Unverified():
            return any_info(body)


def any_info(body: LogBody) -> CommitInfo | None:
    """Returns the commitInfo of another writer's commit, in whichever line it is."""
    for _, line in written_lines(body.data):
        if b'"commitInfo"' in line and (info := last_info(line)) is not None:
            return info
    return None
