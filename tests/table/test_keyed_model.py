"""Upserts, deletes, compaction, crashes, other writers, rollbacks and repairs, in any order, against a dict."""

from hypothesis import HealthCheck, settings

from support.keyed_model import KeyedMachine

TestPropertyOfAKeyedTable = KeyedMachine.TestCase
TestPropertyOfAKeyedTable.settings = settings(
    max_examples=max(12, settings().max_examples // 8),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
