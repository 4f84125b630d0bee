"""Servers on loopback that traces are read from: object storage, the web, SSH."""

from __future__ import annotations

import http.server
import os
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Gives files of a folder, in ranges where `with_ranges`; `sent` counts the bytes of each path."""

    with_ranges = True
    sent: dict[str, int]

    def do_GET(self) -> None:
        """Send a file or a part of it."""
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        size, start = len(data), 0
        if byte_range and self.with_ranges:
            start = int(byte_range[1])
            data = data[start : int(byte_range[2]) + 1 if byte_range[2] else None]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{start + len(data) - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", self.date_time_string(int(path.stat().st_mtime)))
        self.end_headers()
        self.sent[path.name] = self.sent.get(path.name, 0) + len(data)
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def web_server(folder: Path, with_ranges: bool = True) -> Iterator[tuple[str, dict[str, int]]]:
    """Serve a folder; yield its URL and the bytes that were sent of each file."""
    pytest.importorskip("fsspec", reason="traces by URL need the extra tracelane[remote]")
    pytest.importorskip("aiohttp", reason="traces by HTTP need aiohttp")
    sent: dict[str, int] = {}
    handler = type("Handler", (RangeHandler,), {"with_ranges": with_ranges, "sent": sent})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def bucket() -> Iterator[str]:
    """Run an S3 server with one bucket; yield the bucket's URL."""
    pytest.importorskip("s3fs", reason="traces on object storage need s3fs")
    moto = pytest.importorskip("moto.server", reason="moto's S3 server is not installed")
    server = moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    from tracelane.core.read.remote_files import file_system

    try:
        with patch.dict(os.environ, environment):
            file_system.cache_clear()
            import s3fs

            request = urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")
            urllib.request.urlopen(request).close()
            s3fs.S3FileSystem.clear_instance_cache()
            s3fs.S3FileSystem().mkdir("traces")
            yield "s3://traces"
    finally:
        file_system.cache_clear()
        server.stop()


@contextmanager
def ssh_home(folder: Path, home: Path, known: bool = True) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve a folder by SFTP; yield its URL and the environment of a user who may log in, and who knows the
    host's key unless not `known`.
    """
    pytest.importorskip("sshfs", reason="traces by SSH need sshfs")
    asyncssh = pytest.importorskip("asyncssh")
    import asyncio

    ssh = home / ".ssh"
    ssh.mkdir(mode=0o700)
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(str(ssh / "id_ed25519"))
    (ssh / "id_ed25519").chmod(0o600)
    allowed = home / "allowed"
    allowed.write_bytes(user_key.export_public_key())

    async def serve() -> Any:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            authorized_client_keys=str(allowed),
            sftp_factory=partial(asyncssh.SFTPServer, chroot=str(folder).encode()),
            allow_scp=True,
        )

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(serve(), loop).result(30)
    port = server.sockets[0].getsockname()[1]
    if known:
        public = host_key.export_public_key().decode().strip()
        (ssh / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}\n", encoding="utf-8")
    try:
        yield f"ssh://me@127.0.0.1:{port}", {"HOME": str(home)}
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(server.wait_closed(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
