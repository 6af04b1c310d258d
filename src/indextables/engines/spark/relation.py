"""From a snapshot to a DataFrame that Spark scans natively."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from indextables.core.types import StructType, schema_to_json
from indextables.engines.spark.file_index import TableFileIndex
from indextables.engines.spark.file_list import FileList
from indextables.engines.spark.gateway import jvm_tools
from indextables.engines.spark.scan import NativeScan, register
from indextables.log.snapshot import Snapshot
from indextables.scan.slices import refuse_log_files


def native_frame(
    session: SparkSession,
    snapshot: Snapshot,
    root: str,
    location: str,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A DataFrame over this version of the table, pinned to it however often it is used."""
    tools = jvm_tools()
    ensure_callback_server_started(tools.gateway)  # type: ignore[no-untyped-call]
    refuse_log_files(snapshot.column("kind"))
    files = _files(session, snapshot, root)
    scan = register(NativeScan(snapshot, files, location, root))
    partitions = StructType(
        tuple(f for name in snapshot.partition_columns for f in snapshot.schema if f.name == name)
    )
    # Nullable, whatever the table says: a column that is newer than a file is NULL there, and Spark
    # would fold `z IS NULL` to FALSE.
    partition_schema = tools.data_type.fromJson(schema_to_json(partitions)).asNullable()
    # All columns, partition columns too: Spark then keeps the table's order of columns.
    data_schema = tools.data_type.fromJson(schema_to_json(snapshot.schema)).asNullable()
    index = TableFileIndex(scan, partition_schema)
    relation = tools.relation(
        index,
        partition_schema,
        data_schema,
        tools.none,
        tools.parquet_format(),
        tools.string_map({**(options or {}), **files.reader_options}),
        session._jsparkSession,  # noqa: SLF001
    )
    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)  # noqa: SLF001


_KEPT: Final = 16
_lists: Final[OrderedDict[tuple[str, ...], FileList]] = OrderedDict()
_lock: Final = threading.Lock()


def _files(session: SparkSession, snapshot: Snapshot, root: str) -> FileList:
    """The files of this version, built once however many DataFrames read it."""
    application = session.sparkContext.applicationId
    key = (application, root, snapshot.metadata.id, str(snapshot.version), str(snapshot.commit_id))
    with _lock:
        found = _lists.pop(key, None)
        # The same version of a table that was deleted and made again may lack an id to tell it by.
        if found is None or found.snapshot is not snapshot:
            found = FileList(snapshot, root, session)
        _lists[key] = found
        while len(_lists) > _KEPT:
            _lists.popitem(last=False)
    return found
