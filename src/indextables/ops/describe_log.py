"""Lists the actions of a log as rows, line by line, even where the log is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from indextables.errors import LogCorruptedError
from indextables.log.open.load import Listing, list_log
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.files import LogFile, Torn, read_body
from indextables.log.wire.lines import LinePosition, dumps, is_clean, loads, written_lines

Cell: TypeAlias = int | str | bool | None
Row: TypeAlias = dict[str, Cell]

LOG_COLUMNS: Final = pa.schema(
    [
        ("version", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int32()),
        ("action", pa.string()),
        ("path", pa.string()),
        ("partition_values", pa.string()),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("data_change", pa.bool_()),
        ("stats", pa.string()),
        ("content", pa.string()),
    ]
)
"""`content` is the whole action as JSON, except for adds, whose fields have columns of their own."""


def describe_log(log: TransactionLog, *, include_all: bool = False) -> Iterator[Row]:
    """Yields one row for each action from the newest checkpoint on, or with `include_all` of every file."""
    listing = list_log(log.store, log.names)
    if listing.newest < 0:
        log.snapshot()  # raises the error that says what is wrong
    for file in _files(listing, include_all=include_all):
        yield from _rows(log, file)


def _files(listing: Listing, *, include_all: bool) -> list[LogFile]:
    commits = [file for files in listing.commits.values() for file in files]
    checkpoints = list(listing.checkpoints)
    if not include_all and checkpoints:
        first = checkpoints[0].version
        commits = [file for file in commits if file.version > first]
        checkpoints = checkpoints[:1]
    return sorted([*commits, *checkpoints], key=lambda file: (file.version, file.kind, file.width))


def _rows(log: TransactionLog, file: LogFile) -> Iterator[Row]:
    body = read_body(log.store, file)
    if isinstance(body.verdict, Torn):
        yield _row(file, body.verdict.line, "unreadable", content=body.verdict.reason)
    for number, text in written_lines(body.data):
        try:
            value = loads(text, LinePosition(file.name, number))
        except LogCorruptedError as error:
            yield _row(file, number, "unreadable", content=error.message)
            continue
        for name, action in value.items() if isinstance(value, dict) else [("unreadable", value)]:
            yield _action_row(file, number, name, action)


def _action_row(file: LogFile, line: int, name: str, action: object) -> Row:
    if name != "add" or not isinstance(action, dict):
        path = action.get("path") if isinstance(action, dict) else None
        return _row(file, line, name, path=_text(path), content=_json(action))
    return _row(
        file,
        line,
        name,
        path=_text(action.get("path")),
        partition_values=_json(action.get("partitionValues")),
        size=_integer(action.get("size")),
        modification_time=_integer(action.get("modificationTime")),
        data_change=action.get("dataChange") if isinstance(action.get("dataChange"), bool) else None,
        stats=_json(action.get("stats")),
    )


def _row(file: LogFile, line: int, action: str, **fields: Cell) -> Row:
    return {
        **dict.fromkeys(LOG_COLUMNS.names),
        "version": min(file.version, 2**63 - 1),
        "file": file.name,
        "line": line,
        "action": action,
        **fields,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and is_clean(value) else None


def _integer(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    return None


def _json(value: object) -> str | None:
    if value is None:
        return None
    # a text with half a character in it cannot be shown as it is, but its JSON can
    return value if isinstance(value, str) and is_clean(value) else dumps(value).decode()
