"""A Structured Streaming sink: each batch is one commit, and a batch that is run again is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from indextables.engines.spark.change.writer import SaveMode, Write, execute
from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.patching import (
    arguments_of,
    collect,
    names_in,
    options_of,
    replace_method,
)
from indextables.engines.spark.place.options import WriteOptions
from indextables.engines.spark.place.tables import is_ours, open_table
from indextables.engines.spark.statement.plan_rewrite import name_path
from indextables.errors import ConfigError, IndexTablesError
from indextables.log.wire.actions import Txn
from indextables.ops.shared.commit import Condition
from indextables.plan.merge_rule import RECORD_KEY

_OF_THE_STREAM = ("checkpointlocation", "queryname")


def install() -> None:
    """`df.writeStream` knows tables of ours; doing it again changes nothing."""
    replace_method(DataStreamWriter, "start", _start)
    replace_method(DataStreamWriter, "toTable", _to_table)
    replace_method(DataStreamReader, "format", _format)


def _format(original: Any) -> Any:
    """`spark.readStream`: Spark would answer with a stack trace that the data source is missing."""

    def read_format(self: Any, source: str) -> Any:
        if is_ours(source):
            raise IndexTablesError(
                "a table of this format cannot be the source of a stream",
                hint="load it in each batch: foreachBatch, or a scheduled spark.read",
            )
        return original(self, source)

    return read_format


def _start(original: Any) -> Any:
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = arguments_of(original, self, *args, **kwargs)
        collect(self, given)
        if not is_ours(self._jwrite.source()):
            return original(self, given.get("path"))
        return _into_table(self, given.get("path"), original)

    return start


def _to_table(original: Any) -> Any:
    def to_table(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = arguments_of(original, self, *args, **kwargs)
        parser = self._spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
        path = name_path(self._spark, parser.parseMultipartIdentifier(given["tableName"]))
        if path is None:
            return original(self, *args, **kwargs)
        collect(self, given)
        return _into_table(self, path, DataStreamWriter.start)

    return to_table


def _into_table(writer: Any, path: str | None, start: Any) -> Any:
    java = writer._jwrite  # noqa: SLF001
    options = WriteOptions.of(
        {k: v for k, v in options_of(java).items() if k.lower() not in _OF_THE_STREAM}
    )
    location = path or options.path
    if not location:
        raise ConfigError("a stream is written to a path, and none is given", hint="start('/path')")
    mode = str(java.outputMode().toString()).lower()
    if mode == "update" and not _has_key(writer._spark, location, options):  # noqa: SLF001
        raise ConfigError(
            "a table without a key takes the output modes append and complete, not update",
            hint="option('recordKey', 'id') gives a new table a key, by which rows are then updated",
        )
    sink = Sink(location, names_in(java.partitioningColumns()), options, _SAVE_MODES[mode])
    # Spark refuses partition columns together with foreachBatch; the table partitions the rows itself.
    getattr(java, "partitioningColumns_$eq")(jvm_tools().none)
    return start(writer.foreachBatch(sink))


_SAVE_MODES: Final[Mapping[str, SaveMode]] = {
    "append": "append",
    "complete": "overwrite",
    "update": "upsert",
}


def _has_key(session: SparkSession, path: str, options: WriteOptions) -> bool:
    log = open_table(session, path).log
    return RECORD_KEY in log.snapshot().properties if log.exists() else bool(options.record_key)


class Sink:
    """What each batch of a stream is written with; called by Spark with the batch and its number."""

    def __init__(
        self, path: str, partition_by: tuple[str, ...], options: WriteOptions, mode: SaveMode
    ) -> None:
        self._path = path
        self._partition_by = partition_by
        self._options = options
        self._mode: SaveMode = "upsert" if options.upsert and mode == "append" else mode

    def __call__(self, batch: DataFrame, number: int) -> None:
        """One commit for the batch, whichever attempt this is."""
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        # The query's id lives in its checkpoint: it is the same after every restart.
        txn = None if query is None else Txn(query, number)
        execute(
            Write(
                batch,
                self._path,
                self._mode,
                replace(self._options, txn=txn),
                self._partition_by,
                replaces=self._replaces,
            )
        )

    @property
    def _replaces(self) -> Condition | None:
        """Returns every row, unless the stream itself says less: a batch in complete mode is the whole result.

        The session's partitionOverwriteMode is about other writes. By it, partitions that the result
        no longer has would stay.
        """
        options = self._options
        is_whole = options.replace_where is None and options.overwrite_mode is None
        return Condition() if self._mode == "overwrite" and is_whole else None
