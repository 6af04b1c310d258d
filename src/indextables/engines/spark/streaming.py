"""A Structured Streaming sink: each batch is one commit, and a batch that runs again commits nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from indextables.engines.spark.change.writer import SaveMode, Write, execute
from indextables.engines.spark.jvm.gateway import jvm_tools, names_in, options_of
from indextables.engines.spark.place.tables_and_options import WriteOptions, is_ours, open_table
from indextables.engines.spark.statement.names import name_path
from indextables.engines.spark.versions import arguments_of, collect, replace_method, seam
from indextables.errors import ConfigError, IndexTablesError, TableNotFoundError
from indextables.log.wire.actions import Txn
from indextables.ops.shared.commit import Condition
from indextables.plan.merge_rule import RECORD_KEY

_OF_THE_STREAM = ("checkpointlocation", "queryname")


def install() -> None:
    """Makes `df.writeStream` take tables of this library; doing it again changes nothing."""
    replace_method(DataStreamWriter, "start", _start)
    replace_method(DataStreamWriter, "toTable", _to_table)
    replace_method(DataStreamReader, "format", _format)
    replace_method(DataStreamReader, "table", _table)


def _format(
    original: Callable[..., DataStreamReader],
) -> Callable[..., DataStreamReader]:
    """Returns `spark.readStream.format` with an error for tables, instead of a stack trace of a missing source."""

    def read_format(self: DataStreamReader, source: str) -> DataStreamReader:
        if is_ours(source):
            raise _no_source()
        return original(self, source)

    return read_format


def _table(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def table(self: DataStreamReader, tableName: str) -> DataFrame:  # noqa: N803
        parser = self._spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
        if name_path(self._spark, parser.parseMultipartIdentifier(tableName)) is not None:
            raise _no_source()
        return original(self, tableName)

    return table


def _no_source() -> IndexTablesError:
    return IndexTablesError(
        "a table of this format cannot be the source of a stream",
        hint="load it in each batch, with foreachBatch or a scheduled spark.read",
    )


def _start(original: Callable[..., StreamingQuery]) -> Callable[..., StreamingQuery]:
    def start(self: DataStreamWriter, *args: object, **kwargs: object) -> StreamingQuery:
        given = arguments_of(original, self, *args, **kwargs)
        collect(self, given)
        if not is_ours(seam.state(self._jwrite).source()):
            return original(self, given.get("path"))
        return _into_table(self, given.get("path"), original)

    return start


def _to_table(original: Callable[..., StreamingQuery]) -> Callable[..., StreamingQuery]:
    def to_table(self: DataStreamWriter, *args: object, **kwargs: object) -> StreamingQuery:
        given = arguments_of(original, self, *args, **kwargs)
        parser = self._spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
        parts = parser.parseMultipartIdentifier(given["tableName"])
        path = name_path(self._spark, parts)
        collect(self, given)
        if path is not None:
            return _into_table(self, path, DataStreamWriter.start)
        if is_ours(seam.state(self._jwrite).source()):
            raise TableNotFoundError(
                f"there is no table {given['tableName']}",
                hint="CREATE TABLE it first: a stream cannot make a table with a name",
                uri=given["tableName"],
            )
        return original(self, *args, **kwargs)

    return to_table


def _into_table(
    writer: DataStreamWriter, path: str | None, start: Callable[..., StreamingQuery]
) -> StreamingQuery:
    java = seam.state(writer._jwrite)  # noqa: SLF001
    options = WriteOptions.of(
        {k: v for k, v in options_of(java).items() if k.lower() not in _OF_THE_STREAM}
    )
    location = path or options.path
    if not location:
        raise ConfigError(
            "no path is given for the stream to be written to", hint="pass one: start('/path')"
        )
    mode = str(java.outputMode().toString()).lower()
    if mode == "update" and not _has_key(writer._spark, location, options):  # noqa: SLF001
        raise ConfigError(
            "a table without a record key takes the output modes append and complete, not update",
            hint="option('recordKey', 'id') gives a new table a record key, by which rows are then updated",
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
    """Writes each batch of a stream; Spark calls it with the batch and its number."""

    def __init__(
        self, path: str, partition_by: tuple[str, ...], options: WriteOptions, mode: SaveMode
    ) -> None:
        self._path = path
        self._partition_by = partition_by
        self._options = options
        self._mode: SaveMode = "upsert" if options.upsert and mode == "append" else mode

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Commits the batch once, however often Spark tries it."""
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        # the query's id is kept in its checkpoint, so it is the same after every restart
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
        """Returns every row in complete mode, where a batch is the whole result, unless the stream says less.

        The session's partitionOverwriteMode is about other writes. By it, partitions that the result no longer
        has would stay.
        """
        options = self._options
        is_whole = options.replace_where is None and options.overwrite_mode is None
        return Condition() if self._mode == "overwrite" and is_whole else None
