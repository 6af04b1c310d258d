"""The rows that a change removes, replaces and adds: found once, kept until they are written.

Everything a change needs to know comes from one run over the table and the source. What it found is
kept on the executors and never computed again: a source that gives other rows the second time (rand(),
a topic, a table somebody writes to) can then not tear a change apart. If an executor is lost, the job
fails and nothing is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.types import StructType
from indextables.engines.spark.jvm.gateway import columns_in, quoted
from indextables.engines.spark.write.fit import as_nullable, promises_in_words, spark_type
from indextables.errors import PredicateError

ACTION: Final = "__indextables_action"
IN_SOURCE: Final = "__indextables_in_source"
_CLAUSE: Final = "__indextables_clause"


Action: TypeAlias = Literal["update", "delete", "insert"]
Side: TypeAlias = Literal["both", "source", "target"]
"""Which rows a clause is about: pairs that match, rows of the source alone, rows of the table alone."""


@dataclass(frozen=True)
class Clause:
    """One WHEN … THEN; the first one that applies to a row decides."""

    action: Action
    side: Side
    condition: Column | None = None
    values: Mapping[str, Column] = field(default_factory=dict)
    """The whole new row, as the table's columns hold it."""
    assigned: frozenset[str] = frozenset()
    """The columns that are given a value; the others keep theirs, or are NULL in a new row."""


@dataclass(frozen=True)
class Target:
    """The table at one version; each row has its columns, and marks to find it again."""

    frame: DataFrame
    schema: StructType
    marks: Mapping[str, str]
    """The name a mark has among the changed rows, by the column of `frame` it comes from.

    The first is never NULL.
    """
    identity: tuple[str, ...]
    """The marks (by their names among the changed rows) that no two rows share."""


def joined(target: Target, source: DataFrame, condition: Column, clauses: Sequence[str]) -> DataFrame:
    """Pairs that satisfy the condition, and single rows of a side that some clause is about."""
    outer = {
        (False, False): "inner",
        (True, False): "right_outer",
        (False, True): "left_outer",
        (True, True): "full_outer",
    }
    how = outer["source" in clauses, "target" in clauses]
    return target.frame.join(source, condition, how)


def changed_rows(rows: DataFrame, target: Target, clauses: Sequence[Clause]) -> DataFrame:
    """Returns one row per change: what happens, to which row (its marks), and the new row's values.

    `rows` has the columns of the target, and those of the source if there is one.
    """
    attributes = columns_in(rows)
    marks = columns_in(target.frame)
    in_target = marks[next(iter(target.marks.values()))].isNotNull()
    in_source = attributes.get(IN_SOURCE, F.lit(False)).isNotNull()
    sides = {"both": in_target & in_source, "source": ~in_target, "target": in_target & ~in_source}
    if IN_SOURCE not in attributes:
        sides["target"] = F.lit(True)
    number: Column | None = None
    for at, clause in enumerate(clauses):
        applies = sides[clause.side]
        if clause.condition is not None:
            applies = applies & clause.condition
        number = F.when(applies, at) if number is None else number.when(applies, at)
    assert number is not None
    tagged = rows.select("*", number.alias(_CLAUSE)).where(F.col(_CLAUSE).isNotNull())
    return tagged.select(
        _chosen([F.lit(clause.action) for clause in clauses]).alias(ACTION),
        *(marks[column].alias(name) for name, column in target.marks.items()),
        *_values(target.schema, clauses),
    )


def _values(schema: StructType, clauses: Sequence[Clause]) -> Iterator[Column]:
    if all(clause.action == "delete" for clause in clauses):
        return
    # Nullable inside, as every scan is: Spark refuses a cast to a type that promises more. What is
    # assigned was held against the promise where it was resolved.
    for column in as_nullable(schema):
        kind = spark_type(column.type)
        values = [clause.values.get(column.name, F.lit(None)) for clause in clauses]
        yield _chosen([value.cast(kind) for value in values]).alias(column.name)


def _chosen(values: Sequence[Column]) -> Column:
    """Returns the value of the clause that applies; only that one is computed."""
    found = F.when(F.col(_CLAUSE) == 0, values[0])
    for at, value in enumerate(values[1:], 1):
        found = found.when(F.col(_CLAUSE) == at, value)
    return found


def observed(seen: Observation, names: Sequence[str]) -> list[Any]:
    """Returns what was observed while rows were computed; the map it comes in has an order of its own."""
    found = seen.get
    return [found[name] for name in names]


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Yields the same rows, computed now, and only once."""
    with promises_in_words():
        found = rows.localCheckpoint(eager=True)
    try:
        yield found
    finally:
        found._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: SLF001


def check_one_change_each(rows: DataFrame, target: Target, clauses: Sequence[Clause]) -> DataFrame:
    """Returns the rows, no two of which change one row of the table; PredicateError if some do.

    Two source rows that only delete agree, so that one of them is enough.
    """
    matched = [clause for clause in clauses if clause.side == "both"]
    names = [quoted(name) for name in target.identity]
    if len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None:
        inserts = rows.where(F.col(ACTION) == "insert")
        return (
            rows.where(F.col(ACTION) != "insert")
            .dropDuplicates([*target.identity])
            .unionByName(inserts)
        )
    changed = rows.where(F.col(ACTION) != "insert")
    twice = changed.groupBy(*names).count().where("count > 1").limit(1).collect()
    if twice:
        raise PredicateError(
            "more than one row of the source matches the same row of the table, and each would change it",
            hint="make the rows of the source unique in the columns that the condition compares; "
            "nothing was committed",
        )
    return rows
