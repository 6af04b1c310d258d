"""`indextables.enable(spark)`: tables work in a session as Spark's own sources do.

Only the last step of each call chain is replaced (`load`, `table`, `sql`), once per class, and each
replacement acts on tables of ours only: everything else goes to Spark as it came.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.readwriter import DataFrameReader

from indextables.engines.spark import writers as write_capture
from indextables.engines.spark.jvm import callbacks
from indextables.engines.spark.patching import options_of, replace_method
from indextables.engines.spark.place.tables import is_ours
from indextables.engines.spark.scan.explain_labels import describing
from indextables.engines.spark.scan.lost_files import unreadable_file
from indextables.engines.spark.scan.reader import one_path, read_table, refuse_schema
from indextables.engines.spark.sql import path_of_name, run_sql
from indextables.errors import IndexTablesError


def enable(spark: Any) -> Any:
    """Returns the same session, able to read, write and query tables; calling it again changes nothing.

    On Spark Connect it reads tables and runs commands on them; what does not work says so.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        _install_connect()
        return spark
    if not isinstance(spark, SparkSession):
        raise IndexTablesError(
            f"enable() takes a SparkSession, not {type(spark).__name__}",
            hint="spark = indextables.enable(SparkSession.builder.getOrCreate())",
        )
    callbacks.install(unreadable_file)
    write_capture.install()
    replace_method(DataFrameReader, "load", _load)
    replace_method(DataFrameReader, "table", _reader_table)
    replace_method(SparkSession, "table", _session_table)
    replace_method(SparkSession, "sql", _sql)
    replace_method(ClassicDataFrame, "explain", _explain)
    return spark


def _install_connect() -> None:
    # It needs packages that a classic session does not.
    from indextables.engines.spark.connect.session import install  # noqa: PLC0415

    install()


def _load(original: Any) -> Any:
    def load(
        self: Any,
        path: Any = None,
        format: Any = None,  # noqa: A002
        schema: Any = None,
        **options: Any,
    ) -> DataFrame:
        # As PySpark does it, so that every order of calls and every form of argument works.
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not is_ours(self._jreader.source()):
            return original(self, path)  # type: ignore[no-any-return]
        refuse_schema(is_given=self._jreader.userSpecifiedSchema().isDefined())
        given = options_of(self._jreader)
        return read_table(self._spark, one_path(path, given), given)

    return load


def _reader_table(original: Any) -> Any:
    def table(self: Any, tableName: str) -> DataFrame:  # noqa: N803
        path = path_of_name(self._spark, tableName)
        if path is None:
            return original(self, tableName)  # type: ignore[no-any-return]
        return read_table(self._spark, path, options_of(self._jreader))

    return table


def _session_table(original: Any) -> Any:
    def table(self: Any, tableName: str) -> DataFrame:  # noqa: N803
        path = path_of_name(self, tableName)
        return original(self, tableName) if path is None else read_table(self, path)

    return table


def _sql(original: Any) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        return run_sql(self, lambda: original(self, sqlQuery, args, **kwargs), sqlQuery, args, kwargs)

    return sql


def _explain(original: Any) -> Any:
    def explain(self: Any, *args: Any, **kwargs: Any) -> None:
        with describing(self._jdf.queryExecution()):
            original(self, *args, **kwargs)

    return explain
