"""Rebuild a log from what is left of it, elsewhere, without ever touching the source."""

from indextables.ops.repair.findings import Excluded, Finding
from indextables.ops.repair.plan import RepairPlan, plan_repair
from indextables.ops.repair.run import RepairResult, repair
from indextables.ops.repair.swap import Swap

__all__ = ["Excluded", "Finding", "RepairPlan", "RepairResult", "Swap", "plan_repair", "repair"]
