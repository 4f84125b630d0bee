"""A web server with faults: files that change, answers that end early, errors and redirects."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pytest


@dataclass
class FaultyServer:
    """What is served by path, and what goes wrong; `requests` counts the requests for contents by path."""

    files: dict[str, bytes]
    has_ranges: bool = True
    names_parts: bool = True  # a part comes with Content-Range
    etags: Literal["", "obeyed", "compared", "weak"] = "obeyed"
    has_times: bool = False
    becomes: bytes = b""
    after: int = 0  # requests for contents after which all files become that, 0: never
    breaks: Literal["", "less", "off"] = ""  # less: the answer says that it is shorter; off: it breaks off
    broken: int = 0  # so many answers, of which only `comes` comes
    comes: float = 0.5
    statuses: dict[str, int] = field(default_factory=dict)
    refuses_head: bool = False
    redirects: dict[str, str] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    url: str = ""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that hang up."""


class FaultyHandler(http.server.BaseHTTPRequestHandler):
    """Answers for a FaultyServer."""

    protocol_version = "HTTP/1.1"

    def __init__(self, faults: FaultyServer, *arguments: Any) -> None:
        self._faults = faults
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        """Answer without contents."""
        if self._faults.refuses_head:
            self._end(405)
        elif self._is_file():
            self._head(200, self._faults.files[self.path])

    def do_GET(self) -> None:
        """Send a file or a part of it, or what goes wrong."""
        if not self._is_file():
            return
        faults, data = self._faults, self._faults.files[self.path]
        faults.requests[self.path] += 1
        if faults.after and faults.requests[self.path] == faults.after + 1:
            data = faults.files[self.path] = faults.becomes
        expected = self.headers.get("If-Match")
        if faults.etags == "obeyed" and expected and expected != self._etag(data):
            self._end(412)
            return
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        body, start = data, 0
        if part and faults.has_ranges:
            start = int(part[1])
            body = data[start : int(part[2]) + 1]
        # The last byte, which is asked for to see whether ranges are answered, comes always.
        comes, length = len(body), len(body)
        if faults.breaks and faults.broken and not (part and part[1] == part[2]):
            faults.broken -= 1
            comes = int(len(body) * faults.comes)
            length = comes if faults.breaks == "less" else length
        if part and faults.has_ranges:
            self._head(206, data, length, f"bytes {start}-{start + len(body) - 1}/{len(data)}")
        else:
            self._head(200, data, length)
        self.wfile.write(body[:comes])
        self.close_connection = comes < length

    def _is_file(self) -> bool:
        faults = self._faults
        if self.path in faults.redirects:
            self.send_response(302)
            self.send_header("Location", faults.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path in faults.statuses or self.path not in faults.files:
            self._end(faults.statuses.get(self.path, 404))
        else:
            return True
        return False

    def _head(self, status: int, data: bytes, length: int | None = None, part: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        if part and self._faults.names_parts:
            self.send_header("Content-Range", part)
        if self._faults.etags:
            self.send_header("ETag", self._etag(data))
        if self._faults.has_times:
            self.send_header("Last-Modified", self.date_time_string(int.from_bytes(data[-3:], "big")))
        self.end_headers()

    def _etag(self, data: bytes) -> str:
        return ("W/" if self._faults.etags == "weak" else "") + f'"{hashlib.sha256(data).hexdigest()}"'

    def _end(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def running(faults: FaultyServer) -> Iterator[FaultyServer]:
    """Serve on loopback while the context lasts."""
    pytest.importorskip("fsspec", reason="traces by URL need the extra tracelane[remote]")
    pytest.importorskip("aiohttp", reason="traces by HTTP need aiohttp")
    server = _Server(("127.0.0.1", 0), partial(FaultyHandler, faults))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    faults.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
