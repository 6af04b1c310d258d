"""`col("a") > 5`: the builder for conditions. Only `Column` overloads `==`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from indextables.core.expr.datetimes import timestamp_literal
from indextables.core.expr.nodes import call
from indextables.core.predicate.like import escape_like, like
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    BoolRef,
    Call,
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
    Unknown,
    over,
)
from indextables.core.types import FieldPath, PrimitiveType, parse_path, type_of_name
from indextables.errors import PredicateError

# pandas' two spellings of NULL, recognised without importing pandas.
_PANDAS_NULLS: Final = frozenset({"NaTType", "NAType"})


def col(name: str) -> Column:
    """Returns the column of that name; a dot means a nested field, backticks hold a name that has a dot.

    Args:
        name: The name, as in SQL: `price`, `st.a`, or `` `a.b` `` for a name with a dot.

    Returns:
        A column, which comparisons, operators and methods make conditions and larger values of.

    Raises:
        PredicateError: It is not a name.

    Examples:
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


class Value:
    """What columns and functions of columns share: operators and methods build larger ones, and conditions."""

    __slots__ = ()

    @property
    def expression(self) -> Ref | Call | Unknown:
        """Returns the node the value stands for."""
        raise NotImplementedError

    def _compare(self, op: CompareOp, other: Any) -> Compare:
        return Compare(op, self.expression, _expression(other))

    def _call(self, function: str, *others: Any) -> Computed:
        return Computed(call(function, self.expression, *map(_expression, others)))

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
        return bool(self._condition())  # raises, as for every condition

    def eq_null_safe(self, other: Any) -> Compare:
        """Returns `<=>`: equal, or both NULL; never NULL itself."""
        return self._compare("<=>", other)

    def isin(self, *values: Any) -> Predicate:
        """Returns whether it equals one of the values, given one by one or as one collection."""
        given: Iterable[Any] = values
        if len(values) == 1 and isinstance(values[0], Iterable) and not _is_scalar(values[0]):
            given = values[0]
        literals = tuple(map(literal, given))
        return over(self.expression, lambda ref: IsIn(ref, literals))

    def between(self, low: Any, high: Any) -> And:
        """Returns whether it is at least `low` and at most `high`."""
        return And((self >= low, self <= high))

    def is_null(self) -> Predicate:
        """Returns TRUE for NULL, else FALSE."""
        return over(self.expression, IsNull)

    def is_not_null(self) -> Not:
        """Returns FALSE for NULL, else TRUE."""
        return Not(self.is_null())

    def is_nan(self) -> Predicate:
        """Returns TRUE for NaN; FALSE for every number and for NULL."""
        return over(self.expression, IsNan)

    def startswith(self, prefix: str | bytes) -> Predicate:
        """Returns whether the text or bytes begin with `prefix`."""
        return over(self.expression, lambda ref: StartsWith(ref, prefix))

    def endswith(self, suffix: str) -> Predicate:
        """Returns whether the text ends with `suffix`."""
        return self.like("%" + escape_like(suffix))

    def contains(self, text: str) -> Predicate:
        """Returns whether `text` is part of the text."""
        return self.like(f"%{escape_like(text)}%")

    def like(self, pattern: str, escape: str = "\\") -> Predicate:
        """Returns SQL's LIKE: % stands for any text, _ for one character."""
        found = like(RESULT, pattern, escape)
        if found is None:
            raise PredicateError(
                f"{pattern!r} is not a LIKE pattern: {escape!r} stands before an ordinary character or last",
                hint=f"double it to mean the character itself: {escape * 2!r}",
                pattern=pattern,
            )
        return over(self.expression, lambda ref: replace(found, ref=ref))

    def _condition(self) -> Predicate:
        return over(self.expression, BoolRef)

    def __and__(self, other: Predicate | Value) -> And:
        return self._condition() & _condition(other)

    def __or__(self, other: Predicate | Value) -> Or:
        return self._condition() | _condition(other)

    def __rand__(self, other: Predicate) -> And:
        return other & self._condition()

    def __ror__(self, other: Predicate) -> Or:
        return other | self._condition()

    def __invert__(self) -> Not:
        return Not(self._condition())

    # Functions: each by Spark's rules, with ANSI mode on.

    def __add__(self, other: Any) -> Computed:
        return self._call("+", other)

    def __radd__(self, other: Any) -> Computed:
        return Computed(call("+", _expression(other), self.expression))

    def __sub__(self, other: Any) -> Computed:
        return self._call("-", other)

    def __rsub__(self, other: Any) -> Computed:
        return Computed(call("-", _expression(other), self.expression))

    def __mul__(self, other: Any) -> Computed:
        return self._call("*", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Computed:
        return self._call("/", other)

    def __mod__(self, other: Any) -> Computed:
        return self._call("%", other)

    def __neg__(self) -> Computed:
        return self._call("negative")

    def __abs__(self) -> Computed:
        return self._call("abs")

    def cast(self, to: str) -> Computed:
        """Returns the value as another type, by Spark's name for it: `cast("decimal(10,2)")`."""
        return Computed(call("cast", self.expression, type=type_of_name(to)))

    def year(self) -> Computed:
        """Returns the year of a date or time."""
        return self._call("year")

    def month(self) -> Computed:
        """Returns the month, 1 to 12."""
        return self._call("month")

    def day(self) -> Computed:
        """Returns the day of the month."""
        return self._call("day")

    def hour(self) -> Computed:
        """Returns the hour of a time, in the zone the condition is read in."""
        return self._call("hour")

    def truncate(self, unit: str) -> Computed:
        """Returns the time at which the row's year, month, week, day or hour began."""
        return Computed(call("date_trunc", Literal(unit), self.expression))

    def lower(self) -> Computed:
        """Returns the text in lower case."""
        return self._call("lower")

    def upper(self) -> Computed:
        """Returns the text in upper case."""
        return self._call("upper")

    def length(self) -> Computed:
        """Returns the number of characters."""
        return self._call("length")

    def substring(self, start: int, length: int) -> Computed:
        """Returns `length` characters from place `start` on; the first is 1."""
        return self._call("substring", start, length)

    def coalesce(self, *others: Any) -> Computed:
        """Returns the value or, where it is NULL, the first of the others that is not."""
        return self._call("coalesce", *others)


@dataclass(frozen=True, slots=True, eq=False)
class Column(Value):
    """A column or nested field that builds conditions; it holds no data."""

    path: FieldPath

    @property
    def expression(self) -> Ref:
        """Returns the column's node."""
        return Ref(self.path)

    def __getitem__(self, name: str) -> Column:
        return Column((*self.path, name))

    def field(self, name: str) -> Column:
        """Returns the nested field of that name, taken literally: a dot in it is part of the name."""
        return self[name]


@dataclass(frozen=True, slots=True, eq=False)
class Computed(Value):
    """The value of a function of columns.

    >>> (col("ts").year() == 2024).left.function
    'year'
    """

    node: Call | Unknown

    @property
    def expression(self) -> Call | Unknown:
        """Returns the function's node."""
        return self.node


def _expression(other: Any) -> Ref | Call | Unknown | Literal:
    return other.expression if isinstance(other, Value) else literal(other)


def _condition(other: Predicate | Value) -> Predicate:
    return other._condition() if isinstance(other, Value) else other  # noqa: SLF001 - its own module


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bytes | Value)
