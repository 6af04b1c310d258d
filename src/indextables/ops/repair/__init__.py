"""Rebuilds a log from what is left of it, in another directory; the source is never touched."""

from indextables.ops.repair.findings import Excluded, Finding
from indextables.ops.repair.plan import RepairPlan, plan_repair
from indextables.ops.repair.run import RepairResult, repair
from indextables.ops.repair.swap import Swap

__all__ = ["Excluded", "Finding", "RepairPlan", "RepairResult", "Swap", "plan_repair", "repair"]
