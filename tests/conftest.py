"""Fixtures that several folders share and how workers share the tests, each defined in tests/support,
and how hard properties are tried.
"""

import os

from hypothesis import HealthCheck, settings

from support.one_worker import pytest_xdist_make_scheduler
from support.s3 import s3_server

__all__ = ["pytest_xdist_make_scheduler", "s3_server"]

# HYPOTHESIS_PROFILE=fuzz FUZZ_EXAMPLES=100000 pytest tests/core searches for as long as you like.
_patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", max_examples=100, derandomize=True, **_patient)
settings.register_profile(
    "fuzz", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "10000")), **_patient
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
