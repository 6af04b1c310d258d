"""`indextables.enable` on a Spark Connect session: reads and commands work, and the rest says that it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.query import StreamingQuery
from pyspark.sql.connect.streaming.readwriter import DataStreamReader, DataStreamWriter

from indextables.engines.spark.connect.read import read_table
from indextables.engines.spark.connect.sql import refuse, run_sql
from indextables.engines.spark.place.tables_and_options import SHORT_NAME, is_ours
from indextables.engines.spark.scan.reader import one_path, refuse_schema
from indextables.engines.spark.versions import arguments_of, replace_method
from indextables.errors import PredicateError
from indextables.sql.conditions.operands import tokenize

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType
    from pyspark.sql.types import StructType

_V2: Final = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")


def install() -> None:
    """Makes the sessions of this process on Spark Connect know tables; doing it again changes nothing."""
    replace_method(DataFrameReader, "load", _load)
    replace_method(DataFrameReader, "table", _reader_table)
    replace_method(SparkSession, "table", _session_table)
    replace_method(SparkSession, "sql", _sql)
    for name in ("save", "saveAsTable", "insertInto"):
        replace_method(DataFrameWriter, name, _refused_write)
    for name in _V2:
        replace_method(DataFrameWriterV2, name, _refused_write_to)
    for name in ("start", "toTable"):
        replace_method(DataStreamWriter, name, _refused_stream)
    replace_method(DataStreamReader, "load", _refused_stream_read)


def _load(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def load(
        self: DataFrameReader,
        path: str | list[str] | None = None,
        format: str | None = None,  # noqa: A002
        schema: StructType | str | None = None,
        **options: OptionalPrimitiveType,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not is_ours(self._format or ""):
            return original(self, path)
        refuse_schema(is_given=bool(self._schema))
        given = {key: value for key, value in self._options.items() if value is not None}
        return read_table(self._client, one_path(path, given), given)

    return load


def _reader_table(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def table(self: DataFrameReader, tableName: str) -> DataFrame:  # noqa: N803
        path = path_of_name(tableName)
        if path is None:
            return original(self, tableName)
        return read_table(self._client, path, self._options)

    return table


def _session_table(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def table(self: SparkSession, tableName: str) -> DataFrame:  # noqa: N803
        path = path_of_name(tableName)
        return original(self, tableName) if path is None else read_table(self, path, {})

    return table


def _sql(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def sql(
        self: SparkSession,
        sqlQuery: str,  # noqa: N803
        args: object = None,
        **kwargs: object,
    ) -> DataFrame:
        return run_sql(self, lambda text: original(self, text, args, **kwargs), sqlQuery)

    return sql


def path_of_name(name: object) -> str | None:
    """Returns the path in ``indextables.`path` ``; None for any other name.

    >>> path_of_name("indextables.`/data/t`"), path_of_name("db.t")
    ('/data/t', None)
    """
    try:
        parts = tokenize(name) if isinstance(name, str) else []
    except PredicateError:
        return None
    is_name = len(parts) == 4 and parts[1].is_symbol(".") and parts[2].kind in {"name", "word"}
    return parts[2].value if is_name and parts[0].value.lower() == SHORT_NAME else None


def _refused_write(original: Callable[..., None]) -> Callable[..., None]:
    def write(self: DataFrameWriter, *args: object, **kwargs: object) -> None:
        given = arguments_of(original, self, *args, **kwargs)
        _refuse_if_ours(given.get("format") or self._write.source, given, "writing a table")
        return original(self, *args, **kwargs)

    return write


def _refused_write_to(original: Callable[..., None]) -> Callable[..., None]:
    def write(self: DataFrameWriterV2, *args: object, **kwargs: object) -> None:
        given = {"tableName": self._write.table_name}
        _refuse_if_ours(self._write.provider, given, "writing a table")
        return original(self, *args, **kwargs)

    return write


def _refused_stream(
    original: Callable[..., StreamingQuery],
) -> Callable[..., StreamingQuery]:
    def start(self: DataStreamWriter, *args: object, **kwargs: object) -> StreamingQuery:
        given = arguments_of(original, self, *args, **kwargs)
        source = given.get("format") or self._write_proto.format
        _refuse_if_ours(source, given, "a stream into a table")
        return original(self, *args, **kwargs)

    return start


def _refused_stream_read(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def load(self: DataStreamReader, *args: object, **kwargs: object) -> DataFrame:
        given = arguments_of(original, self, *args, **kwargs)
        _refuse_if_ours(given.get("format") or self._format, given, "a stream from a table")
        return original(self, *args, **kwargs)

    return load


def _refuse_if_ours(source: str | None, given: Mapping[str, object], what: str) -> None:
    name = given.get("tableName") or given.get("name")
    if is_ours(source or "") or path_of_name(name) is not None:
        refuse(what)
