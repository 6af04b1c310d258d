"""A predicate with everything it says about one column gathered: one set of states per column.

The tree that comes out has no NOT and no IS TRUE (they are pushed into the leaves, where they are
exact), and below an AND or OR each column appears once, however often and deep it was mentioned.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from indextables.core.expr.evaluate import Chain, chain_of
from indextables.core.expr.functions import Windows
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Call,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Opaque,
    Or,
    Over,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.states import (
    EMPTY,
    NOTHING,
    ONLY_NULL,
    Cuts,
    Space,
    States,
    Truth,
    any_of,
    complement,
    conjunction,
    disjunction,
    without,
)
from indextables.core.states import space_of as space_of_type
from indextables.core.types import FieldPath

# The leaf tables: for which states of its column each kind of leaf is TRUE, FALSE and NULL.

ColumnLeaf: TypeAlias = Compare | IsNull | IsNan | IsIn | StartsWith | BoolRef
"""A leaf that reads one column and nothing else."""

_NAN_ABOVE_ALL: Final = frozenset({">", ">=", "<>"})
_NAN_EQUALS_ITSELF: Final = frozenset({"=", "<=", ">=", "<=>"})


def truth_of(leaf: ColumnLeaf | Constant, space: Space) -> Truth:
    """Returns the states that make the leaf TRUE, FALSE and NULL.

    Exact unless the leaf itself is inexact.
    """
    match leaf:
        case Compare(op, _, Literal(value), nan):
            return _compare(op, value, nan, space)
        case Compare(op, _, _, nan):
            return _with_itself(op, nan, space)
        case IsNull():
            return Truth(ONLY_NULL, space.values, NOTHING)
        case IsNan():
            true = States(nan=space.values.nan)
            return Truth(true, without(_all(space), true), NOTHING)
        case IsIn(_, values, nan):
            return _is_in([v.value for v in values], nan, space)
        case StartsWith(_, prefix, exact):
            true = States(space.prefixed(prefix))
            return _unless_null(true, space) if exact else Truth(true, space.values, ONLY_NULL)
        case BoolRef():
            return _compare("=", True, NanRule.SPARK, space)
        case Constant(value):
            return _constant(value, space)
        case _:
            assert_never(leaf)


def _all(space: Space) -> States:
    return any_of([space.values, ONLY_NULL])


def _unless_null(true: States, space: Space) -> Truth:
    """Returns TRUE for these states, FALSE for all other values, NULL for NULL."""
    return Truth(true, without(space.values, true), ONLY_NULL)


def _constant(value: bool | None, space: Space) -> Truth:
    every = _all(space)
    if value is None:
        return Truth(NOTHING, NOTHING, every)
    return Truth(every, NOTHING, NOTHING) if value else Truth(NOTHING, every, NOTHING)


def _compare(op: CompareOp, value: Any, nan: NanRule, space: Space) -> Truth:
    if op == "<=>":
        if value is None:
            return Truth(ONLY_NULL, space.values, NOTHING)
        equal = _compare("=", value, nan, space)
        return Truth(equal.true, equal.not_true, NOTHING)
    if value is None:
        return _constant(None, space)
    return _unless_null(_satisfying(op, value, nan, space), space)


def _satisfying(op: CompareOp, value: Any, nan: NanRule, space: Space) -> States:
    """Returns the values v, NaN among them, for which `v op value` is TRUE."""
    has_nan = space.values.nan
    if value != value:  # noqa: PLR0124  the one value that is not equal to itself
        if nan is NanRule.IEEE:
            return space.values if op == "<>" else NOTHING
        cuts = space.values.cuts if op in {"<", "<=", "<>"} else EMPTY
        return States(cuts, nan=has_nan and op in _NAN_EQUALS_ITSELF)
    nan_satisfies = op == "<>" if nan is NanRule.IEEE else op in _NAN_ABOVE_ALL
    return States(_range(op, value, space), nan=has_nan and nan_satisfies)


def _range(op: CompareOp, value: Any, space: Space) -> Cuts:
    first, last = space.values.cuts
    match op:
        case "=" | "<=>":
            return space.point(value)
        case "<>":
            return complement(space.point(value), space.values.cuts)
        case "<":
            return _between(first, space.below(value))
        case "<=":
            return _between(first, space.above(value))
        case ">":
            return _between(space.above(value), last)
        case ">=":
            return _between(space.below(value), last)
        case _:
            assert_never(op)


def _between(start: Any, end: Any) -> Cuts:
    return (start, end) if start < end else EMPTY


def _with_itself(op: CompareOp, nan: NanRule, space: Space) -> Truth:
    """Returns a column compared with itself: only NaN under IEEE rules is not equal to itself."""
    if op == "<=>":
        equal = _with_itself("=", nan, space)
        true = any_of([equal.true, ONLY_NULL])
        return Truth(true, without(_all(space), true), NOTHING)
    values = space.values
    if op in {"=", "<=", ">="}:
        true = States(values.cuts, nan=values.nan and nan is NanRule.SPARK)
    else:
        true = States(nan=values.nan and nan is NanRule.IEEE and op == "<>")
    return _unless_null(true, space)


def _is_in(values: list[Any], nan: NanRule, space: Space) -> Truth:
    if not values:
        return _constant(False, space)
    known = [v for v in values if v is not None]
    points = [v for v in known if v == v]  # noqa: PLR0124
    listed = States(
        space.points(points),
        nan=space.values.nan and nan is NanRule.SPARK and len(points) < len(known),
    )
    if len(known) == len(values):
        return _unless_null(listed, space)
    # `x IN (1, NULL)` is never FALSE: the NULL might have been x.
    return Truth(listed, NOTHING, any_of([without(space.values, listed), ONLY_NULL]))


Op: TypeAlias = typing.Literal["and", "or"]


class View(NamedTuple):
    """How the world outside sees a condition: negated or not, and what NULL is taken for.

    NOT and IS TRUE in any order and number come down to one of these six.
    """

    negated: bool = False
    null_as: bool | None = None

    def under_not(self) -> View:
        """Returns the view on the child of a NOT seen by this view."""
        return View(not self.negated, self.null_as)

    def under_is_true(self) -> View:
        """Returns the view on the child of an IS TRUE: its NULL is FALSE before anything else happens."""
        return View(self.negated, self.negated)

    def of_constant(self, value: bool | None) -> bool | None:
        """Returns a constant, as this view sees it."""
        return self.null_as if value is None else value is not self.negated

    def of(self, truth: Truth) -> Truth:
        """Returns the truth of a condition on one column, as this view sees it."""
        seen = ~truth if self.negated else truth
        match self.null_as:
            case None:
                return seen
            case True:
                return Truth((~seen).not_true, seen.false, NOTHING, seen.error)
            case False:
                return Truth(seen.true, seen.not_true, NOTHING, seen.error)


@dataclass(frozen=True, slots=True)
class Folded:
    """All that is said about one column here."""

    path: FieldPath
    truth: Truth


@dataclass(frozen=True, slots=True)
class Atom:
    """A leaf that no single column decides: two columns together, a constant, or unreadable."""

    leaf: Compare | Constant | Opaque | Over
    view: View


@dataclass(frozen=True, slots=True)
class Joint:
    """AND or OR of parts that speak of different columns."""

    op: Op
    parts: tuple[Tree, ...]


Tree: TypeAlias = Folded | Atom | Joint
SpaceOf: TypeAlias = Callable[[FieldPath], Space]
WindowsOf: TypeAlias = Callable[[FieldPath], Windows | None]
"""Says between which ordinals a column's values are; None where that is not known."""


@dataclass(slots=True)
class _Group:
    """An AND or OR being gathered."""

    op: Op
    columns: dict[FieldPath, list[Truth]] = field(default_factory=dict)
    constants: set[bool | None] = field(default_factory=set)
    others: list[Tree] = field(default_factory=list)

    def add(self, tree: Tree) -> None:
        match tree:
            case Folded(path, truth):
                self.columns.setdefault(path, []).append(truth)
            case Atom(Constant(value), view):
                self.constants.add(view.of_constant(value))
            case Atom():
                self.others.append(tree)
            case Joint(op, parts) if op == self.op:
                for part in parts:
                    self.add(part)
            case Joint():
                self.others.append(tree)

    def close(self, space_of: SpaceOf) -> Tree:
        neutral = self.op == "and"
        if (not neutral) in self.constants:
            return Atom(Constant(not neutral), View())
        parts: list[Tree] = []
        for path, truths in self.columns.items():
            if None in self.constants:
                # NULL is a condition on any column: joined to the first, it costs no bitset.
                truths.append(truth_of(Constant(None), space_of(path)))
                self.constants.discard(None)
            parts.append(Folded(path, (conjunction if neutral else disjunction)(truths)))
        parts += self.others
        if None in self.constants or not parts:
            parts.append(Atom(Constant(None if None in self.constants else neutral), View()))
        return parts[0] if len(parts) == 1 else Joint(self.op, tuple(parts))


def _anywhere(_: FieldPath) -> None:
    return None


def correlate(predicate: Predicate, space_of: SpaceOf, windows_of: WindowsOf = _anywhere) -> Tree:
    """Returns the same condition, each column's share of an AND or OR folded into one set of states.

    Works through a stack of its own: the depth of a predicate is the user's to choose.
    """
    root = _Group("and")
    stack: list[tuple[Predicate, View, _Group] | tuple[_Group, _Group]] = [(predicate, View(), root)]
    while stack:
        item = stack.pop()
        if len(item) == 2:
            group, parent = item
            parent.add(group.close(space_of))
            continue
        node, view, group = item
        match node:
            case Not(child):
                stack.append((child, view.under_not(), group))
            case IsTrue(child):
                stack.append((child, view.under_is_true(), group))
            case And(children) | Or(children):
                op: Op = "and" if isinstance(node, And) is not view.negated else "or"
                inner = group
                if op != group.op:
                    inner = _Group(op)
                    stack.append((inner, group))
                stack.extend((child, view, inner) for child in reversed(children))
                _add_neutral(inner, children)
            case _:
                group.add(_leaf(node, view, space_of, windows_of))
    return root.close(space_of)


def _add_neutral(group: _Group, children: Sequence[Predicate]) -> None:
    if not children:
        group.add(Atom(Constant(group.op == "and"), View()))


def _leaf(
    leaf: ColumnLeaf | Constant | Opaque | Over,
    view: View,
    space_of: SpaceOf,
    windows_of: WindowsOf,
) -> Tree:
    match leaf:
        case Constant() | Opaque():
            return Atom(leaf, view)
        case Over():
            return _over(leaf, view, windows_of)
        case Compare(_, left, right) if not isinstance(right, Literal) and left != right:
            return Atom(leaf, view)
        case Compare(_, Call()):
            return Atom(leaf, view)
        case _:
            path = column_of(leaf)
            space = space_of(path)
            if not space.is_ordered and not isinstance(leaf, IsNull):
                return Atom(Opaque("a condition on values without an order", (path,)), view)
            return Folded(path, view.of(truth_of(leaf, space)))


def _over(leaf: Over, view: View, windows_of: WindowsOf) -> Tree:
    """Returns which states of the column lead to results that make the condition TRUE, FALSE and NULL.

    Each is asked for its own: the complement of a set that holds too much is a lost row.
    """
    found = truth_over(leaf)
    chain = None if found is None else chain_of(leaf.expression, windows_of)
    if found is None or chain is None:
        return Atom(leaf, view)
    return Folded(chain.path, _Preimages(chain, view.of(found)))


class _Preimages(Truth):
    """The truth over a function's argument; each of its sets is found when it is asked for."""

    def __init__(self, chain: Chain, results: Truth) -> None:
        self.__dict__.update(chain=chain, results=results)

    @cached_property
    def true(self) -> States:
        return self._of(self.__dict__["results"].true)

    @cached_property
    def false(self) -> States:
        return self._of(self.__dict__["results"].false)

    @cached_property
    def null(self) -> States:
        return self._of(self.__dict__["results"].null)

    @cached_property
    def error(self) -> States:
        errors: States = self.__dict__["chain"].errors
        return errors

    def _of(self, results: States) -> States:
        found: States = self.__dict__["chain"].preimage(results)
        return found


def truth_over(leaf: Over) -> Truth | None:
    """Returns the truth over the results of the leaf's function; None where the condition is not read."""
    assert leaf.expression.type is not None
    space = space_of_type(leaf.expression.type)
    match correlate(leaf.condition, lambda _: space):
        case Folded(truth=truth):
            return truth
        case Atom(Constant() as constant, view):
            return view.of(truth_of(constant, space))
        case _:
            return None


def column_of(leaf: ColumnLeaf) -> FieldPath:
    """Returns the column a leaf reads."""
    match leaf:
        case Compare(_, left, _):
            assert isinstance(left, Ref)  # a bound comparison has its column on the left
            return left.path
        case IsNull(ref) | IsNan(ref) | IsIn(ref) | StartsWith(ref) | BoolRef(ref):
            return ref.path
        case _:
            assert_never(leaf)
