"""One fixture runs a test on every store."""

from __future__ import annotations

from uuid import uuid4

import pytest

from indextables.storage import LogStore, open_store


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path) -> LogStore:
    """An empty store; the test's id says which."""
    match request.param:
        case "local":
            return open_store(tmp_path / "my table%20é")
        case "memory":
            return open_store(f"memory://{uuid4().hex}/my table%20é")
        case _:
            server = request.getfixturevalue("s3_server")
            return open_store(server.uri("my table%20é"), options=server.options)
