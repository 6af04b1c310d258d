"""Passwords and signatures of URLs are in no error, no traceback, no history and no log; a fork says what is wrong."""

from __future__ import annotations

import logging
import subprocess
import sys
import traceback

import pytest
from support.damage import make_table
from support.s3 import CREDENTIALS

from indextables.errors import StorageError, redacted
from indextables.ops.repair import repair
from indextables.ops.repair.log_location import location_of
from indextables.ops.repair.new_log import origin_of
from indextables.storage import open_store

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"http://me:{SECRET}@host:9000/b", "http://***@host:9000/b"),
        (f"cannot reach 'https://me:{SECRET}@x@host/b'", "cannot reach 'https://***@host/b'"),
        (f"http://host/b?X-Amz-Date=1&X-Amz-Signature={SECRET}", "http://host/b?X-Amz-Date=1&X-Amz-Signature=***"),
        (f"https://a.blob.core.windows.net/c?sv=1&sig={SECRET}&se=2", "https://a.blob.core.windows.net/c?sv=1&sig=***&se=2"),
        (f"http://h/b?X-Amz-Security-Token={SECRET}", "http://h/b?X-Amz-Security-Token=***"),
        ("abfss://container@account.dfs.core.windows.net/t", "abfss://container@account.dfs.core.windows.net/t"),
        ("s3://bucket/day=2024-01-01/a:b@c", "s3://bucket/day=2024-01-01/a:b@c"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_secrets(text, shown):
    """What is no secret stays, or nobody could find the object."""
    assert redacted(text) == shown
    error = StorageError(text, hint=text, uri=text)
    assert (error.message, error.hint, error.uri) == (shown, shown, shown)


def test_an_endpoint_with_a_password_is_in_no_error_no_traceback_and_no_log(caplog):
    """Nor in the error of the client that it was raised from."""
    options = {
        **CREDENTIALS,
        "endpoint": f"http://me:{SECRET}@127.0.0.1:1",
        "region": "us-east-1",
        "retry_config": {"max_retries": 0},
    }
    store = open_store("s3://bucket/t", options=options)
    with caplog.at_level(logging.DEBUG), pytest.raises(StorageError) as caught:
        store.get("x")
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown and SECRET not in repr(store) and SECRET not in caplog.text


def test_the_history_of_a_repaired_log_holds_no_password(tmp_path):
    """Its first commit names the source."""
    table = make_table(tmp_path / "t", commits=1)

    def opener(_uri):
        return open_store(table.root)

    source, target = (f"hdfs://me:{SECRET}@host/t/{n}" for n in ("_transaction_log", "_repaired"))
    assert repair(source, target, opener=opener).ok
    origin = origin_of(location_of(target, opener))
    assert origin["source"] == "hdfs://***@host/t/_transaction_log"
    assert SECRET not in (table.root / "_repaired" / f"{0:018d}.json").read_text()


_FORK = """
import os, signal, sys
from indextables.errors import StorageError
from indextables.storage import open_store
options = dict(endpoint=sys.argv[1], access_key_id="test", secret_access_key="test", region="us-east-1")
store = open_store(sys.argv[2], options=options)
store.put("x", b"1")
child = os.fork()
if not child:
    signal.alarm(20)
    for again in (store, open_store(sys.argv[2], options=options)):
        try:
            again.get("x")
        except StorageError as error:
            print(error.message, flush=True)
    os._exit(0)
print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), store.get("x"))
"""


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval") or sys.platform == "win32", reason="no fork")
def test_a_process_forked_after_the_use_of_a_bucket_is_told_instead_of_hanging(s3_server):
    """The threads that do the client's work are not in the child."""
    command = [sys.executable, "-c", _FORK, s3_server.endpoint, f"s3://{s3_server.bucket}/forked"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert [line.startswith("this process was forked") for line in lines] == [True, True, False]
    assert lines[-1] == "ended 0 b'1'"
