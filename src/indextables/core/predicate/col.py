"""`col("a") > 5`: the builder for conditions. Only `Column` overloads `==`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from indextables.core.predicate.datetimes import timestamp_literal
from indextables.core.predicate.like import like
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    CompareOp,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.types import FieldPath, PrimitiveType, parse_path
from indextables.errors import PredicateError

# pandas' two spellings of NULL, recognised without importing pandas.
_PANDAS_NULLS: Final = frozenset({"NaTType", "NAType"})


def col(name: str) -> Column:
    """Returns the column of that name; a dot means a nested field, backticks hold a name that has a dot.

    >>> col("st.a") > 5
    Compare(op='>', left=Ref(path=('st', 'a')), right=Literal(value=5, type=None), nan=<NanRule.SPARK: 'spark'>)
    >>> col("`a.b`").path
    ('a.b',)
    """
    if not isinstance(name, str):
        raise PredicateError(
            f"a column is called by a text, not by {name!r:.60}", hint='write it.col("price") > 5'
        )
    return Column(parse_path(name))


def literal(value: Any) -> Literal:
    """Returns a constant from any Python, numpy or pandas scalar; a NULL of any kind is None."""
    kind, module = type(value).__name__, type(value).__module__.partition(".")[0]
    if kind in _PANDAS_NULLS:
        return Literal(None)
    if module == "pandas" and kind == "Timestamp":
        return _nanoseconds(value.value, zoned=value.tzinfo is not None)
    if module == "numpy" and hasattr(value, "item"):
        return _from_numpy(value)
    return value if isinstance(value, Literal) else Literal(value)


def _from_numpy(value: Any) -> Literal:
    # A numpy time in nanoseconds turns into a bare int by itself.
    if value.dtype == "datetime64[ns]" and str(value) != "NaT":
        return _nanoseconds(int(value.astype("int64")), zoned=False)
    return Literal(value.item())


def _nanoseconds(nanos: int, *, zoned: bool) -> Literal:
    """Returns the timestamp, exactly: between two microseconds it is a fraction that no column holds."""
    if nanos % 1000:
        return Literal(Fraction(nanos, 1000), PrimitiveType("timestamp" if zoned else "timestamp_ntz"))
    return timestamp_literal(nanos // 1000, zoned=zoned)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column or nested field that builds conditions; it holds no data."""

    path: FieldPath

    def _compare(self, op: CompareOp, other: Any) -> Compare:
        right = Ref(other.path) if isinstance(other, Column) else literal(other)
        return Compare(op, Ref(self.path), right)

    def __eq__(self, other: object) -> Compare:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Compare:  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> Compare:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Compare:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Compare:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Compare:
        return self._compare(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(BoolRef(Ref(self.path)))  # raises, as for every condition

    def __getitem__(self, name: str) -> Column:
        return Column((*self.path, name))

    def field(self, name: str) -> Column:
        """Returns the nested field of that name, taken literally: a dot in it is part of the name."""
        return self[name]

    def eq_null_safe(self, other: Any) -> Compare:
        """`<=>`: equal, or both NULL; never NULL itself."""
        return self._compare("<=>", other)

    def isin(self, *values: Any) -> IsIn:
        """Equal to one of the values, given one by one or as one collection."""
        given: Iterable[Any] = values
        if len(values) == 1 and isinstance(values[0], Iterable) and not _is_scalar(values[0]):
            given = values[0]
        return IsIn(Ref(self.path), tuple(map(literal, given)))

    def between(self, low: Any, high: Any) -> And:
        """At least `low` and at most `high`."""
        return And((self >= low, self <= high))

    def is_null(self) -> IsNull:
        """Returns TRUE for NULL, else FALSE."""
        return IsNull(Ref(self.path))

    def is_not_null(self) -> Not:
        """FALSE for NULL, else TRUE."""
        return Not(self.is_null())

    def is_nan(self) -> IsNan:
        """Returns TRUE for NaN; FALSE for every number and for NULL."""
        return IsNan(Ref(self.path))

    def startswith(self, prefix: str | bytes) -> StartsWith:
        """Returns the text or bytes begin with `prefix`."""
        return StartsWith(Ref(self.path), prefix)

    def like(self, pattern: str, escape: str = "\\") -> StartsWith:
        """SQL's LIKE: % stands for any text, _ for one character."""
        found = like(Ref(self.path), pattern, escape)
        if found is None:
            raise PredicateError(
                f"{pattern!r} is not a LIKE pattern: {escape!r} stands before an ordinary character or last",
                hint=f"double it to mean the character itself: {escape * 2!r}",
                pattern=pattern,
            )
        return found

    def _condition(self) -> BoolRef:
        return BoolRef(Ref(self.path))

    def __and__(self, other: Predicate | Column) -> And:
        return self._condition() & _condition(other)

    def __or__(self, other: Predicate | Column) -> Or:
        return self._condition() | _condition(other)

    def __rand__(self, other: Predicate) -> And:
        return other & self._condition()

    def __ror__(self, other: Predicate) -> Or:
        return other | self._condition()

    def __invert__(self) -> Not:
        return Not(self._condition())


def _condition(other: Predicate | Column) -> Predicate:
    return BoolRef(Ref(other.path)) if isinstance(other, Column) else other


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bytes | Column)
