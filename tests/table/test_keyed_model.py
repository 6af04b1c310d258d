"""Upserts, deletes, compaction, crashes, other writers, rollbacks and repairs, in any order, against a dict."""

from hypothesis import HealthCheck, settings

from support.keyed_model import KeyedMachine

TestPropertyOfAKeyedTable = KeyedMachine.TestCase
TestPropertyOfAKeyedTable.settings = settings(
    max_examples=max(25, settings().max_examples // 4),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
