"""Three bits per split: may be TRUE, may be FALSE, may be NULL for some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indextables.core.domain.truth import View
from indextables.core.prune.arrays import FileMask


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """Which outcomes a condition may have in each split; False only where statistics prove it."""

    true: FileMask
    false: FileMask
    null: FileMask

    def __invert__(self) -> Masks:
        return Masks(self.false, self.true, self.null)

    def seen(self, view: View) -> Masks:
        """The outcomes after the NOTs and IS TRUEs around the condition."""
        masks = ~self if view.negated else self
        nowhere = np.zeros_like(self.true)
        match view.null_as:
            case None:
                return masks
            case True:
                return Masks(masks.true | masks.null, masks.false, nowhere)
            case False:
                return Masks(masks.true, masks.false | masks.null, nowhere)


def conjunction(parts: Sequence[Masks]) -> Masks:
    """AND of conditions on different columns: exact as far as the columns are independent.

    NULL needs one part that may be NULL while no part has to be FALSE.
    """
    nowhere_false = np.logical_and.reduce([p.true | p.null for p in parts])
    return Masks(
        true=np.logical_and.reduce([p.true for p in parts]),
        false=np.logical_or.reduce([p.false for p in parts]),
        null=nowhere_false & np.logical_or.reduce([p.null for p in parts]),
    )


def disjunction(parts: Sequence[Masks]) -> Masks:
    """OR: the dual of AND."""
    return ~conjunction([~part for part in parts])
