"""`spark.sql` on Spark Connect: the client runs this library's statements, and queries name tables by their path.

Only the server can parse Spark's SQL, so a table in a query is found by its tokens: each
``indextables.`path` `` becomes a temporary view over the files of one version.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from indextables.config import PREFIX, Config
from indextables.engines.spark.connect.read import open_table, read_table
from indextables.engines.spark.place.tables_and_options import SHORT_NAME, snapshot_of
from indextables.errors import IndexTablesError, PredicateError
from indextables.log.transaction_log import TransactionLog
from indextables.sql import commands
from indextables.sql.conditions.operands import Token, tokenize

_END: Final = re.compile(r"\s*;\s*\Z")
_QUERIES: Final = ("SELECT", "WITH", "FROM", "TABLE", "EXPLAIN", "VALUES")
_CHANGES: Final = ("INSERT", "DELETE", "UPDATE", "MERGE", "OVERWRITE")


@dataclass(frozen=True)
class ClientContext:
    """What the statements of this library need, from a session on Spark Connect; this process does the work."""

    session: SparkSession

    @property
    def config(self) -> Config:
        """Returns the session's settings."""
        settings: Mapping[str, str] = self.session.conf.getAll
        return Config.of(session={k: v for k, v in settings.items() if k.lower().startswith(PREFIX)})

    def open_log(self, location: str) -> TransactionLog:
        """Returns the log of a table as this process reaches it."""
        return open_table(location).log


def run_sql(session: SparkSession, to_spark: Callable[[str], DataFrame], text: str) -> DataFrame:
    """Returns the result of a statement; `to_spark` sends a text to the server."""
    if not commands.may_be_ours(text):
        return to_spark(text)
    found = commands.find(text)
    if found is not None:
        command, arguments = found
        result = command.run(ClientContext(session), arguments)
        return session.createDataFrame(result)
    return to_spark(_with_views(session, text))


def _with_views(session: SparkSession, text: str) -> str:
    """Returns the query over views, or the text itself if it names no table or cannot be read."""
    try:
        tokens = tokenize(_END.sub("", text))
    except PredicateError:
        return text
    tables = [i for i in range(len(tokens) - 2) if _is_table(tokens, i)]
    if not tables:
        return text
    if not tokens[0].is_word(*_QUERIES) and not tokens[0].is_symbol("("):
        refuse(f"{tokens[0].value.upper()} of a table")
    if changes := [token.keyword for token in tokens if token.is_word(*_CHANGES)]:
        refuse(f"{changes[0]} in a query over a table")
    out, at = [], 0
    for i in tables:
        moment, end = _moment(tokens, i + 3)
        out += [text[at : tokens[i].start], _view(session, tokens[i + 2].value, moment)]
        at = end
    return "".join([*out, text[at:]])


def _is_table(tokens: Sequence[Token], i: int) -> bool:
    first, dot, path = tokens[i : i + 3]
    return (
        first.kind in {"word", "name"}
        and first.value.lower() == SHORT_NAME
        and dot.is_symbol(".")
        and path.kind == "name"
        and (i == 0 or not tokens[i - 1].is_symbol("."))
    )


def _moment(tokens: Sequence[Token], i: int) -> tuple[dict[str, str], int]:
    """Returns VERSION or TIMESTAMP AS OF after a table as an option, and where the text goes on."""
    start = i + 1 if tokens[i].is_word("FOR") else i
    words = [token.value.upper() for token in tokens[start : start + 3]]
    if words[1:] != ["AS", "OF"] or words[0] not in _OPTIONS:
        return {}, tokens[i - 1].end
    value, after = (*tokens[start + 3 : start + 5], tokens[-1])[:2]
    if value.kind not in {"number", "text"} or (after.kind == "symbol" and after.value not in "),"):
        refuse(f"{words[0]} AS OF with anything but a constant")
    return {_OPTIONS[words[0]]: value.value}, value.end


_OPTIONS: Final = {
    "VERSION": "versionAsOf",
    "SYSTEM_VERSION": "versionAsOf",
    "TIMESTAMP": "timestampAsOf",
    "SYSTEM_TIME": "timestampAsOf",
}


def _view(session: SparkSession, path: str, moment: Mapping[str, str]) -> str:
    """Returns the name of a view over one version of a table; the same version has the same view."""
    table = open_table(path)
    snapshot = snapshot_of(session, table, moment.get("versionAsOf"), moment.get("timestampAsOf"))
    state = f"{table.place.root} {snapshot.metadata.id} {snapshot.commit_id}"
    name = f"{SHORT_NAME}_{zlib.crc32(state.encode()):08x}_v{snapshot.version}"
    read_table(session, path, {"versionAsOf": snapshot.version}).createOrReplaceTempView(name)
    return name


def refuse(what: str) -> NoReturn:
    """Raises the error for everything that needs the JVM in this process."""
    raise IndexTablesError(
        f"{what} does not work on Spark Connect",
        hint="use a classic session (SparkSession.builder.master(…)), or the methods of indextables.Table",
    )
