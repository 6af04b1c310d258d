"""How the tests share the workers of pytest-xdist: all that use Spark run on one, so one JVM is started.

The tests of `tests/engines/spark` are the longest of all and begin at once, on the first worker. Every other
test goes to whichever worker has least to do: the others from the start, the first when Spark is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = "tests/engines/spark/"


@pytest.hookimpl(optionalhook=True)  # the hook is unknown where xdist is switched off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Our scheduler under `-n`; a `--dist` that somebody asks for is left to do what it says."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class OneWorkerForSpark(LoadScopeScheduling):
        """xdist's scheduler of groups, with Spark as one group and every other test on its own."""

        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER if nodeid.startswith(TOGETHER) else nodeid

    # Groups by their size: the one of Spark comes first, the others are tests in the order of collection.
    config.option.loadscopereorder = True
    return OneWorkerForSpark(config, log)
