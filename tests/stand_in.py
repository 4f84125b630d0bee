"""A stand-in for a process whose PyTorch asks a daemon what to record, as Kineto does it."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

HEAD = struct.Struct("N32s")
TRACE = '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 1, '
TRACE += '"tid": 1, "ts": 1.0, "dur": 5.0}]}'


def message(kind: str, body: bytes) -> bytes:
    """Return a message of Kineto's protocol."""
    return HEAD.pack(len(body), kind.encode()) + body


def request(*pids: int, kinds: int = 3, job: int = 0) -> bytes:
    """Return what a process asks: `pids` are its own and its ancestors'."""
    return message("req", struct.pack(f"iiq{len(pids)}i", kinds, len(pids), job, *pids))


def registration(pid: int, device: int = 0, job: int = 0) -> bytes:
    return message("ctxt", struct.pack("iiq", device, pid, job))


class StandIn:
    """A process that asks at an address: sends and receives without waiting, each when it is told."""

    def __init__(self, address: bytes | str, name: str = "", pids: tuple[int, ...] = ()) -> None:
        """`name`: of its own socket; `pids`: by which it gives itself and its ancestors."""
        self.pids = pids or (os.getpid(), os.getppid())
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0dynoconfigclient{name or os.urandom(8).hex()}\0".encode())
        self.socket.setblocking(False)
        self._address = address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendto(data, self._address)

    def ask(self, kinds: int = 3, job: int = 0) -> None:
        self.send(request(*self.pids, kinds=kinds, job=job))

    def answer(self) -> bytes | None:
        """Return the body of the oldest answer that has come, None where none has."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return None
        size, _ = HEAD.unpack_from(data)
        assert size == len(data) - HEAD.size
        return data[HEAD.size :]

    def config(self) -> dict[str, str]:
        """Return the configuration that has come, empty for none."""
        return options_in((self.answer() or b"").decode())

    def write(self, config: Mapping[str, str], text: str = TRACE, is_whole: bool = True) -> Path:
        """Write a trace as a configuration says, under the last name once it is whole; return that name."""
        path = trace_path(config, self.pids[0])
        unfinished = path.with_name(f"{path.name}.tmp")
        unfinished.write_text(text, encoding="utf-8")
        if is_whole:
            unfinished.rename(path)
        return path


def options_in(text: str) -> dict[str, str]:
    return dict(line.split("=") for line in text.splitlines())


def trace_path(config: Mapping[str, str], pid: int) -> Path:
    """Return the file that Kineto writes: the first ".json" of the path has the process before it."""
    return Path(config["ACTIVITIES_LOG_FILE"].replace(".json", f"_{pid}.json", 1))


def main(address: str, seconds: float) -> None:
    """Ask twice a second until there is something to record, record it, and go on."""
    with StandIn(address) as process:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                process.ask()
            except OSError:  # nobody listens
                time.sleep(0.1)
                continue
            time.sleep(0.5)
            if config := process.config():
                time.sleep(max(0.0, int(config["PROFILE_START_TIME"]) / 1000 - time.time()))
                process.write(config)


if __name__ == "__main__":
    import sys

    main(sys.argv[1], float(sys.argv[2]))
