"""The table as a `pyarrow.dataset.Dataset` that plans when it is scanned.

Anything that reads Arrow datasets reads the table through it: PyArrow, pandas, DuckDB, DataFusion. Rows
come from the reader that all engines share, so partition columns, older schemas and widened types are
handled alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from indextables.core.predicate.nodes import Predicate
from indextables.core.types import PrimitiveType, schema_to_arrow
from indextables.engines.arrow.conditions import Rules, by_sql_rules, fields_of, predicate_of
from indextables.errors import PredicateError
from indextables.log.state.rows import Split
from indextables.parquet.read.read import THREADS, ReadRequest, Unit, count_rows, read_batches, units_of
from indextables.parquet.read.row_filter import check_evaluable
from indextables.plan.planner import Plan, Planner
from indextables.plan.report import Recorder

Columns: TypeAlias = Sequence[str] | Mapping[str, object] | None
_DECOY = "read this dataset through scanner() or get_fragments()"


class TableDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """One version of a table; each scan plans, and opens only the files its filter needs.

    By default (`Rules.SQL`) filters mean what they mean everywhere in this library, which is also what
    engines mean that hand over their filters in PyArrow's form. `Rules.ARROW` gives them PyArrow's own
    meaning: no comparison with NaN holds, and `~is_in(…)` holds for NULL.
    """

    def __init__(
        self, planner: Planner, *, rules: Rules = Rules.SQL, where: pc.Expression | None = None
    ) -> None:
        # Without a fragment, code that does not call scanner() would see an empty table instead of an error.
        form, files = ds.ParquetFileFormat(), LocalFileSystem()
        decoy = form.make_fragment(_DECOY, files)
        super().__init__([decoy], schema_to_arrow(planner.schema), form, files)
        self._planner, self._rules, self._where = planner, rules, where
        self._last: tuple[Predicate | None, Plan] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self._planner, self._rules, self._where)

    def __repr__(self) -> str:
        return f"TableDataset({self._planner.store.uri!r}, version={self._planner.snapshot.version})"

    @property
    def files(self) -> list[str]:
        """Returns the paths of all splits that the dataset's own filter needs."""
        return [split.path for split in self.plan().files]

    def plan(self, filter: pc.Expression | None = None) -> Plan:  # noqa: A002 - PyArrow's name for it
        """Returns the plan that a scan with this filter would follow."""
        return self._planned(self._read(filter))

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_tuning: object,
    ) -> ds.Scanner:
        """Returns a scanner over the splits the filter needs; nothing is opened before it is read."""
        rows = self._read(filter)
        plan = self._planned(rows)
        if (
            self._planner.within is None
        ):  # otherwise the caller that restricted the table has counted the rest
            Recorder.of_engine().add(pruned=plan.report.total_files - plan.report.kept_files)
        return rows.scanner(units_of(plan), columns, plan.whole, threads=THREADS)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[SplitFragment]:  # noqa: A002
        """Yields a fragment for each split that the filter needs, and one for each slice whose files are merged."""
        plan = self._planned(self._read(filter))
        # delta files whose keys the filter excludes are left out; without it the rows they replace would show
        where = filter if plan.report.total_slices else None
        for unit in units_of(plan):
            yield SplitFragment(self, unit, where)

    def count_rows(self, filter: pc.Expression | None = None, **_tuning: object) -> int:  # noqa: A002
        """Returns how many rows satisfy the filter; without one the log usually knows it."""
        if self._combined(filter) is not None:
            return int(self.scanner(columns=[], filter=filter).count_rows())
        return count_rows(
            ReadRequest(self._planner.store, self._planner.schema, ()), units_of(self.plan())
        )

    def filter(self, expression: pc.Expression) -> TableDataset:
        """Returns the same table, restricted to these rows."""
        return TableDataset(self._planner, rules=self._rules, where=self._combined(expression))

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Raises PredicateError: the log says which columns there are."""
        raise PredicateError(
            f"the schema of a table is in its log and cannot be replaced by {schema.names}",
            hint="choose columns with to_table(columns=…), or change the table with Table.evolve(schema)",
        )

    def join(self, *arguments: object, **options: object) -> ds.InMemoryDataset:
        """Returns PyArrow's join of the rows in memory."""
        return ds.dataset(self.to_table()).join(*arguments, **options)

    def join_asof(self, *arguments: object, **options: object) -> ds.InMemoryDataset:
        """Returns PyArrow's join_asof of the rows in memory."""
        return ds.dataset(self.to_table()).join_asof(*arguments, **options)

    def sort_by(self, sorting: object, **options: object) -> ds.InMemoryDataset:
        """Returns the rows in memory, sorted."""
        return ds.dataset(self.to_table()).sort_by(sorting, **options)

    def _combined(self, expression: pc.Expression | None) -> pc.Expression | None:
        if self._where is None or expression is None:
            return self._where if expression is None else expression
        return self._where & expression

    def _planned(self, rows: _Rows) -> Plan:
        # DataFusion asks for a scanner and then for the fragments with the same filter
        if self._last is None or self._last[0] != rows.bound:
            self._last = (rows.bound, self._planner.plan_bound(rows.bound))
        return self._last[1]

    def _known_whole(self, rows: _Rows) -> frozenset[str]:
        """Returns files without other rows than these, if that filter was the last one planned."""
        is_known = self._last is not None and self._last[0] == rows.bound
        return self._planned(rows).whole if is_known else frozenset()

    def _read(self, filter: pc.Expression | None) -> _Rows:  # noqa: A002
        expression = self._combined(filter)
        if expression is None:
            return _Rows(self._planner, None, None)
        bound = self._planner.bind(predicate_of(expression, self._rules, self._planner.schema))
        if _is_evaluable(bound):
            return _Rows(self._planner, bound, None)
        if self._rules is Rules.SQL:
            expression = by_sql_rules(expression, self._planner.schema)
        return _Rows(self._planner, bound, expression)


def _rebuilt(planner: Planner, rules: Rules, where: pc.Expression | None) -> TableDataset:
    return TableDataset(planner, rules=rules, where=where)


def _is_evaluable(predicate: Predicate) -> bool:
    try:
        check_evaluable(predicate)
    except PredicateError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SplitFragment:
    """One split, or one slice, with the methods of PyArrow's fragments that scan it."""

    dataset: TableDataset
    unit: Unit
    where: pc.Expression | None = None
    """A condition that every scan of it adds; None in a table without slices."""

    @property
    def path(self) -> str:
        """Returns its key in the table's store; for a slice, that of its oldest file."""
        return self.unit.path if isinstance(self.unit, Split) else self.unit.files[0].path

    @property
    def physical_schema(self) -> pa.Schema:
        """Returns the table's schema, which every scan of it gives."""
        return self.dataset.schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_tuning: object,
    ) -> ds.Scanner:
        """Returns a scanner over its rows alone; the schema is the table's, whatever is passed."""
        del schema
        rows = self.dataset._read(self._both(filter))  # noqa: SLF001 - made for each other
        whole = self.dataset._known_whole(rows)  # noqa: SLF001
        return rows.scanner([self.unit], columns, whole, threads=1)

    def _both(self, asked: pc.Expression | None) -> pc.Expression | None:
        if self.where is None or asked is None:
            return self.where if asked is None else asked
        return asked if asked.equals(self.where) else self.where & asked

    def to_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Returns the rows as a stream of batches."""
        batches: Iterator[pa.RecordBatch] = self.scanner(*arguments, **options).to_batches()
        return batches

    def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
        """Returns the rows in memory."""
        return self.scanner(*arguments, **options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Returns the first rows."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **_tuning: object) -> int:  # noqa: A002
        """Returns how many rows satisfy the filter."""
        return int(self.scanner(columns=[], filter=filter).count_rows())


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows a scan gives: filtered by the bound condition in the reader, or by `expression` in Arrow."""

    planner: Planner
    bound: Predicate | None
    expression: pc.Expression | None

    def scanner(
        self, units: Sequence[Unit], columns: Columns, whole: frozenset[str], *, threads: int
    ) -> ds.Scanner:
        """Returns a scanner over these units; nothing is opened before it is read."""
        predicate = self.bound if self.expression is None else None
        needed = self._needed(columns)
        request = ReadRequest(
            self.planner.store, self.planner.schema, needed, predicate, whole, in_arrow=True
        )
        batches = read_batches(request, units, threads=threads, recorder=Recorder.of_engine())
        wanted = list(request.columns) if columns is None else columns
        return ds.Scanner.from_batches(
            batches, schema=request.result_schema, columns=wanted, filter=self.expression
        )

    def _needed(self, columns: Columns) -> tuple[str, ...]:
        names = self.planner.schema.names
        wanted = _named(columns)
        beside = frozenset() if self.expression is None else fields_of(self.expression)
        if wanted is None or beside is None:
            return names
        needed = tuple(name for name in names if name in wanted or name in beside)
        return needed or (self._cheapest(),)

    def _cheapest(self) -> str:
        """Returns a column to count rows by, because batches without columns lose their number of rows."""
        fields = self.planner.schema.fields
        fixed = (
            f.name for f in fields if isinstance(f.type, PrimitiveType) and f.type.name != "string"
        )
        return next(iter((*self.planner.snapshot.partition_columns, *fixed)), fields[0].name)


def _named(columns: Columns) -> frozenset[str] | None:
    """Returns the columns that a projection reads; None means all of them."""
    match columns:
        case None:
            return None
        case Mapping():
            read = [fields_of(expression) for expression in columns.values()]
            known = [names for names in read if names is not None]
            return frozenset().union(*known) if len(known) == len(read) else None
        case _:
            return frozenset(columns)
