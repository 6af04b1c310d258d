"""What `q["a"] + 1 < q["b"]` builds: a closed union of frozen expressions over columns.

They follow pandas: a missing value (NULL or NaN) equals nothing, so a comparison with it is False
and only `!=` is True. A condition is True or False for every row, never NULL, and `~` inverts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias
from typing import Literal as OneOf

from indextables.errors import PredicateError

ComparisonOp: TypeAlias = OneOf["==", "!=", "<", "<=", ">", ">="]
ArithmeticOp: TypeAlias = OneOf["+", "-", "*", "/", "**"]
LogicOp: TypeAlias = OneOf["&", "|", "^"]


class Operators:
    """What all expressions share: Python's operators build larger expressions."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves numpy.int64(1) < q["a"] to this class

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression is not true or false by itself; combine conditions with &, | and ~, "
            "not with and, or and not"
        )

    def __eq__(self, other: object) -> Any:
        return (
            self.isin(other)
            if _is_list(other)
            else Comparison("==", as_expression(self), as_expression(other))
        )

    def __ne__(self, other: object) -> Any:
        return (
            self.isnotin(other)
            if _is_list(other)
            else Comparison("!=", as_expression(self), as_expression(other))
        )

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> Comparison:
        return Comparison("<", as_expression(self), as_expression(other))

    def __le__(self, other: object) -> Comparison:
        return Comparison("<=", as_expression(self), as_expression(other))

    def __gt__(self, other: object) -> Comparison:
        return Comparison(">", as_expression(self), as_expression(other))

    def __ge__(self, other: object) -> Comparison:
        return Comparison(">=", as_expression(self), as_expression(other))

    def __add__(self, other: object) -> Arithmetic:
        return Arithmetic("+", as_expression(self), as_expression(other))

    def __radd__(self, other: object) -> Arithmetic:
        return Arithmetic("+", as_expression(other), as_expression(self))

    def __sub__(self, other: object) -> Arithmetic:
        return Arithmetic("-", as_expression(self), as_expression(other))

    def __rsub__(self, other: object) -> Arithmetic:
        return Arithmetic("-", as_expression(other), as_expression(self))

    def __mul__(self, other: object) -> Arithmetic:
        return Arithmetic("*", as_expression(self), as_expression(other))

    def __rmul__(self, other: object) -> Arithmetic:
        return Arithmetic("*", as_expression(other), as_expression(self))

    def __truediv__(self, other: object) -> Arithmetic:
        return Arithmetic("/", as_expression(self), as_expression(other))

    def __rtruediv__(self, other: object) -> Arithmetic:
        return Arithmetic("/", as_expression(other), as_expression(self))

    def __pow__(self, other: object) -> Arithmetic:
        return Arithmetic("**", as_expression(self), as_expression(other))

    def __rpow__(self, other: object) -> Arithmetic:
        return Arithmetic("**", as_expression(other), as_expression(self))

    def __neg__(self) -> Arithmetic:
        return Arithmetic("-", Value(0), as_expression(self))

    def __abs__(self) -> Absolute:
        return Absolute(as_expression(self))

    def __and__(self, other: object) -> Logic:
        return _logic("&", self, other)

    def __rand__(self, other: object) -> Logic:
        return _logic("&", other, self)

    def __or__(self, other: object) -> Logic:
        return _logic("|", self, other)

    def __ror__(self, other: object) -> Logic:
        return _logic("|", other, self)

    def __xor__(self, other: object) -> Logic:
        return _logic("^", self, other)

    def __rxor__(self, other: object) -> Logic:
        return _logic("^", other, self)

    def __invert__(self) -> Inverse:
        return Inverse(as_expression(self))

    def isin(self, *values: object) -> Member:
        """Returns the condition that the value equals one of these, given one by one or as one collection."""
        return Member(as_expression(self), _values(values))

    def isnotin(self, *values: object) -> Inverse:
        """Returns the condition that the value equals none of these; a missing value is in no list."""
        return Inverse(Member(as_expression(self), _values(values)))

    def isnull(self) -> Missing:
        """Returns the condition that the value is NULL or NaN."""
        return Missing(as_expression(self))

    def notnull(self) -> Inverse:
        """Returns the condition that the value is neither NULL nor NaN."""
        return Inverse(Missing(as_expression(self)))

    isna, notna = isnull, notnull

    def regex_match(self, pattern: str) -> Matches:
        """Returns the condition that the regular expression is found somewhere in the text."""
        return Matches(as_expression(self), pattern)


@dataclass(frozen=True, slots=True, eq=False)
class Column(Operators):
    """The column of that name. A dot means a nested field, unless a column's own name has the dot."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Value(Operators):
    """A constant."""

    value: object

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic(Operators):
    """A number computed from two."""

    op: ArithmeticOp
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True, eq=False)
class Absolute(Operators):
    """A number without its sign."""

    inner: Expression

    def __str__(self) -> str:
        return f"abs({self.inner})"


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Operators):
    """A comparison: False where a side is missing, except for !=, which is True there."""

    op: ComparisonOp
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True, eq=False)
class Member(Operators):
    """The condition that a value is in a list; a missing value in the list equals nothing."""

    inner: Expression
    values: tuple[object, ...]

    def __str__(self) -> str:
        return f"({self.inner} in {str(list(self.values))[:100]})"


@dataclass(frozen=True, slots=True, eq=False)
class Missing(Operators):
    """The condition that a value is NULL or NaN."""

    inner: Expression

    def __str__(self) -> str:
        return f"isnull({self.inner})"


@dataclass(frozen=True, slots=True, eq=False)
class Matches(Operators):
    """The condition that a regular expression is found in a text."""

    inner: Expression
    pattern: str

    def __str__(self) -> str:
        return f"regex_match({self.inner}, {self.pattern!r})"


@dataclass(frozen=True, slots=True, eq=False)
class Logic(Operators):
    """Two or more conditions combined by one operator; chains stay flat."""

    op: LogicOp
    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return "(" + f" {self.op} ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True, eq=False)
class Inverse(Operators):
    """The condition that another one is False."""

    inner: Expression

    def __str__(self) -> str:
        return f"~{self.inner}"


Expression: TypeAlias = (
    Column | Value | Arithmetic | Absolute | Comparison | Member | Missing | Matches | Logic | Inverse
)


def as_expression(value: object) -> Expression:
    """Returns an expression as it is, and anything else as a constant."""
    return value if isinstance(value, Expression) else Value(value)


def _logic(op: LogicOp, left: object, right: object) -> Logic:
    sides = (as_expression(left), as_expression(right))
    for side in sides:
        if isinstance(side, Value) and not isinstance(side.value, bool):
            raise PredicateError(
                f"{side} is not a condition",
                hint="put comparisons beside & and | in parentheses: (q['a'] > 1) & (q['b'] > 2)",
            )
    parts = [side.parts if isinstance(side, Logic) and side.op == op else (side,) for side in sides]
    return Logic(op, (*parts[0], *parts[1]))


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset) or getattr(value, "ndim", 0) == 1


def _values(given: tuple[object, ...]) -> tuple[object, ...]:
    alone = given[0] if len(given) == 1 else None
    if isinstance(alone, Iterable) and not isinstance(alone, str | bytes | Operators):
        return tuple(alone)
    return given


def columns_in(expression: Expression) -> Iterator[str]:
    """Yields the names of the columns an expression reads, in order; a name may come twice."""
    todo: list[Expression] = [expression]
    while todo:
        match todo.pop():
            case Column(name):
                yield name
            case Arithmetic(_, left, right) | Comparison(_, left, right):
                todo += (right, left)
            case Absolute(inner) | Member(inner) | Missing(inner) | Matches(inner) | Inverse(inner):
                todo.append(inner)
            case Logic(_, parts):
                todo += reversed(parts)
