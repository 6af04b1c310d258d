"""A plan as text: printing it is the dry run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indextables.ops.repair.plan import RepairPlan


def plan_text(plan: RepairPlan) -> str:
    """Every split that would be left out and every damaged place, one line each."""
    return "\n".join(_lines(plan))


def _lines(plan: RepairPlan) -> Iterator[str]:
    if plan.error is not None:
        yield f"{plan.source} cannot be repaired: {plan.error.message}"
    else:
        yield f"repair of {plan.source} at version {plan.version}"
        yield f"  {len(plan.kept)} of {plan.total_splits} splits are kept"
        yield f"  {plan.stats_bytes_saved} bytes of statistics are left out"
    for what, excluded in (("missing", plan.missing), ("mismatched", plan.mismatched)):
        yield from (f"  {what}: {one}" for one in excluded)
    for finding in plan.unreadable:
        yield f"  {'unreadable' if finding.needed else 'unreadable, not needed'}: {finding}"
    yield from (f"  note: {note}" for note in plan.notes)
