"""The pruner: a bound predicate evaluated over the statistics of all splits at once.

Each part of the predicate says of every split whether it *may be* TRUE, FALSE or NULL for some row.
A split is kept if the whole may be TRUE. It never is the inverse of another answer: "may be FALSE"
is not "cannot be TRUE".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never

import numpy as np

from indextables.core.domain.truth import Atom, Folded, Joint, Tree, correlate
from indextables.core.predicate.nodes import Call, Compare, Constant, Opaque, Over, Predicate, Ref
from indextables.core.predicate.tree import columns_of
from indextables.core.prune.column_pairs import (
    Masks,
    compare_columns,
    compare_values,
    conjunction,
    disjunction,
    masks_over,
)
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.states import States
from indextables.core.stats.columns import FileMask
from indextables.core.types import FieldPath

__all__ = ["Masks", "Pruned", "evaluate", "may_match", "must_match", "overlaps", "prune"]

_Leaf = Folded | Atom
_T = TypeVar("_T")
_Combine = Callable[[Sequence[_T]], _T]


def may_match(bound: Predicate, index: ColumnStatsIndex) -> FileMask:
    """Returns one bit per split: False only if no row of that split can satisfy the predicate."""
    tree = correlate(bound, index.space, index.windows)
    mask = _reduce(tree, lambda leaf: _true(leaf, index), _all, _any)
    return mask & index.may_have_rows


def must_match(bound: Predicate, index: ColumnStatsIndex) -> FileMask:
    """Returns one bit per split: True only if every row of that split satisfies the predicate.

    Where some part may raise, no row is sure: an engine may come to that part first.
    """
    tree = correlate(bound, index.space, index.windows)
    # An AND may be something else than TRUE if any part may; an OR only if all parts may.
    other = _reduce(tree, lambda leaf: _not_true(leaf, index), _any, _all)
    if (errors := _reduce(tree, lambda leaf: _may_raise(leaf, index), _some, _some)) is not None:
        other = other | errors
    return ~(other & index.may_have_rows)


def evaluate(bound: Predicate, index: ColumnStatsIndex) -> Masks:
    """Returns all three answers for every split; a split without rows has none of them."""
    tree = correlate(bound, index.space, index.windows)
    masks = _reduce(tree, lambda leaf: _masks(leaf, index), conjunction, disjunction)
    rows = index.may_have_rows
    error = None if masks.error is None else masks.error & rows
    return Masks(masks.true & rows, masks.false & rows, masks.null & rows, error)


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """What a plan needs to know, from one reading of the predicate."""

    kept: FileMask
    """Holds what `may_match` says."""
    kept_by_partition: FileMask
    """What `may_match` would say if only partition values were known."""
    columns: tuple[FieldPath, ...]
    """The columns whose statistics were asked, partition columns left out."""


def prune(bound: Predicate, index: ColumnStatsIndex, *, keep_errors: bool = True) -> Pruned:
    """Returns which splits are kept, which of them partition values alone would keep, and who was asked.

    A split in which the predicate may raise, and be TRUE for no row, is kept only with `keep_errors`.
    """
    tree = correlate(bound, index.space, index.windows)
    everything = np.ones(index.num_rows, np.bool_)
    asked: dict[FieldPath, None] = {}

    def by_all(leaf: _Leaf) -> FileMask:
        asked.update(dict.fromkeys(_columns(leaf)))
        return _true(leaf, index, keep_errors=keep_errors)

    def by_partition(leaf: _Leaf) -> FileMask:
        is_known = all(map(index.is_partition, _columns(leaf)))
        return _true(leaf, index) if is_known else everything

    kept = _reduce(tree, by_all, _all, _any) & index.may_have_rows
    if not any(map(index.is_partition, asked)):
        return Pruned(kept, everything, tuple(asked))
    kept_by_partition = _reduce(tree, by_partition, _all, _any)
    return Pruned(kept, kept_by_partition, tuple(p for p in asked if not index.is_partition(p)))


def overlaps(path: FieldPath, states: States, index: ColumnStatsIndex) -> FileMask:
    """Returns True where some row of the split may be in one of these states."""
    stats = index.column(path)
    hit = np.zeros(index.num_rows, np.bool_)
    if states.cuts:
        whole = states.cuts == index.space(path).universe
        hit = (
            stats.may_value.copy()
            if whole
            else stats.may_value & index.bounds(path).overlap(states.cuts)
        )
    if states.null:
        hit |= stats.may_null
    if states.nan:
        hit |= stats.may_nan
    return hit


def _true(leaf: _Leaf, index: ColumnStatsIndex, *, keep_errors: bool = True) -> FileMask:
    if isinstance(leaf, Folded):
        wanted = leaf.truth.needed if keep_errors else leaf.truth.true
        return overlaps(leaf.path, wanted, index)
    found = _atom(leaf, index)
    return found.needed if keep_errors else found.true


def _not_true(leaf: _Leaf, index: ColumnStatsIndex) -> FileMask:
    if isinstance(leaf, Folded):
        return overlaps(leaf.path, leaf.truth.not_surely_true, index)
    return _atom(leaf, index).not_surely_true


def _may_raise(leaf: _Leaf, index: ColumnStatsIndex) -> FileMask | None:
    if isinstance(leaf, Folded):
        return None if leaf.truth.error.is_empty else overlaps(leaf.path, leaf.truth.error, index)
    if isinstance(leaf.leaf, Opaque):
        return np.ones(index.num_rows, np.bool_)
    return _atom(leaf, index).error


def _some(masks: Sequence[FileMask | None]) -> FileMask | None:
    known = [mask for mask in masks if mask is not None]
    return _any(known) if known else None


def _masks(leaf: _Leaf, index: ColumnStatsIndex) -> Masks:
    if isinstance(leaf, Atom):
        return _atom(leaf, index)
    truth = leaf.truth
    true, false, null = (overlaps(leaf.path, s, index) for s in (truth.true, truth.false, truth.null))
    return Masks(true, false, null, _may_raise(leaf, index))


def _atom(atom: Atom, index: ColumnStatsIndex) -> Masks:
    match atom.leaf:
        case Opaque():
            every = np.ones(index.num_rows, np.bool_)
            return Masks(every, every, every).seen(atom.view)
        case Constant(value):
            same = [np.full(index.num_rows, value is which) for which in (True, False, None)]
            return Masks(*same).seen(atom.view)
        case Compare(op, Ref(left), Ref(right), nan):
            return compare_columns(op, left, right, nan, index).seen(atom.view)
        case Compare(op, Ref() | Call() as one, Ref() | Call() as two, nan):
            return compare_values(op, one, two, nan, index).seen(atom.view)
        case Over():
            return masks_over(atom.leaf, index).seen(atom.view)
        case Compare():
            raise AssertionError("a comparison with a literal belongs to one column")
        case _:
            assert_never(atom.leaf)


def _columns(leaf: _Leaf) -> tuple[FieldPath, ...]:
    match leaf:
        case Folded(path):
            return (path,)
        case Atom(Compare() | Over() as inner):
            return columns_of(inner)
        case Atom():
            return ()


def _all(masks: Sequence[FileMask]) -> FileMask:
    return np.logical_and.reduce(masks)  # type: ignore[no-any-return]


def _any(masks: Sequence[FileMask]) -> FileMask:
    return np.logical_or.reduce(masks)  # type: ignore[no-any-return]


def _reduce(tree: Tree, leaf: Callable[[_Leaf], _T], and_: _Combine[_T], or_: _Combine[_T]) -> _T:
    """Returns the tree's value from its leaves', bottom-up.

    Never deeper on Python's stack than this call.
    """
    done: list[_T] = []
    stack: list[tuple[Tree, bool]] = [(tree, False)]
    while stack:
        node, ready = stack.pop()
        if not isinstance(node, Joint):
            done.append(leaf(node))
        elif ready:
            parts = done[-len(node.parts) :]
            del done[-len(node.parts) :]
            done.append((and_ if node.op == "and" else or_)(parts))
        else:
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(node.parts))
    return done[0]
