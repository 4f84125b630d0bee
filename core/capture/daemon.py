"""The daemon's side of Kineto's protocol: a socket, the processes of this user that ask it, and its answers.

Others may send what they like: who sent a datagram says the kernel (SCM_CREDENTIALS, which SO_PASSCRED asks
for; a socket of datagrams has no SO_PEERCRED), and all but this user's are counted and dropped. No message
blocks or grows anything: what is too long is cut by the kernel and dropped, answers are sent or not, at once,
and the number of processes is bounded.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Self

from ..base.errors import TracelaneError, UsageError
from .processes import SOCKET_FOLDER, command_line, holder_of, inode_of
from .protocol import (
    MAX_MESSAGE,
    ConfigRequest,
    MessageError,
    Registration,
    config_message,
    count_message,
    parse_message,
)

NAME = "dynolog"
MAX_CLIENTS = 1024
BATCH = 64
"""Datagrams that are read before it is looked at the clock again."""
_CREDENTIALS = struct.Struct("3i")
OTHER_USER = "of another user"
TOO_MANY = "of too many processes"
_PASSCRED, _SCM_CREDENTIALS = getattr(socket, "SO_PASSCRED", 16), getattr(socket, "SCM_CREDENTIALS", 2)


class SocketHeldError(TracelaneError):
    """Another daemon has the socket."""

    def __init__(self, message: str, is_dynolog: bool) -> None:
        """Say who has it; whether that is a dynolog daemon, or may be one."""
        super().__init__(message)
        self.is_dynolog = is_dynolog


@dataclass
class KinetoClient:
    """A process that has asked: `pid` is its number here (0: not to be seen), `own_pid` the one it gives."""

    pid: int
    own_pid: int
    pids: tuple[int, ...] = ()
    job: int = 0
    device: int | None = None
    can_record: bool = True
    has_config: bool = False

    @property
    def all_pids(self) -> frozenset[int]:
        """Its own number and those of its ancestors, by which it may be named."""
        return frozenset((self.pid, self.own_pid, *self.pids))


Answer = Callable[[KinetoClient], str]
"""What the configuration is for a process that can record; "" for none."""


def address_of(folder: str) -> bytes | str:
    """Return where Kineto looks for its daemon: an abstract name, or a socket in a folder."""
    return f"{folder}/{NAME}" if folder else f"\0{NAME}\0".encode()


class KinetoDaemon:
    """Listens on Kineto's socket while it is entered; `serve` does all the work."""

    def __init__(self, answer: Answer, address: bytes | str = "", max_clients: int = MAX_CLIENTS) -> None:
        """Answer as `answer` says, at an address, or at the one that the environment says."""
        self._answer, self._max_clients = answer, max_clients
        self._address = address or address_of(os.environ.get(SOCKET_FOLDER, ""))
        self._uid = os.getuid()
        self._socket: socket.socket | None = None
        self._clients: dict[int, KinetoClient] = {}
        self.refused: Counter[str] = Counter()
        """How many messages were dropped, by the reason."""

    @property
    def clients(self) -> tuple[KinetoClient, ...]:
        """The processes that have asked, in the order in which they came."""
        return tuple(self._clients.values())

    def __enter__(self) -> Self:
        if sys.platform != "linux":
            raise UsageError("capture needs Linux: elsewhere PyTorch does not ask a daemon")
        listener = socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        )
        try:
            listener.setsockopt(socket.SOL_SOCKET, _PASSCRED, 1)
            self._bind(listener)
        except BaseException:
            listener.close()
            raise
        self._socket = listener
        return self

    def _bind(self, listener: socket.socket) -> None:
        try:
            listener.bind(self._address)
        except OSError as error:
            if isinstance(self._address, str) and self._is_left_over(self._address):
                os.unlink(self._address)
                listener.bind(self._address)
            elif error.errno == errno.EADDRINUSE:
                raise _held_error(self._address) from None
            else:
                raise UsageError(f"cannot listen on {self._address!r}: {error.strerror or error}") from error
        if isinstance(self._address, str):
            os.chmod(self._address, 0o600)

    def _is_left_over(self, path: str) -> bool:
        """Tell whether nobody listens on a socket that lies in a folder."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                return True
            except OSError:
                return False
        return False

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if isinstance(self._address, str):
                with suppress(OSError):
                    os.unlink(self._address)

    def serve(self, seconds: float) -> None:
        """Answer what comes for so long, and not longer whatever comes."""
        assert self._socket is not None, "not entered"
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0:
            if poll.poll(left * 1000):
                self._read_some(self._socket)

    def _read_some(self, listener: socket.socket) -> None:
        for _ in range(BATCH):
            try:
                # There is room for who sent it and for nothing else: descriptors sent along are dropped.
                data, ancillary, flags, address = listener.recvmsg(
                    MAX_MESSAGE, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except OSError:
                return
            pid, uid = _sender(ancillary)
            if uid != self._uid:
                self.refused[OTHER_USER] += 1
                continue
            try:
                if flags & socket.MSG_TRUNC:
                    raise MessageError("too long")
                message = parse_message(data)
            except MessageError as error:
                self.refused[str(error)] += 1
                continue
            if isinstance(message, Registration):
                self._send(listener, self._registered(pid, message), address)
            else:
                self._give_config(listener, pid, message, address)

    def _client(self, pid: int, own_pid: int) -> KinetoClient | None:
        """Return the process of that number, a new one where it has not asked before; None where there are
        too many.
        """
        number = (
            pid or -own_pid
        )  # the kernel names no process of a namespace that is not to be seen from here
        if number not in self._clients:
            if len(self._clients) >= self._max_clients:
                self.refused[TOO_MANY] += 1
                return None
            self._clients[number] = KinetoClient(pid, own_pid)
        self._clients[number].own_pid = own_pid
        return self._clients[number]

    def _registered(self, pid: int, message: Registration) -> bytes:
        if message.pid > 0 and (client := self._client(pid, message.pid)) is not None:
            client.device, client.job = message.device, message.job
        group = message.device, message.job
        return count_message(sum((client.device, client.job) == group for client in self.clients))

    def _give_config(
        self, listener: socket.socket, pid: int, message: ConfigRequest, address: bytes | str | None
    ) -> None:
        client, text = self._client(pid, message.pids[0]), ""
        if client is not None:
            client.pids, client.job, client.can_record = message.pids, message.job, message.can_record
            if client.can_record and not client.has_config:
                text = self._answer(client)
        is_sent = self._send(listener, config_message(os.fsencode(text)), address)
        if client is not None and text and is_sent:
            client.has_config = True

    def _send(self, listener: socket.socket, message: bytes, address: bytes | str | None) -> bool:
        """Send a message and tell whether it went: not where the process is gone, has no room, or no name."""
        if not address:
            return False
        try:
            listener.sendto(message, socket.MSG_DONTWAIT, address)
        except OSError:
            return False
        return True


def _sender(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    """Return the process and user that the kernel says a datagram is from; user -1 where it does not say."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SCM_CREDENTIALS) and len(data) >= _CREDENTIALS.size:
            pid, uid, _ = _CREDENTIALS.unpack_from(data)
            return pid, uid
    return 0, -1


def _held_error(address: bytes | str) -> SocketHeldError:
    """Return who has the socket, as far as that is to be seen."""
    name = address if isinstance(address, str) else "@" + address.strip(b"\0").decode(errors="replace")
    pid = holder_of(inode_of(name))
    if pid is None:
        return SocketHeldError(f"another daemon has the socket {name}, probably dynolog", True)
    command = command_line(pid) or "unknown"
    return SocketHeldError(f"the socket {name} belongs to process {pid}: {command}", "dyno" in command)
