"""What a change does with a row: the clauses of MERGE, and UPDATE and DELETE as clauses of one kind.

Names are resolved where SQL says they belong: the values of an INSERT see the source alone, a clause
for rows WHEN NOT MATCHED BY SOURCE sees the table alone, and what is assigned to is always the table's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from indextables.core.types import Field, FieldPath, StructType, path_text, resolve
from indextables.engines.spark.jvm.gateway import attributes_of, columns_in, each
from indextables.engines.spark.statement.plan_rewrite import Rewriter
from indextables.engines.spark.statement.resolve import Resolved, resolve_in, with_scans
from indextables.engines.spark.write.changed_rows import Action, Clause, Side
from indextables.engines.spark.write.fit import fit_value, not_null
from indextables.errors import SchemaMismatchError, UnknownColumnError


@dataclass(frozen=True)
class Scopes:
    """The DataFrames in which names mean something."""

    schema: StructType
    target: DataFrame
    names: tuple[str, ...]
    """What the statement may call the table: its alias, or the parts of its name."""
    source: DataFrame | None = None
    both: DataFrame | None = None

    def of(self, side: Side) -> DataFrame:
        """Returns the columns that a clause of this kind sees."""
        found = {"both": self.both, "source": self.source, "target": self.target}[side]
        assert found is not None
        return found


def update_clause(assignments: Any, scopes: Scopes, rewriter: Rewriter) -> Clause:
    """Returns UPDATE … SET as a clause that holds for every row it is asked about."""
    reader = _Reader(scopes, rewriter)
    values = reader.updated(assignments, "target")
    return Clause("update", "target", None, values, reader.names_in(assignments))


def merge_clauses(plan: Any, scopes: Scopes, rewriter: Rewriter) -> list[Clause]:
    """Returns the clauses of a MERGE, those for matching pairs first."""
    reader = _Reader(scopes, rewriter)
    sides: list[tuple[Any, Side]] = [
        (plan.matchedActions(), "both"),
        (plan.notMatchedActions(), "source"),
        (plan.notMatchedBySourceActions(), "target"),
    ]
    return [reader.clause(action, side) for actions, side in sides for action in each(actions)]


@dataclass(frozen=True)
class _Reader:
    scopes: Scopes
    rewriter: Rewriter

    def clause(self, action: Any, side: Side) -> Clause:
        kind, values = _ACTIONS[action.nodeName()]
        condition = action.condition()
        return Clause(
            kind,
            side,
            self._resolved(condition.get(), side).column if condition.isDefined() else None,
            values(self, action, side),
            self._names_set(action),
        )

    def _names_set(self, action: Any) -> frozenset[str]:
        match action.nodeName():
            case "DeleteAction":
                return frozenset()
            case "UpdateStarAction" | "InsertStarAction":
                return frozenset(self.scopes.schema.names)
            case _:
                return self.names_in(action.assignments())

    def names_in(self, assignments: Any) -> frozenset[str]:
        """Returns the columns that are assigned to, in whole or in part."""
        return frozenset(self._path(assignment.key())[0] for assignment in each(assignments))

    def updated(self, assignments: Any, side: Side) -> dict[str, Column]:
        """Returns the row with the assigned values in place of its own."""
        values = columns_in(self.scopes.target)
        changed = dict(self._assigned(assignments, side))
        for column in self.scopes.schema:
            below = {path[1:]: value for path, value in changed.items() if path[0] == column.name}
            if below:
                values[column.name] = _replaced(values[column.name], column, below)
        return {name: values[name] for name in self.scopes.schema.names}

    def inserted(self, assignments: Any) -> dict[str, Column]:
        """Returns a new row; what is not assigned is NULL."""
        given: dict[str, Resolved] = {}
        for path, value in self._assigned(assignments, "source"):
            if len(path) > 1:
                raise SchemaMismatchError(
                    f"INSERT cannot fill {path_text(path)} alone", hint="give the whole column"
                )
            given[path[0]] = value
        nothing = Resolved(F.lit(None), T.StructField("value", T.NullType()))
        return {
            column.name: _fitted(given.get(column.name, nothing), column)
            for column in self.scopes.schema
        }

    def star(self) -> dict[str, Column]:
        """Returns every column of the table from the column of that name in the source."""
        source = self.scopes.of("source")
        columns = list(zip(attributes_of(source), source.schema.fields, strict=True))
        found: dict[str, Column] = {}
        for column in self.scopes.schema:
            same = [pair for pair in columns if pair[1].name.lower() == column.name.lower()]
            if len(same) != 1:
                raise UnknownColumnError(
                    f"* takes column {column.name!r} from the source, which has {len(same)} of that name",
                    hint="name the columns: UPDATE SET a = …, INSERT (a, …) VALUES (…)",
                    column=column.name,
                )
            found[column.name] = _fitted(Resolved(*same[0]), column)
        return found

    def _assigned(self, assignments: Any, side: Side) -> Iterator[tuple[FieldPath, Resolved]]:
        seen: set[FieldPath] = set()
        for assignment in each(assignments):
            path = self._path(assignment.key())
            if any(path[: len(other)] == other[: len(path)] for other in seen):
                raise SchemaMismatchError(
                    f"column {path_text(path)!r} is assigned to more than once",
                    hint="assign to it once",
                )
            seen.add(path)
            _refuse_default(assignment.value(), self.scopes.schema, path)
            yield path, self._resolved(assignment.value(), side)

    def _path(self, key: Any) -> FieldPath:
        """Returns the column, or field of a column, that is assigned to.

        It may carry the table's name.
        """
        if key.nodeName() != "UnresolvedAttribute":
            raise SchemaMismatchError(f"only a column can be assigned to, not {key.sql()}")
        parts = tuple(str(part) for part in each(key.nameParts()))
        names = tuple(name.lower() for name in self.scopes.names)
        starts = (names[at:] for at in range(len(names)))
        for start in starts:
            if tuple(part.lower() for part in parts[: len(start)]) == start and len(parts) > len(start):
                return resolve(self.scopes.schema, parts[len(start) :])[0]
        return resolve(self.scopes.schema, parts)[0]

    def _resolved(self, expression: Any, side: Side) -> Resolved:
        return resolve_in(self.scopes.of(side), with_scans(expression, self.rewriter))


def _fitted(value: Resolved, column: Field) -> Column:
    return fit_value(value.column, value.field, column)


def _replaced(values: Column, column: Field, below: Mapping[FieldPath, Resolved]) -> Column:
    """Returns the column with the values of some of its fields exchanged, or as a whole."""
    if () in below:
        return _fitted(below[()], column)
    assert isinstance(column.type, StructType)  # a path was resolved into it
    fields = []
    for inner in column.type:
        deeper = {path[1:]: value for path, value in below.items() if path[0] == inner.name}
        own = values.getField(inner.name)
        if not inner.nullable:
            own = not_null(own, f"{column.name}.{inner.name}")  # it is, where the whole struct is NULL
        fields.append((_replaced(own, inner, deeper) if deeper else own).alias(inner.name))
    return F.struct(*fields)


def _refuse_default(value: Any, schema: StructType, path: FieldPath) -> None:
    is_name = value.nodeName() == "UnresolvedAttribute" and value.nameParts().length() == 1
    if not is_name or value.nameParts().apply(0).upper() != "DEFAULT":
        return
    if "default" not in {name.lower() for name in schema.names}:
        raise SchemaMismatchError(
            f"column {path_text(path)!r} has no default: columns of a table have none",
            hint="assign a value, or NULL",
            column=path_text(path),
        )


_Values: TypeAlias = Callable[[_Reader, Any, Side], Mapping[str, Column]]
_ACTIONS: Final[Mapping[str, tuple[Action, _Values]]] = {
    "UpdateAction": ("update", lambda reader, action, side: reader.updated(action.assignments(), side)),
    "UpdateStarAction": ("update", lambda reader, _action, _side: reader.star()),
    "DeleteAction": ("delete", lambda _reader, _action, _side: {}),
    "InsertAction": ("insert", lambda reader, action, _side: reader.inserted(action.assignments())),
    "InsertStarAction": ("insert", lambda reader, _action, _side: reader.star()),
}
