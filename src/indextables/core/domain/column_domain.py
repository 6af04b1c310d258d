"""Domains of several columns at once, and how they come from conditions and turn into them."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from indextables.core.bind.bind import bind
from indextables.core.domain.domain import MARKERS, Bound, Domain, Marker, Range, is_nan
from indextables.core.domain.truth import Atom, Folded, SpaceOf, Tree, correlate
from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    NanRule,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.predicate.tree import flatten, fold, is_computed, rebuild
from indextables.core.states import Cut, Ordinals, States, sortable_single, space_of
from indextables.core.types import (
    INTEGERS,
    DataType,
    DecimalType,
    FieldPath,
    PrimitiveType,
    StructType,
    is_float,
    leaves,
    parse_path,
    path_text,
    resolve,
    type_name,
)
from indextables.errors import PredicateError

# A domain of one column as a condition on it.


def condition(ref: Ref, domain: Domain, *, has_nan: bool) -> Predicate:
    """Returns TRUE for the values of the domain. NaN, if it counts at all, is in no range but a flag."""
    if domain.is_none or domain.is_all:
        return Constant(value=domain.is_all)
    points = [r.low.value for r in domain.ranges if r.is_point]
    parts: list[Predicate] = [IsNull(ref)] if domain.null_allowed else []
    if points:
        parts.append(IsIn(ref, tuple(Literal(value) for value in points)))
    nan_is_due = has_nan and domain.nan_allowed
    for each in (r for r in domain.ranges if not r.is_point):
        # Spark's NaN is above all numbers: an open end takes it in without a word.
        takes_nan = each.high.value is None and (nan_is_due or not has_nan)
        nan_is_due = nan_is_due and not takes_nan
        parts.append(_between(ref, each, NanRule.SPARK if takes_nan else NanRule.IEEE))
    if nan_is_due:
        parts.append(IsNan(ref))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _between(ref: Ref, range_: Range, nan: NanRule) -> Predicate:
    low, high = range_.low, range_.high
    parts: list[Predicate] = []
    if low.value is not None:
        op: CompareOp = ">" if low.bound is Bound.ABOVE else ">="
        parts.append(Compare(op, ref, Literal(low.value), nan))
    if high.value is not None:
        op = "<" if high.bound is Bound.BELOW else "<="
        parts.append(Compare(op, ref, Literal(high.value), nan))
    if parts:
        return parts[0] if len(parts) == 1 else And(tuple(parts))
    # Under IEEE's rule every value but NaN equals itself.
    return Not(IsNull(ref)) if nan is NanRule.SPARK else Compare("=", ref, ref, nan)


# Ordinals of a type's space as natural Python values, and natural values of a column's own type.

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  a timestamp_ntz has no zone
_FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()


def natural(ordinal: Any, dtype: DataType) -> Any:
    """Returns the Python value of an ordinal; OverflowError or ValueError where Python has none."""
    match dtype:
        case PrimitiveType("boolean"):
            return bool(ordinal)
        case PrimitiveType("date"):
            return dt.date.fromordinal(ordinal + _FIRST_DAY)
        case PrimitiveType("timestamp_ntz"):
            return _EPOCH + dt.timedelta(microseconds=ordinal)
        case PrimitiveType("timestamp"):
            return _EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=ordinal)
        case PrimitiveType("float"):
            return _float(ordinal, "<i", "<f", 31)
        case PrimitiveType("double"):
            return _float(ordinal, "<q", "<d", 63)
        case PrimitiveType("string"):
            return ordinal.decode("utf-8", "surrogatepass")
        case DecimalType(_, scale):
            return Decimal((int(ordinal < 0), tuple(map(int, str(abs(ordinal)))), -scale))
        case _:
            return ordinal


def _float(ordinal: int, integer: str, number: str, sign: int) -> float:
    bits = ordinal if ordinal >= 0 else -ordinal - 2**sign
    value: float = struct.unpack(number, struct.pack(integer, bits))[0]
    return value


def domain_of(states: States, space: Ordinals, dtype: DataType) -> Domain | None:
    """Returns the domain of a set of states of a typed column.

    None where Python cannot name its values.
    """
    pairs = zip(states.cuts[::2], states.cuts[1::2], strict=True)
    try:
        ranges = [Range(_low(a, space, dtype), _high(b, space, dtype)) for a, b in pairs]
    except (OverflowError, ValueError):
        return None
    return Domain(ranges, states.null, states.nan)


def _low(cut: Cut, space: Ordinals, dtype: DataType) -> Marker:
    if cut == space.universe[0]:
        return Marker(None, Bound.ABOVE)
    if space.kind == "bytes" and cut.endswith(b"\0"):
        return Marker(natural(cut[:-1], dtype), Bound.ABOVE)
    return Marker(natural(cut, dtype), Bound.EXACTLY)


def _high(cut: Cut, space: Ordinals, dtype: DataType) -> Marker:
    if cut == space.universe[1]:
        return Marker(None, Bound.BELOW)
    if space.kind != "bytes":
        return Marker(natural(cut - 1, dtype), Bound.EXACTLY)
    if cut.endswith(b"\0"):
        return Marker(natural(cut[:-1], dtype), Bound.EXACTLY)
    return Marker(natural(cut, dtype), Bound.BELOW)


def is_own_value(value: Any, dtype: DataType) -> bool:
    """Returns whether a Python value is one of the column's own type, so that nothing need be coerced."""
    match dtype, value:
        case PrimitiveType("boolean"), bool():
            return True
        case _, bool():
            return False
        case PrimitiveType(name), int() if name in INTEGERS:
            return True
        case PrimitiveType(), float() | int() if is_float(dtype):
            return _fits_float(value, dtype)
        case PrimitiveType("string"), str():
            return True
        case PrimitiveType("binary"), bytes():
            return True
        case PrimitiveType("timestamp" | "timestamp_ntz" as name), dt.datetime():
            return (value.tzinfo is not None) is (name == "timestamp")
        case PrimitiveType("date"), dt.date():
            return not isinstance(value, dt.datetime)
        case DecimalType(), Decimal() | int():
            return not is_nan(value)
        case _:
            return False


def _fits_float(value: float, dtype: DataType) -> bool:
    """Returns whether it is a double, or a float, without rounding: 2**53 + 1 is neither."""
    try:
        if dtype == PrimitiveType("double"):
            return float(value) == value
        return bool(natural(sortable_single(value), dtype) == value)
    except OverflowError:
        return False


_TURNED: Final[dict[CompareOp, CompareOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, init=False)
class ColumnDomain:
    """Rows whose every listed column has a value in its domain; None instead of a map holds no row.

    A name is written as in `col()`: `st.a` is a nested field. A column that is not listed may have
    any value.

    >>> from indextables.domain import Range
    >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
    >>> day.intersect(ColumnDomain({"day": Domain.of("tue"), "n": Domain([Range.at_least(3)])})).columns
    (('day',), ('n',))
    """

    domains: Mapping[FieldPath, Domain] | None

    def __init__(self, domains: Mapping[str, Domain] | Mapping[FieldPath, Domain] | None) -> None:
        found: dict[FieldPath, Domain] = {}
        for name, domain in (domains or {}).items():
            path = parse_path(name) if isinstance(name, str) else name
            found[path] = found[path].intersect(domain) if path in found else domain
        is_none = domains is None or any(domain.is_none for domain in found.values())
        kept = {path: domain for path, domain in found.items() if not domain.is_all}
        object.__setattr__(self, "domains", None if is_none else kept)

    @classmethod
    def all(cls) -> ColumnDomain:
        """Returns every row.

        Returns:
            The column domain that says nothing of any column.

        Examples:
            >>> ColumnDomain.all().is_all
            True
        """
        return cls({})

    @classmethod
    def none(cls) -> ColumnDomain:
        """Returns no row.

        Returns:
            The empty column domain.

        Examples:
            >>> ColumnDomain.none().is_none
            True
        """
        return cls(None)

    @property
    def is_all(self) -> bool:
        """Returns True if it holds every row."""
        return self.domains == {}

    @property
    def is_none(self) -> bool:
        """Returns True if it holds no row."""
        return self.domains is None

    @property
    def columns(self) -> tuple[FieldPath, ...]:
        """Returns the columns it says something about."""
        return tuple(self.domains or ())

    def domain(self, path: FieldPath) -> Domain:
        """Returns what it allows in one column.

        Args:
            path: The column, as a tuple of names: `("st", "a")` is a nested field.

        Returns:
            Its domain; all values if the column is not listed.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> "wed" in day.domain(("day",))
            False
        """
        if self.domains is None:
            return Domain.none()
        return self.domains.get(path, Domain.all())

    def only(self, columns: Iterable[str | FieldPath]) -> ColumnDomain:
        """Returns what it says about these columns, forgetting the others.

        Args:
            columns: Names as in `col()`, or paths.

        Returns:
            A column domain that holds at least the same rows.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> day.only(["n"]).is_all
            True
        """
        wanted = {parse_path(c) if isinstance(c, str) else c for c in columns}
        if self.domains is None:
            return self
        return ColumnDomain({path: d for path, d in self.domains.items() if path in wanted})

    def intersect(self, other: ColumnDomain) -> ColumnDomain:
        """Returns the rows that are in both.

        Args:
            other: The other column domain.

        Returns:
            Their intersection, exactly.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> day.intersect(ColumnDomain({"day": Domain.of("wed")})).is_none
            True
        """
        if self.domains is None or other.domains is None:
            return ColumnDomain.none()
        both = dict(self.domains)
        for path, domain in other.domains.items():
            both[path] = both[path].intersect(domain) if path in both else domain
        return ColumnDomain(both)

    def union(self, other: ColumnDomain) -> ColumnDomain:
        """Returns the smallest column domain that holds the rows of both.

        It may hold more: of {a: 1, b: 1} and {a: 2, b: 2} it makes {a: 1 or 2, b: 1 or 2}.

        Args:
            other: The other column domain.

        Returns:
            A column domain that may hold more rows than the two.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> day.union(ColumnDomain({"day": Domain.of("wed")})).domain(("day",)) == Domain.of(
            ...     "mon", "tue", "wed"
            ... )
            True
        """
        if self.domains is None or other.domains is None:
            return other if self.domains is None else self
        shared = [path for path in self.domains if path in other.domains]
        return ColumnDomain({p: self.domains[p].union(other.domains[p]) for p in shared})

    def complement(self) -> ColumnDomain:
        """Returns the smallest column domain that holds every row outside: exact for one column, else all.

        Returns:
            A column domain that holds every row that is not in this one.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> "mon" in day.complement().domain(("day",))
            False
        """
        if self.domains is None:
            return ColumnDomain.all()
        if not self.domains:
            return ColumnDomain.none()
        if len(self.domains) > 1:
            return ColumnDomain.all()
        return ColumnDomain({path: domain.complement() for path, domain in self.domains.items()})

    def overlaps(self, other: ColumnDomain) -> bool:
        """Returns True if a row may be in both.

        Args:
            other: The other column domain.

        Returns:
            True or False.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> day.overlaps(ColumnDomain({"day": Domain.of("tue")}))
            True
        """
        return not self.intersect(other).is_none

    def contains(self, other: ColumnDomain) -> bool:
        """Returns True if every row of the other is in this one too.

        Args:
            other: The other column domain.

        Returns:
            True or False.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> day.contains(ColumnDomain({"day": Domain.of("tue")}))
            True
        """
        if self.domains is None or other.domains is None:
            return other.domains is None
        return all(domain.contains(other.domain(path)) for path, domain in self.domains.items())

    def to_predicate(self) -> Predicate:
        """Returns a condition that is TRUE for the rows inside and for no other.

        Returns:
            The condition, for `Table.scan` and `Table.plan`.

        Examples:
            >>> day = ColumnDomain({"day": Domain.of("mon", "tue")})
            >>> from indextables.core.predicate.to_sql import to_sql
            >>> to_sql(day.to_predicate())
            "day IN ('mon', 'tue')"
        """
        if self.domains is None:
            return Constant(value=False)
        return _and([condition(Ref(path), d, has_nan=True) for path, d in self.domains.items()])

    def bind(self, schema: StructType, *, case_sensitive: bool = False) -> Predicate:
        """Returns the domain as a condition on the columns of a schema.

        A domain takes values as they are. The text '2024-1-5' may equal a date for SQL, but its place
        among other texts is not that date's place among dates.

        Args:
            schema: The schema of the table.
            case_sensitive: Whether names must be spelled as the schema has them.

        Returns:
            A bound condition.

        Raises:
            PredicateError: A value is not of its column's own type, or there is no such column.

        Examples:
            >>> from indextables.core.types import Field, PrimitiveType, StructType
            >>> schema = StructType((Field("day", PrimitiveType("string")),))
            >>> ColumnDomain({"DAY": Domain.of("mon")}).bind(schema).ref.path
            ('day',)
        """
        if self.domains is None:
            return Constant(value=False)
        conditions = []
        for path, domain in self.domains.items():
            found, dtype = resolve(schema, path, case_sensitive=case_sensitive)
            _require_own_values(found, domain, dtype)
            conditions.append(condition(Ref(found), domain, has_nan=is_float(dtype)))
        return bind(_and(conditions), schema, case_sensitive=True)

    @classmethod
    def from_predicate(
        cls, predicate: Predicate, schema: StructType | None = None, *, timezone: str = "UTC"
    ) -> tuple[ColumnDomain, Predicate]:
        """Returns the domain that holds every row for which the predicate is TRUE, and what it leaves to check.

        With a schema, literals are coerced to their column's type first, as SQL does; without one they are taken to
        be of that type already, which `bind` verifies.

        Args:
            predicate: A condition, as `col` or `parse_predicate` make it.
            schema: The schema of the table, if it is known.
            timezone: The zone of times without one.

        Returns:
            The domain and the rest. A row satisfies the predicate iff it is in the domain and satisfies the rest.

        Examples:
            >>> from indextables import col
            >>> domain, rest = ColumnDomain.from_predicate((col("n") > 3) & (col("n") < 9))
            >>> 5 in domain.domain(("n",)), 9 in domain.domain(("n",))
            (True, False)
        """
        domain, rest = cls.all(), []
        whole = flatten(fold(predicate, _column_first))
        for part in whole.children if isinstance(whole, And) else (whole,):
            found = _extract(part, schema, timezone)
            try:
                joined = domain if found is None else domain.intersect(found)
            except PredicateError:  # its values do not compare with those of another part
                joined, found = domain, None
            domain = joined
            if found is None or _is_inexact(part):
                rest.append(part)
        return domain, _and(rest)


def _and(parts: list[Predicate]) -> Predicate:
    if not parts:
        return Constant(value=True)
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _require_own_values(path: FieldPath, domain: Domain, dtype: DataType) -> None:
    markers = (marker for r in domain.ranges for marker in (r.low, r.high))
    for value in (m.value for m in markers if m.value is not None):
        if not is_own_value(value, dtype):
            raise PredicateError(
                f"{value!r} is not a value of column {path_text(path)!r}, which is {type_name(dtype)}",
                hint="give values of the column's type, or use ColumnDomain.from_predicate(p, schema)",
                column=path_text(path),
                value=value,
            )


def _extract(part: Predicate, schema: StructType | None, timezone: str) -> ColumnDomain | None:
    """Returns the domain of one conjunct.

    None where it speaks of several columns, or of none we can read.
    """
    if schema is None:
        return _face_value(part)
    known = {leaf.path: space_of(leaf.type, leaf.field.metadata) for leaf in leaves(schema)}
    spaces: SpaceOf = lambda path: known.get(path) or space_of(StructType(()))  # noqa: E731
    tree = correlate(bind(part, schema, timezone=timezone), spaces)
    if not isinstance(tree, Folded):
        return _constant(tree)
    _, dtype = resolve(schema, tree.path, case_sensitive=True)
    found = domain_of(tree.truth.true, known.get(tree.path) or space_of(dtype), dtype)
    return None if found is None else ColumnDomain({tree.path: found})


def _face_value(part: Predicate) -> ColumnDomain | None:
    if fold(part, lambda node, inner: is_computed(node) or any(inner)):
        return None  # without a schema the types of its functions are not known
    try:
        tree = correlate(part, lambda _: MARKERS)
    except TypeError:  # values of different types in one condition
        return None
    if not isinstance(tree, Folded):
        return _constant(tree)
    return ColumnDomain({tree.path: Domain.of_states(tree.truth.true)})


def _constant(tree: Tree) -> ColumnDomain | None:
    match tree:
        case Atom(Constant(value), view):
            return ColumnDomain.all() if view.of_constant(value) else ColumnDomain.none()
        case _:
            return None


def _is_inexact(part: Predicate) -> bool:
    def visit(node: Predicate, inner: tuple[bool, ...]) -> bool:
        # what a function is taken back to may hold too much
        inexact = is_computed(node) or (isinstance(node, StartsWith) and not node.exact)
        return inexact or any(inner)

    return fold(part, visit)


def _column_first(node: Predicate, inner: tuple[Predicate, ...]) -> Predicate:
    match node:
        case Compare(op, Literal() as value, Ref() as column, nan):
            return Compare(_TURNED.get(op, op), column, value, nan)
        case _:
            return rebuild(node, inner)
