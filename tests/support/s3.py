"""A real S3 server process (moto's) as the fixture `s3_server`, and a proxy that makes it misbehave."""

from __future__ import annotations

import http.client
import http.server
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

BUCKET = "tables"
CREDENTIALS = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}


@dataclass(frozen=True)
class S3Server:
    """Where the server listens and how to speak to it."""

    endpoint: str
    bucket: str = BUCKET

    @property
    def options(self) -> dict[str, Any]:
        """What `open_store(uri, options=…)` needs; retries are short so that a failure is quick."""
        return options_for(self.endpoint)

    def uri(self, name: str = "") -> str:
        """A table location that no other test uses."""
        return f"s3://{self.bucket}/{name or 't'}-{uuid4().hex[:12]}"

    def boto(self) -> Any:
        """Amazon's own client, to look at the bucket behind our back."""
        import boto3  # half a second that most test runs need not pay
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
            config=Config(retries={"max_attempts": 1}),
        )


def options_for(endpoint: str) -> dict[str, Any]:
    """Options for any S3 server on this machine."""
    backoff = {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=50)}
    retry = {"max_retries": 3, "retry_timeout": timedelta(seconds=10), "backoff": backoff}
    return {"endpoint": endpoint, **CREDENTIALS, "retry_config": retry}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A server in its own process on a free port of 127.0.0.1, with one bucket."""
    process, endpoint = _start()
    try:
        server = S3Server(endpoint)
        server.boto().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=10)


# One request at a time: moto looks whether a key exists and stores it in two steps, S3 in one. With threads
# two exclusive puts could both succeed, and a test would fail for what S3 never does.
_PROGRAM = """
import sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""


def _start() -> tuple[subprocess.Popen[bytes], str]:
    for _ in range(5):  # between finding a free port and taking it, somebody else may take it
        port = free_port()
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if _answers(process, port):
            return process, f"http://127.0.0.1:{port}"
        process.kill()
        process.wait()
    raise RuntimeError("moto's server does not start")


def _answers(process: subprocess.Popen[bytes], port: int, patience: float = 60) -> bool:
    end = time.monotonic() + patience
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return True
    return False


def free_port() -> int:
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Misbehaviour:
    """What the proxy does wrong, and what it saw."""

    ignore_conditions: bool = False
    # so many PUTs reach the server, which stores them, and the client is told 500
    lose_answers: int = 0
    # only to PUTs whose path contains this
    only: str = ""
    requests: list[str] = field(default_factory=list)


@contextmanager
def misbehaving(server: S3Server, how: Misbehaviour) -> Iterator[S3Server]:
    """A proxy in front of the server, on a port of 127.0.0.1 of its own."""
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(server, how))
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{proxy.server_address[1]}", server.bucket)
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def _handler(server: S3Server, how: Misbehaviour) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {
                name: value
                for name, value in self.headers.items()
                if not (how.ignore_conditions and name.lower() == "if-none-match")
            }
            how.requests.append(f"{self.command} {self.path}")
            connection = http.client.HTTPConnection(server.endpoint.removeprefix("http://"), timeout=30)
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content, status = answer.read(), answer.status
            connection.close()
            if self.command == "PUT" and status == 200 and how.lose_answers and how.only in self.path:
                how.lose_answers -= 1
                content, status = b"", 500
            self._answer(status, answer.getheaders(), content)

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in {
                    "content-length",
                    "transfer-encoding",
                    "connection",
                    "date",
                    "server",
                }:
                    self.send_header(name, value)
            length = dict((k.lower(), v) for k, v in headers).get("content-length", "0")
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
