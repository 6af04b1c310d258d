"""What the JVM asks Python for arrives, however early py4j forgets it."""

from __future__ import annotations

import gc
import socket

import pytest
from support.spark_tables import write_table

import pyarrow as pa

clientserver = pytest.importorskip("py4j.clientserver")


@pytest.fixture
def forgets_at_once(monkeypatch):
    """py4j tells the JVM what Python has dropped before it sends an answer, not some time later.

    Its worker thread does this now and then by itself, between two statements of the callback's thread.
    """
    call = clientserver.ClientServerConnection._call_proxy
    forgotten = []

    def call_then_forget(connection, obj_id, stream):
        answer = call(connection, obj_id, stream)
        gc.collect()  # objects of the JVM refer to themselves
        queue = connection.java_client.finalizer_deque
        while queue:
            client, target = queue.pop()
            client.garbage_collect_object(target, enqueue=False)
            forgotten.append(target)
        return answer

    monkeypatch.setattr(clientserver.ClientServerConnection, "_call_proxy", call_then_forget)
    gc.collect()
    gc.freeze()  # what the tests before have left need not be looked through again and again
    yield forgotten
    gc.unfreeze()


def test_an_answer_is_kept_until_the_jvm_has_it(spark, tmp_path, forgets_at_once):
    """Regression: Spark got null for the list of files and failed with a NullPointerException."""
    data = pa.table({"id": list(range(100)), "name": [f"n{i}" for i in range(100)]})
    write_table(tmp_path / "t", data, splits=5)
    frame = spark.read.format("indextables").load(str(tmp_path / "t"))
    assert frame.where("id < 30").count() == 30
    assert frame.join(frame.where("id = 7"), "id").collect()[0].id == 7
    text = f"SELECT max(id) FROM indextables.`{tmp_path / 't'}` WHERE name > 'n5'"
    assert spark.sql(text).collect()[0][0] == 99
    assert forgets_at_once  # the queries did drop objects of the JVM


def ask(port: int, *lines: str) -> bytes:
    """What py4j's callback server answers to somebody who speaks its protocol."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall("".join(f"{line}\n" for line in lines).encode())
        connection.settimeout(2)
        try:
            return connection.recv(1000)
        except (TimeoutError, ConnectionResetError):
            return b""


@pytest.mark.parametrize(
    "lines",
    [
        ("c", "p0", "toString", "e"),
        ("A", "a guess", "e"),
        ("A", "", "e", "c", "p0", "toString", "e"),
        ("g", "p0", "e"),
    ],
    ids=["a call", "a guessed secret", "no secret", "a collection"],
)
def test_no_other_process_can_call_python_through_the_callback_port(spark, tmp_path, lines):
    """Regression: any process of the machine could ask a file index for paths, or break the session."""
    write_table(tmp_path / "t", pa.table({"id": [1, 2, 3]}), splits=3)
    frame = spark.read.format("indextables").load(str(tmp_path / "t"))
    assert frame.where("id > 1").count() == 2
    port = spark.sparkContext._gateway._callback_server.port
    answer = ask(port, *lines)
    assert not answer.startswith(b"!y"), answer
    assert frame.where("id > 2").count() == 1  # the session is as it was


def test_streams_still_call_python_after_the_port_was_closed(spark, tmp_path):
    """foreachBatch uses the same server, from threads of its own."""
    write_table(tmp_path / "t", pa.table({"id": [1, 2, 3]}), splits=1)
    assert spark.read.format("indextables").load(str(tmp_path / "t")).count() == 3
    seen = []
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    query = stream.writeStream.foreachBatch(lambda batch, number: seen.append((number, batch.count())))
    running = query.trigger(once=True).option("checkpointLocation", str(tmp_path / "c")).start()
    assert running.awaitTermination(60)
    assert seen == [(0, 5)]
