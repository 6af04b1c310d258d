"""`indextables.enable(spark)`: tables work in a session as Spark's own sources do.

Only the last method of each call chain is replaced (`load`, `table`, `sql`), once for each class. Each
replacement acts on tables of this library only and hands everything else to Spark as it came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import StructType

from indextables.engines.spark import catalog
from indextables.engines.spark import writers as write_capture
from indextables.engines.spark.jvm import callbacks
from indextables.engines.spark.jvm.gateway import options_of
from indextables.engines.spark.place.tables_and_options import is_ours
from indextables.engines.spark.scan.explain_labels import describing
from indextables.engines.spark.scan.lost_files import unreadable_file
from indextables.engines.spark.scan.reader import one_path, read_table, refuse_schema
from indextables.engines.spark.sql import Parameters, read_named, run_sql
from indextables.engines.spark.statement import views
from indextables.engines.spark.versions import check_jvm, replace_method, seam
from indextables.errors import IndexTablesError

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

Session = TypeVar("Session")


def enable(spark: Session) -> Session:
    """Makes tables readable, writable and queryable in a Spark session; calling it again changes nothing.

    On Spark Connect, tables can be read and commands run on them. What does not work there says so.

    Args:
        spark: The session.

    Returns:
        The same session.

    Raises:
        IndexTablesError: `spark` is not a session, or one of a version of Spark that is not known.

    Example:
        >>> import indextables as it
        >>> from pyspark.sql import SparkSession
        >>> spark = it.enable(SparkSession.builder.getOrCreate())  # doctest: +SKIP
        >>> spark.sql("SELECT count(*) FROM indextables.`/data/trips` WHERE km > 5")  # doctest: +SKIP
    """
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        _install_connect()
        return spark
    if not isinstance(spark, SparkSession):
        raise IndexTablesError(
            f"enable() takes a SparkSession, not {type(spark).__name__}",
            hint="spark = indextables.enable(SparkSession.builder.getOrCreate())",
        )
    check_jvm(spark)
    callbacks.install(unreadable_file)
    write_capture.install()
    views.install()
    replace_method(DataFrameReader, "load", _load)
    replace_method(DataFrameReader, "table", _reader_table)
    replace_method(SparkSession, "table", _session_table)
    replace_method(SparkSession, "sql", _sql)
    catalog.install()
    replace_method(seam.frame_class, "explain", _explain)
    return spark


def _install_connect() -> None:
    # Connect needs packages that a classic session does not.
    from indextables.engines.spark.connect.session import install  # noqa: PLC0415

    install()


def _load(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def load(
        self: DataFrameReader,
        path: str | list[str] | None = None,
        format: str | None = None,  # noqa: A002
        schema: StructType | str | None = None,
        **options: OptionalPrimitiveType,
    ) -> DataFrame:
        # as PySpark does it, so that calls in any order and arguments in any form work
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not is_ours(seam.state(self._jreader).source()):
            return original(self, path)
        refuse_schema(is_given=seam.state(self._jreader).userSpecifiedSchema().isDefined())
        given = options_of(self._jreader)
        return read_table(self._spark, one_path(path, given), given)

    return load


def _reader_table(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def table(self: DataFrameReader, tableName: str) -> DataFrame:  # noqa: N803
        views.refresh_views(self._spark, tableName)
        found = read_named(self._spark, tableName, options_of(self._jreader))
        return original(self, tableName) if found is None else found

    return table


def _session_table(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def table(self: SparkSession, tableName: str) -> DataFrame:  # noqa: N803
        views.refresh_views(self, tableName)
        found = read_named(self, tableName)
        return original(self, tableName) if found is None else found

    return table


def _sql(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def sql(
        self: SparkSession,
        sqlQuery: str,  # noqa: N803
        args: Parameters | None = None,
        **kwargs: object,
    ) -> DataFrame:
        return run_sql(self, lambda: original(self, sqlQuery, args, **kwargs), sqlQuery, args, kwargs)

    return sql


def _explain(original: Callable[..., None]) -> Callable[..., None]:
    def explain(self: DataFrame, *args: object, **kwargs: object) -> None:
        with describing(self._jdf.queryExecution()):
            original(self, *args, **kwargs)

    return explain
