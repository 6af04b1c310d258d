"""Files of a table as a DataFrame of their rows, each row knowing its file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from indextables.core.prune.partitions import partition_scalar
from indextables.core.types import Field, StructType, schema_to_json, type_to_arrow
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.scan.file_list import ALL_FILES, ANY_NAME, AS_STORED, UNFILTERED
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.fit import as_nullable
from indextables.errors import ObjectNotFoundError, StorageError
from indextables.log.state.rows import Split
from indextables.log.wire.actions import Add
from indextables.parquet.read.footers import read_footers
from indextables.parquet.write.write import WriteTarget
from indextables.storage.base import LogStore

GROUP: Final = "__indextables_group"
"""The column that says which group of splits a row belongs to."""
_KEY: Final = "__indextables_key"
_SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:/+"


def read_files(
    session: SparkSession, place: Place, keys: Sequence[str], schema: StructType
) -> DataFrame:
    """Returns the rows of these files with the file columns of `schema`; what a file lacks is NULL.

    StorageError if Spark would leave one out: a few names are never data to it, whatever the options say.
    """
    # Nullable: Spark would take a NOT NULL column for one that is in every file.
    columns = T.StructType.fromJson(json.loads(schema_to_json(as_nullable(schema))))
    reader = (
        session.read.format("parquet")
        .schema(columns)
        # directories say nothing here, and a name may look like a pattern
        .option("recursiveFileLookup", "true")
        .option("__globPaths__", "false")
        .options(**UNFILTERED, **ALL_FILES, **AS_STORED, **ANY_NAME)
    )
    try:
        frame = reader.load([f"{place.root}/{key}" for key in keys])
    except AnalysisException as error:
        raise _missing(error, place) or error from None
    listed = len(frame._jdf.inputFiles())  # noqa: SLF001
    if listed < len(set(keys)):
        raise StorageError(
            f"Spark reads {listed} of {len(set(keys))} files of {place.root} only: by their names it takes "
            "the others for no data",
            hint="do this without Spark, with a method of Table: it rewrites them under other names",
        )
    return frame


def _missing(error: AnalysisException, place: Place) -> ObjectNotFoundError | None:
    """Returns what Spark says of the first file that is not there, as our other readers say it."""
    if seam.condition_of(error) != "PATH_NOT_FOUND":
        return None
    path = (error.getMessageParameters() or {}).get("path", "")
    return ObjectNotFoundError(
        f"the data file {path!r} of {place.root} is in the log, but not in the store",
        hint="Table.check() lists every such file, and REPAIR INDEXFILES TRANSACTION LOG makes a log without them",
        uri=place.root,
    )


def of_file(rows: DataFrame, name: str) -> Column:
    """Returns what Spark knows of the file a row comes from, also where a column of the table is called `_metadata`."""
    return seam.metadata(rows)[name]


def key_of_row(place: Place, rows: DataFrame) -> Column:
    """Returns the key of the file a row comes from."""
    path = F.regexp_replace(of_file(rows, "file_path"), _SCHEME, "")
    # Spark has the path percent-encoded, where a plus is a plus and not a space.
    path = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    root = re.sub(_SCHEME, "", place.root)
    return F.substring(path, len(root) + 2, 1 << 30)


def read_groups(
    session: SparkSession, place: Place, groups: Sequence[Sequence[Split | Add]], table: WriteTarget
) -> DataFrame:
    """Returns the rows of these splits with all columns of the table, and the number of their group."""
    splits = [split for group in groups for split in group]
    numbers = [number for number, group in enumerate(groups) for _ in group]
    fields = [field for field in table.schema if field.name in table.partition_columns]
    known = pa.table(
        {
            _KEY: pa.array([split.path for split in splits], pa.string()),
            GROUP: pa.array(numbers, pa.int32()),
            **{field.name: _partition_values(splits, field) for field in fields},
        }
    )
    rows = read_files(session, place, known[_KEY].to_pylist(), table.file_schema)
    rows = rows.withColumn(_KEY, key_of_row(place, rows))
    return rows.join(F.broadcast(seam.from_arrow(session, known)), on=_KEY).drop(_KEY)


def check_all_read(rows: int, store: LogStore, splits: Sequence[Split]) -> None:
    """Raises StorageError if these splits have more rows than were read: what replaces them would lose the others."""
    expected = sum(row_counts(store, splits).values())
    if rows < expected:
        raise fewer_read(rows, expected)


def fewer_read(rows: int, expected: int) -> StorageError:
    """Returns the error of a read that lost rows of files which were to be replaced."""
    return StorageError(
        f"{rows} of {expected} rows of the files to be replaced were read, so none of them is replaced",
        hint="Table.check(deep=True) names every file that is damaged",
    )


def row_counts(store: LogStore, splits: Sequence[Split]) -> dict[str, int]:
    """Returns the rows of each split; from its footer where the log does not say."""
    known = {split.path: split.stats.num_records for split in splits}
    unknown = [key for key, rows in known.items() if rows is None]
    footers = read_footers(store.filesystem(), unknown)
    counted = {key: int(f.num_rows) for key, f in zip(unknown, footers, strict=True)}
    return {key: counted[key] if rows is None else rows for key, rows in known.items()}


def _partition_values(splits: Sequence[Split | Add], field: Field) -> pa.Array:
    texts = [split.partition_values.get(field.name) for split in splits]
    scalars = {text: partition_scalar(text, field.type) for text in set(texts)}
    return pa.array([scalars[text] for text in texts], type_to_arrow(field.type))
