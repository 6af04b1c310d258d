"""Values in conditions, as a closed union of frozen nodes: columns, constants, functions, the unknown.

A node never evaluates itself. A reader of an engine's conditions maps node to node and proves nothing:
`core.bind` finds the types, `core.expr.functions` says what each function does, and what nobody knows is
`Unknown`, a value that may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from indextables.core.types import DataType, FieldPath

if TYPE_CHECKING:
    from indextables.core.expr.zones import Zone


class Mode(Enum):
    """What a function does where it has no result: of an overflow, a division by zero, a text that is no number."""

    ANSI = "ansi"
    """It raises an error."""
    LEGACY = "legacy"
    """It wraps, saturates or is NULL, each function in its own way."""
    TRY = "try"
    """It is NULL."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A column or nested field, by its path as the user wrote it.

    In a bound expression the path is the table's, and `type` that of the column.
    """

    path: FieldPath
    type: DataType | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a natural Python value (None for NULL) and its SQL type where it is known.

    Python values: bool, int, float, Decimal, str, bytes, datetime.date, datetime.datetime (naive =
    timestamp_ntz, aware = timestamp). Dates and timestamps outside years 1-9999 come as `int` (days,
    microseconds) together with their type.
    """

    value: Any
    type: DataType | None = None


class Condition:
    """What a condition is to a function that takes one: the base of all nodes of `core.predicate`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other values.

    `type` is the type of its result; None until it is bound, where the reader does not know it. Mode and
    zone belong to the node, not to the session: a view keeps those it was made with.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: DataType | None = None
    mode: Mode = Mode.ANSI
    zone: Zone | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that may be anything: `text` says what it was, `why` what is not known of it."""

    text: str
    columns: tuple[FieldPath, ...] = ()
    why: str = field(default="", compare=False)


Expression: TypeAlias = Ref | Literal | Call | Unknown | Condition

DEEPEST: Final = 60
"""Functions inside functions; deeper ones are Unknown, so that no walk over them is too deep for Python."""


def call(
    function: str,
    *arguments: Expression,
    type: DataType | None = None,  # noqa: A002 - the node's own word
    mode: Mode = Mode.ANSI,
    zone: Zone | None = None,
) -> Call | Unknown:
    """Returns the function of these values; Unknown where it would be too deep.

    >>> call("abs", Ref(("n",))).function
    'abs'
    """
    if max((depth_of(argument) for argument in arguments), default=0) >= DEEPEST:
        columns = tuple(dict.fromkeys(path for part in arguments for path in refs_of(part)))
        return Unknown(f"{function}(…)", columns, "it is nested too deeply")
    return Call(function, arguments, type, mode, zone)


def depth_of(expression: Expression) -> int:
    """Returns how many functions stand inside one another at the deepest place."""
    deepest, todo = 0, [(expression, 0)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        if isinstance(node, Call):
            todo.extend((argument, depth + 1) for argument in node.arguments)
    return deepest


def refs_of(expression: Expression) -> Iterator[FieldPath]:
    """Yields the columns a value is computed from, in order, some of them twice; none of conditions."""
    todo = [expression]
    while todo:
        match todo.pop():
            case Ref(path):
                yield path
            case Call(_, arguments):
                todo.extend(reversed(arguments))
            case Unknown(_, columns):
                yield from columns
            case _:
                continue
