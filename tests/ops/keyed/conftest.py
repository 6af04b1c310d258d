"""What the tests of tables with a record key share."""

from uuid import uuid4

import pytest


@pytest.fixture
def path() -> str:
    """A new place for a table, without the cost of a disk."""
    return f"memory://{uuid4()}"
