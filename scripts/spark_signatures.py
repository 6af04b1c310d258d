"""Writes the signatures of Spark's own scalar functions, from which the fuzzer of conditions draws.

    python scripts/spark_signatures.py     about three minutes

Spark does not say which types a function takes, so each function of its registry is tried with arguments of
many types, and what its analyzer accepts is kept with the type of the result.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import AnalysisException

from indextables.engines.spark.local_session import local_session

TARGET = Path(__file__).parent.parent / "tests" / "engines" / "spark" / "signatures.json"
TYPES: Final = {
    "boolean": "CAST(NULL AS BOOLEAN)",
    "tinyint": "CAST(NULL AS TINYINT)",
    "int": "CAST(NULL AS INT)",
    "bigint": "CAST(NULL AS BIGINT)",
    "float": "CAST(NULL AS FLOAT)",
    "double": "CAST(NULL AS DOUBLE)",
    "decimal(20,2)": "CAST(NULL AS DECIMAL(20,2))",
    "string": "CAST(NULL AS STRING)",
    "binary": "CAST(NULL AS BINARY)",
    "date": "CAST(NULL AS DATE)",
    "timestamp": "CAST(NULL AS TIMESTAMP)",
    "timestamp_ntz": "CAST(NULL AS TIMESTAMP_NTZ)",
    "array<int>": "CAST(NULL AS ARRAY<INT>)",
    "array<string>": "CAST(NULL AS ARRAY<STRING>)",
    "map<string,int>": "CAST(NULL AS MAP<STRING,INT>)",
}
# Not a function of its arguments alone, or one that does something beside giving a value.
LEFT_OUT: Final = frozenset(
    [
        "rand",
        "randn",
        "random",
        "uuid",
        "shuffle",
        "now",
        "user",
        "session_user",
        "current_user",
        "version",
        "curdate",
        "localtimestamp",
        "sleep",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "monotonically_increasing_id",
        "spark_partition_id",
        "reflect",
        "java_method",
        "try_reflect",
        "raise_error",
        "assert_true",
        "randstr",
        "uniform",
        "aes_encrypt",
        "current_schema",
        "current_database",
        "current_catalog",
        "current_timezone",
        "current_date",
        "current_time",
        "current_timestamp",
        "unix_timestamp()",
        "typeof",
    ]
)
TRIPLES_TRIED = 40
"""How many combinations of three types are tried, at random."""


class WrongNumberError(Exception):
    """The function takes another number of arguments, whatever their types."""


def accepted(empty: DataFrame, text: str) -> str | None:
    """Returns the type of an expression, None if Spark refuses it; WrongNumberError says that all will be."""
    try:
        return empty.selectExpr(f"{text} AS v").schema["v"].dataType.simpleString()
    except AnalysisException as error:
        if "WRONG_NUM_ARGS" in (error.getCondition() or ""):
            raise WrongNumberError from error
        return None
    except Exception:  # noqa: BLE001 - a function may fail in any way
        return None


def is_scalar(spark: SparkSession, name: str) -> bool:
    """Returns True for a deterministic function of one row."""
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry
    found = registry.expressions().get(name)
    if found.isEmpty():
        return False
    return str(found.get()._1().getGroup()) not in {
        "agg_funcs",
        "window_funcs",
        "generator_funcs",
        "table_funcs",
    }


def signatures_of(empty: DataFrame, name: str, chance: random.Random) -> list[list[str]]:
    """Returns [result, *arguments] for each combination of types that was accepted."""
    found = []
    for arity in range(4):
        combinations = list(itertools.product(TYPES, repeat=arity)) if arity < 3 else []
        if arity == 2:
            combinations = chance.sample(combinations, 60)
        if arity == 3:
            combinations = [tuple(chance.choices(list(TYPES), k=3)) for _ in range(TRIPLES_TRIED)]
        kept = []
        with suppress(WrongNumberError):
            for types in combinations:
                result = accepted(empty, f"{name}({', '.join(TYPES[t] for t in types)})")
                if result is not None and result != "void":
                    kept.append([result, *types])
        found += chance.sample(kept, min(len(kept), 12))
    return found


def main() -> None:
    """Writes the file."""
    spark = local_session("signatures")
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True
    spark.conf.set("spark.sql.ansi.enabled", "true")
    chance = random.Random(7)
    empty = spark.range(0)
    names = [row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    names = [n for n in names if n.isidentifier() and n not in LEFT_OUT and is_scalar(spark, n)]
    table = {name: signatures_of(empty, name, chance) for name in names}
    kept = {name: found for name, found in sorted(table.items()) if found}
    lines = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in kept.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(kept)} functions, {sum(map(len, kept.values()))} signatures")


if __name__ == "__main__":
    main()
