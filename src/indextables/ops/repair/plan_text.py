"""What a reader of the plan should know, although nothing stands in the way of the repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from indextables.log.wire.files import Unverified
from indextables.ops.repair.evidence import Evidence
from indextables.ops.repair.findings import listed
from indextables.ops.repair.route import Route

if TYPE_CHECKING:
    from indextables.ops.repair.plan import RepairPlan


def notes_on(evidence: Evidence, route: Route) -> Iterator[str]:
    """Sentences about the log as it is."""
    names = evidence.place.names
    if evidence.hint_problem is not None:
        yield f"{names.hint} is garbled ({evidence.hint_problem}); nothing depends on it"
    elif evidence.hint is None and evidence.checkpoints:
        yield f"{names.hint} is missing; nothing depends on it"
    if route.base is not None:
        yield f"the state starts from {route.base.file.name}, not from the first commit"
    foreign = [c for c in route.commits if isinstance(c.verdict, Unverified)]
    if foreign:
        yield (
            f"{len(foreign)} commits have no checksum, as another writer left them: they can be read, but "
            f"nothing proves that they are whole (the first is {foreign[0].file.name})"
        )
    if len(widths := sorted(evidence.listing.widths)) > 1:
        yield f"names of {' and '.join(map(str, widths))} digits are mixed; the new log has 18"
    if strangers := list(_strangers(evidence)):
        yield f"files that are not part of a log are left where they are: {listed(strangers)}"


def _strangers(evidence: Evidence) -> Iterator[str]:
    names = evidence.place.names
    for meta in evidence.place.store.list(names.prefix):
        if names.parse(meta) is None and meta.key != names.hint:
            yield meta.key


# A plan as text: printing it is the dry run.


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
