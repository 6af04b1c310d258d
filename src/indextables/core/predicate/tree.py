"""Walking and reshaping conditions without recursion, so that no tree is too deep.

Every rewrite keeps the three-valued result for every row: TRUE, FALSE and NULL stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, assert_never

from indextables.core.expr.nodes import refs_of
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Call,
    Compare,
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
    Unknown,
)
from indextables.core.types import FieldPath

T = TypeVar("T")


def children_of(node: Predicate) -> tuple[Predicate, ...]:
    """Returns the conditions directly inside a node, in order."""
    match node:
        case And(children) | Or(children):
            return children
        case Not(child) | IsTrue(child):
            return (child,)
        case (
            Compare()
            | IsNull()
            | IsNan()
            | IsIn()
            | StartsWith()
            | BoolRef()
            | Constant()
            | Opaque()
            | Over()
        ):
            return ()
        case _:
            assert_never(node)


def fold(
    predicate: Predicate,
    visit: Callable[[Predicate, tuple[T, ...]], T],
    children: Callable[[Predicate], tuple[Predicate, ...]] = children_of,
) -> T:
    """Returns what `visit` makes of the root; it sees each node after its children, with their results.

    >>> fold(Not(And((Constant(True), Constant(None)))), lambda node, inner: 1 + sum(inner))
    4
    """
    todo: list[tuple[Predicate, int]] = [(predicate, -1)]
    done: list[T] = []
    while todo:
        node, count = todo.pop()
        if count < 0:
            inner = children(node)
            todo.append((node, len(inner)))
            todo.extend((child, -1) for child in reversed(inner))
        else:
            split = len(done) - count
            results = tuple(done[split:])
            del done[split:]
            done.append(visit(node, results))
    return done[0]


def flatten(predicate: Predicate) -> Predicate:
    """Returns the same condition with nested ANDs and ORs merged, and double NOTs gone."""
    return fold(predicate, rebuild, _merged_children)


def _merged_children(node: Predicate) -> tuple[Predicate, ...]:
    """Returns the children of an AND with those of every AND below it, in order; likewise for OR."""
    if not isinstance(node, And | Or):
        return children_of(node)
    found: list[Predicate] = []
    todo: list[Predicate] = [node]
    while todo:
        inner = todo.pop()
        if isinstance(inner, And | Or) and type(inner) is type(node):
            todo.extend(reversed(inner.children))
        else:
            found.append(inner)
    return tuple(found)


def rebuild(node: Predicate, inner: tuple[Predicate, ...]) -> Predicate:
    """Returns the node over new children.

    An AND or OR of one is that one, an AND in an AND is part of it.
    """
    match node:
        case And():
            return _joined(And, inner)
        case Or():
            return _joined(Or, inner)
        case Not():
            return inner[0].child if isinstance(inner[0], Not) else Not(inner[0])
        case IsTrue():
            return inner[0] if isinstance(inner[0], IsTrue) else IsTrue(inner[0])
        case _:
            return node


def _joined(kind: type[And | Or], inner: tuple[Predicate, ...]) -> Predicate:
    # children may turn into the parent's kind only now, when a NOT NOT or an AND of one fell away
    if any(isinstance(child, kind) for child in inner):
        nested = (child.children if isinstance(child, kind) else (child,) for child in inner)
        inner = tuple(part for parts in nested for part in parts)
    return inner[0] if len(inner) == 1 else kind(inner)


def gather_lists(predicate: Predicate) -> Predicate:
    """Returns `c = 1 OR c = 2` as `c IN (1, 2)` and `c <> 1 AND c <> 2` as NOT IN; for bound conditions.

    Ten thousand equalities become one sorted search. The results agree for NULL too: both forms are
    NULL for a NULL in the column, and a NULL in a list stays in the list.
    """
    return fold(predicate, _gather)


def _gather(node: Predicate, inner: tuple[Predicate, ...]) -> Predicate:
    match node:
        case Or():
            return rebuild(node, _grouped(inner, _as_list, lambda group: group))
        case And():
            return rebuild(node, _grouped(inner, _as_denied_list, Not))
        case _:
            return rebuild(node, inner)


def _grouped(
    inner: tuple[Predicate, ...],
    as_list: Callable[[Predicate], IsIn | None],
    wrap: Callable[[IsIn], Predicate],
) -> tuple[Predicate, ...]:
    lists = [as_list(child) for child in inner]
    groups: dict[tuple[Ref, NanRule], list[IsIn]] = {}
    for found in lists:
        if found is not None:
            groups.setdefault((found.ref, found.nan), []).append(found)
    result: list[Predicate] = []
    for child, found in zip(inner, lists, strict=True):
        group = groups.get((found.ref, found.nan), []) if found is not None else []
        if len(group) < 2:
            result.append(child)
        elif group[0] is found:
            values = (value for one in group for value in one.values)
            result.append(wrap(IsIn(found.ref, distinct(values), found.nan)))
    return tuple(result)


def _as_list(node: Predicate) -> IsIn | None:
    match node:
        case Compare("=", Ref() as ref, Literal() as value, nan):
            return IsIn(ref, (value,), nan)
        case IsIn(_, (_, *_)):  # an empty list is FALSE even for NULL: it must not join the others
            return node
        case _:
            return None


def _as_denied_list(node: Predicate) -> IsIn | None:
    match node:
        case Compare("<>", Ref() as ref, Literal() as value, nan):
            return IsIn(ref, (value,), nan)
        case Not(child):
            return _as_list(child)
        case _:
            return None


def distinct(values: Iterable[Literal]) -> tuple[Literal, ...]:
    """Returns each value once, in order, NULL last."""
    kept: dict[Any, Literal] = {}
    null = None
    for literal in values:
        if literal.value is None:
            null = literal
        else:
            kept.setdefault(literal.value, literal)
    return (*kept.values(), null) if null is not None else tuple(kept.values())


def columns_of(predicate: Predicate) -> tuple[FieldPath, ...]:
    """Returns the columns a condition reads, each once, in the order they first appear."""
    found: dict[FieldPath, None] = {}

    def visit(node: Predicate, _: tuple[None, ...]) -> None:
        found.update(dict.fromkeys(_own_columns(node)))

    fold(predicate, visit)
    return tuple(found)


def _own_columns(node: Predicate) -> tuple[FieldPath, ...]:
    match node:
        case Compare(_, Ref(path), Literal()):
            return (path,)
        case Compare(_, left, right):
            return (*refs_of(left), *refs_of(right))
        case IsNull(ref) | IsNan(ref) | IsIn(ref) | StartsWith(ref) | BoolRef(ref):
            return (ref.path,)
        case Opaque(_, columns):
            return columns
        case Over(expression):
            return tuple(refs_of(expression))
        case And() | Or() | Not() | IsTrue() | Constant():
            return ()
        case _:
            assert_never(node)


def is_computed(node: Predicate) -> bool:
    """Returns whether this part of a condition, its children aside, needs more than comparing columns with constants.

    What it means then depends on modes and zones that its SQL text does not show.
    """
    match node:
        case Opaque() | Over():
            return True
        case Compare(_, left, right):
            return isinstance(left, Call | Unknown) or isinstance(right, Call | Unknown)
        case StartsWith(regex=regex):
            return regex is not None
        case _:
            return False
