"""Makes a DataFrame of a snapshot, which Spark scans natively."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from indextables.core.prune.source import FileMask
from indextables.core.types import StructType, schema_to_json
from indextables.engines.spark.jvm.callbacks import serve_callbacks
from indextables.engines.spark.jvm.gateway import application_of, jvm_tools, nullable_schema, string_map
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.scan.file_index import TableFileIndex
from indextables.engines.spark.scan.file_list import FileList
from indextables.engines.spark.scan.lineage import Lineage
from indextables.engines.spark.scan.native_scan import NativeScan, PartOf, register
from indextables.engines.spark.scan.row_group_filters import ALL_FILES, ANY_NAME, AS_STORED
from indextables.log.state.snapshot import Snapshot

_UNASKED: Final = {"mergeSchema": "false", "compression": "snappy", **ANY_NAME}
"""Options that mean nothing to a scan of listed files with a known schema.

Spark looks them up for every file. If they are missing, it reads the session's settings and replaces
patterns in their texts, which takes longer than making the task for the file.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of a version's files, read for all or some of their columns."""

    name: str
    """A name that tells it from every other subset of the version."""
    mask: FileMask
    """One bit per file of the version."""
    schema: StructType | None = None
    """The columns to read; None means all of the table's."""
    lineage: bool = False
    """Whether each row also says where it comes from (`lineage.COLUMNS`)."""
    is_sliced: bool = True
    """False reads each file by itself, such as the keys of delta files, whatever its rows mean in its slice."""

    is_pruned: bool = False
    """Whether the files were chosen by the conditions that the rows are filtered by."""

    @classmethod
    def with_lineage(cls, mask: FileMask) -> Part:
        """Returns these files with where each row comes from; the name tells subsets of one version apart."""
        chosen = hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:16]
        return cls(f"files {chosen}", mask, lineage=True)

    def of(self, snapshot: Snapshot) -> Snapshot:
        """Returns a snapshot of just these files."""
        part = snapshot.subset(self.mask)
        return part if self.is_sliced else part.unsliced()


def native_frame(
    session: SparkSession,
    snapshot: Snapshot,
    place: Place,
    options: Mapping[str, str] | None = None,
    *,
    part: Part | None = None,
) -> DataFrame:
    """Returns a DataFrame over this version of the table, pinned to it however often it is used.

    It shows the rows of each file as they are; `scan.merge` leaves out those that delta files hide.
    """
    tools = jvm_tools()
    serve_callbacks(tools.gateway)
    files = _files(session, snapshot, place.root, part)
    of = None if part is None else PartOf(part.name, snapshot, part.mask, part.is_pruned)
    scan = register(NativeScan(files.snapshot, files, place.location, place.root, of))
    # Nullable, whatever the table says: a column newer than a file is NULL there, and Spark would fold
    # `z IS NULL` to FALSE.
    partition_schema = nullable_schema(tools, schema_to_json(files.partition_columns))
    # with partition columns, so that Spark keeps the table's order of columns
    columns = (part.schema if part else None) or snapshot.schema
    data_schema = nullable_schema(tools, schema_to_json(columns))
    index = TableFileIndex(scan, partition_schema)
    given = {**_UNASKED, **(options or {}), **files.reader_options, **ALL_FILES, **AS_STORED}
    relation = tools.relation(
        index,
        partition_schema,
        data_schema,
        tools.none,
        tools.parquet_format(),
        string_map(tools, tuple(given.items())),
        session._jsparkSession,  # noqa: SLF001
    )
    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)  # noqa: SLF001


_KEPT: Final = 32
_lists: Final[OrderedDict[tuple[str, ...], tuple[Snapshot, FileList]]] = OrderedDict()
_lock: Final = threading.Lock()


def _files(session: SparkSession, snapshot: Snapshot, root: str, part: Part | None) -> FileList:
    """Returns the files of this version, or of a subset of it, made once for all DataFrames that read it."""
    version = (snapshot.metadata.id, str(snapshot.version), str(snapshot.commit_id))
    key = (application_of(session), root, *version, part.name if part else "")
    with _lock:
        whole, files = _lists.pop(key, (None, None))
        # A table that was deleted and made again may have the same version, and no id to tell the two apart.
        if files is None or whole is not snapshot:
            files = _listed(session, snapshot, root, part)
        _lists[key] = (snapshot, files)
        while len(_lists) > _KEPT:
            _lists.popitem(last=False)
    return files


def _listed(session: SparkSession, snapshot: Snapshot, root: str, part: Part | None) -> FileList:
    if part is None:
        return FileList(snapshot, root, session)
    lineage = Lineage.of(snapshot).where(part.mask) if part.lineage else None
    return FileList(part.of(snapshot), root, session, lineage)
