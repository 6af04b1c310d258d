"""A name node that speaks WebHDFS, in this process: Hadoop's own client runs against it.

Files live in memory under one lock, so a rename is one step, as on a real name node. `Misbehaviour` makes
it lose answers.
"""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4

import pytest


@dataclass
class Misbehaviour:
    """How many renames to carry out and then answer with nothing."""

    lose_answers: int = 0


@dataclass
class NameNode:
    """The files (bytes) and directories (None), by absolute path."""

    address: str = ""
    entries: dict[str, bytes | None] = field(default_factory=lambda: {"/": None})
    times: dict[str, int] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    misbehaviour: Misbehaviour = field(default_factory=Misbehaviour)
    operations: list[str] = field(default_factory=list)

    def uri(self, name: str = "t") -> str:
        """A table location that no other test uses."""
        return f"webhdfs://{self.address}/tables/{name}-{uuid4().hex[:12]}"

    def mkdirs(self, path: str) -> None:
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            directory = "/" + "/".join(parts[:depth])
            if self.entries.setdefault(directory, None) is not None:
                raise Remote(403, "org.apache.hadoop.fs.ParentNotDirectoryException", directory)

    def write(self, path: str, data: bytes) -> None:
        self.mkdirs(path.rpartition("/")[0])
        if path in self.entries and self.entries[path] is None:
            raise Remote(403, "org.apache.hadoop.fs.FileAlreadyExistsException", path)
        self.entries[path] = data
        self.times[path] = time.time_ns() // 1_000_000

    def status(self, path: str) -> dict[str, Any]:
        if path not in self.entries:
            parent = path.rpartition("/")[0]
            kind = "ParentNotDirectory" if self.entries.get(parent) is not None else "FileNotFound"
            package = "org.apache.hadoop.fs" if kind.startswith("Parent") else "java.io"
            raise Remote(404, f"{package}.{kind}Exception", f"File does not exist: {path}")
        data = self.entries[path]
        return {
            "accessTime": 0,
            "blockSize": 134217728,
            "childrenNum": 0,
            "fileId": 1,
            "group": "g",
            "length": len(data or b""),
            "modificationTime": self.times.get(path, 0),
            "owner": "o",
            "pathSuffix": "",
            "permission": "755",
            "replication": 0 if data is None else 1,
            "storagePolicy": 0,
            "type": "DIRECTORY" if data is None else "FILE",
        }

    def children(self, path: str) -> list[dict[str, Any]]:
        own = self.status(path)
        if own["type"] == "FILE":
            return [own]
        base = path.rstrip("/") + "/"
        names = [
            p for p in self.entries if p.startswith(base) and p != "/" and "/" not in p[len(base) :]
        ]
        return [{**self.status(p), "pathSuffix": p[len(base) :]} for p in sorted(names)]

    def rename(self, source: str, target: str, options: str | None) -> bool:
        """With options: refuses a taken target or replaces it; without: as the old call, true or false."""
        if source not in self.entries:
            if options is None:
                return False
            raise Remote(404, "java.io.FileNotFoundException", f"rename source {source} is not found.")
        if options is None and self.entries.get(target, b"") is None:
            target = f"{target.rstrip('/')}/{source.rpartition('/')[2]}"
        if target in self.entries and options != "OVERWRITE":
            if options is None:
                return False
            raise Remote(403, "org.apache.hadoop.fs.FileAlreadyExistsException", f"{target} exists")
        moved = [p for p in self.entries if p == source or p.startswith(f"{source}/")]
        for path in moved:
            new = target + path[len(source) :]
            self.entries[new] = self.entries.pop(path)
            self.times[new] = self.times.pop(path, 0)
        return True

    def delete(self, path: str, *, recursive: bool) -> bool:
        below = [p for p in self.entries if p.startswith(f"{path.rstrip('/')}/") and p != "/"]
        if below and not recursive:
            raise Remote(403, "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", path)
        found = path in self.entries
        for each in [*below, path]:
            self.entries.pop(each, None)
        return found


class Remote(Exception):
    """An error as a name node reports it."""

    def __init__(self, status: int, java_class: str, message: str) -> None:
        super().__init__(message)
        simple = java_class.rpartition(".")[2]
        self.status = status
        self.body = {
            "RemoteException": {"exception": simple, "javaClassName": java_class, "message": message}
        }


@contextmanager
def name_node() -> Iterator[NameNode]:
    """A name node on a free port of 127.0.0.1."""
    node = NameNode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(node))
    node.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def webhdfs() -> Iterator[NameNode]:
    """One name node for all tests of a session."""
    with name_node() as node:
        yield node


def _handler(node: NameNode) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            # the client sends UTF-8 as it is; http.server takes it for Latin-1
            url = urlsplit(self.path.encode("latin-1").decode())
            query = {name.lower(): values[0] for name, values in parse_qs(url.query).items()}
            path = unquote(url.path).removeprefix("/webhdfs/v1") or "/"
            path = path.rstrip("/") or "/"
            body = self._body()
            node.operations.append(f"{query['op']} {path}")
            try:
                with node.lock:
                    status, answer = self._run(query["op"].upper(), path, query, body)
            except Remote as error:
                status, answer = error.status, error.body
            self._answer(status, answer)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _run(self, op: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
            match op:
                case "GETFILESTATUS" | "GETFILELINKSTATUS":
                    return 200, {"FileStatus": node.status(path)}
                case "LISTSTATUS":
                    return 200, {"FileStatuses": {"FileStatus": node.children(path)}}
                case "MKDIRS":
                    node.mkdirs(path)
                    return 200, {"boolean": True}
                case "CREATE" | "OPEN" if "data" not in query:
                    # as a name node does: send the client on to a data node, which is this same server
                    if op == "OPEN":
                        node.status(path)
                    return (
                        307,
                        f"http://{node.address}{quote(self.path.encode('latin-1'), safe='/%?&=')}&data=true",
                    )
                case "CREATE":
                    node.write(path, body)
                    return 201, None
                case "OPEN":
                    start = int(query.get("offset", 0))
                    end = start + int(query["length"]) if "length" in query else None
                    return 200, (node.entries[path] or b"")[start:end]
                case "RENAME":
                    options = query.get("renameoptions")
                    done = node.rename(path, query["destination"].rstrip("/"), options)
                    if node.misbehaviour.lose_answers:
                        node.misbehaviour.lose_answers -= 1
                        raise Remote(500, "java.io.IOException", "the answer was lost")
                    return 200, {"boolean": done} if options is None else None
                case "DELETE":
                    return 200, {
                        "boolean": node.delete(path, recursive=query.get("recursive") == "true")
                    }
                case "GETHOMEDIRECTORY":
                    return 200, {"Path": "/user/o"}
                case "GETSERVERDEFAULTS" | "GETDELEGATIONTOKEN":
                    raise Remote(400, "java.lang.UnsupportedOperationException", op)
                case _:
                    return 200, None

        def _answer(self, status: int, answer: Any) -> None:
            self.send_response(status)
            if status == 307:
                self.send_header("Location", answer)
                answer = None
            # No Content-Type: to read one, the client needs a class that PySpark's Hadoop jars leave out.
            is_bytes = isinstance(answer, bytes)
            content = answer if is_bytes else b"" if answer is None else json.dumps(answer).encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
