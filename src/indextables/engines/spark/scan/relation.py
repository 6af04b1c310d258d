"""Makes DataFrames of a snapshot: native scans of its files, and slices merged by key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Final

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.stats.columns import FileMask, as_array, as_mask
from indextables.core.types import DataType, ListType, MapType, StructType, schema_to_json
from indextables.engines.spark.jvm.callbacks import serve_callbacks
from indextables.engines.spark.jvm.gateway import (
    application_of,
    columns_in,
    jvm_tools,
    nullable_schema,
    quoted,
    string_map,
)
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.place.tables_and_options import settings_of
from indextables.engines.spark.scan.file_index import NativeScan, Subset, TableFileIndex, register
from indextables.engines.spark.scan.file_list import ALL_FILES, ANY_NAME, AS_STORED, FileList
from indextables.engines.spark.scan.partition_rows import FILE, SEQ, SLICE, Lineage
from indextables.engines.spark.versions import seam
from indextables.errors import UnsupportedTypeError
from indextables.log.state.snapshot import Snapshot
from indextables.plan.merge_rule import MergeMode, MergeRule
from indextables.plan.slices import Block, PrunedSlices, Slices, prune_slices, slices_of

_UNASKED: Final = {"mergeSchema": "false", "compression": "snappy", **ANY_NAME}
"""Options that mean nothing to a scan of listed files with a known schema.

Spark looks them up for every file. If they are missing, it reads the session's settings and replaces
patterns in their texts, which takes longer than making the task for the file.
"""


def native_frame(
    session: SparkSession,
    snapshot: Snapshot,
    place: Place,
    options: Mapping[str, str] | None = None,
    *,
    subset: Subset | None = None,
) -> DataFrame:
    """Returns a DataFrame over this version of the table, pinned to it however often it is used.

    It shows the rows of each file as they are; `table_frame` leaves out those that delta files hide.
    """
    tools = jvm_tools()
    serve_callbacks(tools.gateway)
    _refuse_narrower(snapshot)
    files = _files(session, snapshot, place.root, subset)
    settings = partial(settings_of, session)
    scan = register(NativeScan(snapshot, files, place.location, place.root, subset, settings))
    # Nullable, whatever the table says: a column newer than a file is NULL there, and Spark would fold
    # `z IS NULL` to FALSE.
    partition_schema = nullable_schema(tools, schema_to_json(files.partition_columns))
    # with partition columns, so that Spark keeps the table's order of columns
    columns = (subset.schema if subset else None) or snapshot.schema
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


def _refuse_narrower(snapshot: Snapshot) -> None:
    """Raises UnsupportedTypeError where this version of Spark cannot read files written before a column was widened."""
    if seam.reads_narrower or not snapshot.metadata.past_schemas:
        return
    now = {column.name: column.type for column in snapshot.metadata.schema}
    used = set(snapshot.column("schema_id").unique().to_pylist())
    for schema in (past for key, past in snapshot.metadata.past_schemas.items() if key in used):
        for column in schema:
            if column.name in now and _narrower(column.type, now[column.name]):
                raise UnsupportedTypeError(
                    f"column {column.name!r} was made wider, and Spark {seam.name} cannot read files that were "
                    "written before",
                    hint="use Spark 4.0 or newer, or Table.scan in Python",
                    column=column.name,
                )


def _narrower(before: DataType, now: DataType) -> bool:
    match before, now:
        case StructType(), StructType():
            types = {field.name: field.type for field in now}
            return any(
                field.name in types and _narrower(field.type, types[field.name]) for field in before
            )
        case ((ListType() | MapType()), _):
            return False
        case _:
            return before != now


_KEPT: Final = 32
_lists: Final[OrderedDict[tuple[str, ...], tuple[Snapshot, FileList]]] = OrderedDict()
_lock: Final = threading.Lock()


def _files(session: SparkSession, snapshot: Snapshot, root: str, subset: Subset | None) -> FileList:
    """Returns the files of this version, or of a subset of it, made once for all DataFrames that read it."""
    version = (snapshot.metadata.id, str(snapshot.version), str(snapshot.commit_id))
    key = (application_of(session), root, *version, subset.name if subset else "")
    with _lock:
        whole, files = _lists.pop(key, (None, None))
        # A table that was deleted and made again may have the same version, and no id to tell the two apart.
        if files is None or whole is not snapshot:
            files = _listed(session, snapshot, root, subset)
        _lists[key] = (snapshot, files)
        while len(_lists) > _KEPT:
            _lists.popitem(last=False)
    return files


def _listed(session: SparkSession, snapshot: Snapshot, root: str, subset: Subset | None) -> FileList:
    if subset is None:
        return FileList(snapshot, root, session)
    lineage = Lineage.of(snapshot).where(subset.mask) if subset.lineage else None
    return FileList(subset.of(snapshot), root, session, lineage)


# Reads tables with delta files in Spark: native scans, and a join that leaves out what was replaced.
#
# * Files that no newer delta file can change are one plain native scan.
# * The others are a native scan too, and a LEFT ANTI JOIN with the keys of the delta files removes the rows
#   that are replaced or deleted. A filter on the result reaches both scans, because Spark pushes it through
#   the union and to the left side of the join. A filter on the key reaches the scan of the keys as well.
# * Where rows are combined column by column, the rows of one key are grouped, and each column is taken
#   from the newest file that sets it. Filters on the key and on partition columns reach the scan.

_NEWEST: Final = "__indextables_newest"
_DELETED: Final = "__indextables_deleted"


def table_frame(
    session: SparkSession,
    place: Place,
    snapshot: Snapshot,
    options: Mapping[str, str] | None = None,
    *,
    read_optimized: bool = False,
    with_slice: bool = False,
    is_pruned: bool = False,
) -> DataFrame:
    """Returns the rows of this version, with the slice of each (`lineage.SLICE`) if asked for.

    `read_optimized` shows base files alone: rows as they were when each slice was compacted last.
    With `is_pruned` the snapshot has just the files that the caller's filter needs: they are not searched again.
    """
    return _Merge(session, place, snapshot, options or {}, with_slice, is_pruned).frame(
        read_optimized=read_optimized
    )


@dataclass(frozen=True)
class _Merge:
    session: SparkSession
    place: Place
    snapshot: Snapshot
    options: Mapping[str, str]
    with_slice: bool = False
    is_pruned: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        more = (SLICE,) if self.with_slice else ()
        object.__setattr__(self, "names", (*self.snapshot.schema.names, *more))

    @cached_property
    def rule(self) -> MergeRule:
        return MergeRule.of(self.snapshot.properties)

    def frame(self, *, read_optimized: bool) -> DataFrame:
        slices = slices_of(self.snapshot)
        if slices is None and not self.with_slice:
            return native_frame(self.session, self.snapshot, self.place, self.options)
        if slices is None:
            return self._scan("files", np.ones(self.snapshot.num_files, np.bool_))
        if read_optimized:
            return self._scan("bases", slices.block == Block.BASE)
        found = prune_slices(slices, self.snapshot.index(), None, self.rule.mode)
        frames = []
        if found.bare.any():
            frames.append(self._scan("bare", found.bare))
        merged = found.rows & ~found.bare
        if merged.any():
            if self.rule.mode is MergeMode.COLUMNS:
                frames.append(self._combined(slices, found, merged))
            else:
                frames.append(self._unhidden(found, merged))
        if not frames:  # every row was deleted, and only delta files with their keys are left
            return self._scan("bare", found.bare)
        return reduce(DataFrame.union, frames)

    def _scan(self, name: str, mask: FileMask) -> DataFrame:
        """Returns the rows of these files as they are."""
        called = f"{name} with slice" if self.with_slice else name
        return self._native(Subset(called, mask, lineage=self.with_slice)).select(
            *map(_column, self.names)
        )

    def _native(self, subset: Subset) -> DataFrame:
        subset = replace(subset, is_pruned=self.is_pruned)
        return native_frame(self.session, self.snapshot, self.place, self.options, subset=subset)

    def _keys(self, name: str, mask: FileMask) -> DataFrame:
        """Returns the keys in these delta files, each with where it comes from."""
        schema = self.snapshot.schema
        columns = StructType(tuple(f for f in schema if f.name in self.rule.key))
        return self._native(Subset(name, mask, columns, lineage=True, is_sliced=False))

    def _unhidden(self, found: PrunedSlices, merged: FileMask) -> DataFrame:
        """Returns the rows of these files whose key is in no newer delta file of their slice.

        The partition, which is that of the whole slice, is compared too, because Spark then uses a filter on
        the partition for the keys as well. It does so only for a comparison with `=`, so slices in a partition
        of NULL are joined separately.
        """
        partitions = [n for n in self.snapshot.partition_columns if n not in self.rule.key]
        named = ~self._has_null(partitions)
        frames = [
            self._anti_join(f"{name}merged", merged & chosen, found.deltas & chosen, compared)
            for name, chosen, compared in (("", named, partitions), ("null ", ~named, []))
            if (merged & chosen).any()
        ]
        return reduce(DataFrame.union, frames)

    def _anti_join(
        self, name: str, merged: FileMask, newer: FileMask, partitions: list[str]
    ) -> DataFrame:
        rows = self._native(Subset(name, merged, lineage=True))
        deltas = self._keys(f"{name} delta keys", newer)
        mine, theirs = columns_in(rows), columns_in(deltas)
        same = [mine[name] == theirs[name] for name in (*self.rule.key, *partitions, SLICE)]
        hidden = reduce(Column.__and__, same) & (theirs[SEQ] > mine[SEQ])
        return rows.join(deltas, hidden, "left_anti").select(*map(_column, self.names))

    def _has_null(self, partitions: list[str]) -> FileMask:
        """Returns one bit per file, True if its partition is NULL in one of these columns."""
        found = np.zeros(self.snapshot.num_files, np.bool_)
        if partitions:
            values = as_array(self.snapshot.column("partition_values"))
            for name in partitions:
                # Spark writes NULL into a path as the empty text
                found |= ~as_mask(pc.not_equal(values.field(name), ""))
        return found

    def _combined(self, slices: Slices, found: PrunedSlices, merged: FileMask) -> DataFrame:
        """Returns the rows of these slices put together: each column from the newest file that sets it."""
        constant = (
            *self.rule.key,
            *(p for p in self.snapshot.partition_columns if p not in self.rule.key),
        )
        rows = self._native(Subset("combined", merged, lineage=True))
        combined = rows.groupBy(*map(_column, (SLICE, *constant))).agg(
            F.max(SEQ).alias(_NEWEST),
            *(
                made
                for name in self.snapshot.schema.names
                if name not in constant
                for made in _newest_value(name, _unset(slices, merged, name))
            ),
        )
        deletes = found.deltas & (slices.block == Block.DELETE)
        if not deletes.any():
            return combined.select(*map(_column, self.names))
        gone = self._keys("deleted keys", deletes)
        gone = gone.groupBy(*map(_column, (SLICE, *self.rule.key))).agg(F.max(SEQ).alias(_DELETED))
        mine, theirs = columns_in(combined), columns_in(gone)
        same = [mine[name] == theirs[name] for name in (SLICE, *self.rule.key)]
        both = combined.join(gone, reduce(Column.__and__, same), "left_outer")
        deleted = F.coalesce(theirs[_DELETED], F.lit(-1))
        values = {
            name: F.when(mine[_seq_of(name)] > deleted, mine[name]).alias(name)
            for name in self.snapshot.schema.names
            if name not in constant
        }
        there = both.where(mine[_NEWEST] > deleted)
        return there.select(*(values.get(name, mine[name]) for name in self.names))


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _seq_of(name: str) -> str:
    return f"__indextables_seq of {name}"


def _unset(slices: Slices, files: FileMask, name: str) -> list[int]:
    """Returns the numbers of the files that do not set this column."""
    if slices.sets is None:
        return []
    numbers: list[int] = np.flatnonzero(files & ~slices.sets.setting(name)).tolist()
    return numbers


def _newest_value(name: str, unset: list[int]) -> tuple[Column, Column]:
    """Returns the column's value from the newest row that sets it, and how new that row is."""
    age = F.col(SEQ)
    if unset:
        age = F.when(~F.col(FILE).isin(unset), age)
    return F.max_by(_column(name), age).alias(name), F.max(age).alias(_seq_of(name))
