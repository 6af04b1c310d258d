"""Files of a table as a DataFrame of their rows, each row knowing its file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from indextables.arrow.partition import partition_scalar
from indextables.arrow.write import WriteTarget
from indextables.core.types import Field, StructType, schema_to_json, type_to_arrow
from indextables.engines.spark.fit import as_nullable
from indextables.engines.spark.location import Place
from indextables.engines.spark.row_group_filters import UNFILTERED
from indextables.log.actions import Add
from indextables.log.split import Split

GROUP: Final = "__indextables_group"
"""The column that says which group of splits a row belongs to."""
_KEY: Final = "__indextables_key"
_SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:/+"


def read_files(
    session: SparkSession, place: Place, keys: Sequence[str], schema: StructType
) -> DataFrame:
    """The rows of these files with the file columns of `schema`; what a file lacks is NULL."""
    # Nullable: Spark would take a NOT NULL column for one that is in every file.
    columns = T.StructType.fromJson(json.loads(schema_to_json(as_nullable(schema))))
    return (
        session.read.format("parquet")
        .schema(columns)
        # directories say nothing here, and a name may look like a pattern
        .option("recursiveFileLookup", "true")
        .option("__globPaths__", "false")
        .options(**UNFILTERED)
        .load([f"{place.root}/{key}" for key in keys])
    )


def key_of_row(place: Place) -> Column:
    """The key of the file a row comes from."""
    path = F.regexp_replace(F.col("_metadata.file_path"), _SCHEME, "")
    # Spark has the path percent-encoded, where a plus is a plus and not a space.
    path = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    root = re.sub(_SCHEME, "", place.root)
    return F.substring(path, len(root) + 2, 1 << 30)


def read_groups(
    session: SparkSession, place: Place, groups: Sequence[Sequence[Split | Add]], table: WriteTarget
) -> DataFrame:
    """The rows of these splits with all columns of the table, and the number of their group."""
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
    rows = rows.withColumn(_KEY, key_of_row(place))
    return rows.join(F.broadcast(session.createDataFrame(known)), on=_KEY).drop(_KEY)


def _partition_values(splits: Sequence[Split | Add], field: Field) -> pa.Array:
    texts = [split.partition_values.get(field.name) for split in splits]
    scalars = {text: partition_scalar(text, field.type) for text in set(texts)}
    return pa.array([scalars[text] for text in texts], type_to_arrow(field.type))
