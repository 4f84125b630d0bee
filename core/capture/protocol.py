"""What Kineto and its daemon say to each other, each message one datagram of a Unix socket.

A message is its body's size (size_t), 32 bytes of type that end in zeros, and the body, all in the machine's
own byte order. Kineto registers with a `ctxt`, answered by a count, and sends a `req` every POLL_S seconds,
answered by the text of a configuration, empty where there is none. After dynolog's ipcfabric/FabricManager.h
and Utils.h, and https://github.com/pytorch/kineto/blob/main/libkineto/src/IpcFabricConfigClient.cpp.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

POLL_S = 5.0
"""Seconds between two requests of a process."""
EVENTS, ACTIVITIES = 1, 2
"""Bits of a request: what can be configured. A process that is recording does not ask for ACTIVITIES."""
MAX_PIDS = 64
"""A process names itself and at most ten of its ancestors."""

_HEAD = struct.Struct("N32s")
_CONTEXT = struct.Struct("iiq")
_REQUEST = struct.Struct("iiq")
_COUNT = struct.Struct("i")
_PID = struct.calcsize("i")
MAX_MESSAGE = _HEAD.size + _REQUEST.size + MAX_PIDS * _PID
"""Bytes of the longest message that a process may send."""
REGISTER, REQUEST = b"ctxt", b"req"


class MessageError(Exception):
    """Bytes that are no message of Kineto's."""


class Registration(NamedTuple):
    """A process has begun to use a device; the job is that of a scheduler, 0 without one."""

    device: int
    pid: int
    job: int


class ConfigRequest(NamedTuple):
    """A process asks whether it is to record: `pids` are its own and its ancestors', as it sees them."""

    kinds: int
    pids: tuple[int, ...]
    job: int

    @property
    def can_record(self) -> bool:
        return bool(self.kinds & ACTIVITIES)


Message: TypeAlias = Registration | ConfigRequest


def parse_message(data: bytes) -> Message:
    """Return what a datagram says; MessageError where any of its sizes is not what it should be."""
    if len(data) < _HEAD.size:
        raise MessageError("shorter than a message's head")
    size, name = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if size != len(body):
        raise MessageError("another size than it says")
    name = name.partition(b"\0")[0]
    if name == REGISTER:
        if len(body) != _CONTEXT.size:
            raise MessageError("a registration of another size")
        return Registration(*_CONTEXT.unpack(body))
    if name != REQUEST:
        raise MessageError("of an unknown type")
    if len(body) < _REQUEST.size:
        raise MessageError("a request without its head")
    kinds, count, job = _REQUEST.unpack_from(body)
    if not 1 <= count <= MAX_PIDS or len(body) != _REQUEST.size + count * _PID:
        raise MessageError("a request with another number of processes than it says")
    pids = struct.unpack_from(f"{count}i", body, _REQUEST.size)
    if pids[0] <= 0:
        raise MessageError("a request of no process")
    return ConfigRequest(kinds, pids, job)


def config_message(text: bytes) -> bytes:
    """Return the answer to a request; b"" where the process is to do nothing."""
    return _HEAD.pack(len(text), REQUEST) + text


def count_message(count: int) -> bytes:
    """Return the answer to a registration: how many processes of its job use the device."""
    return _HEAD.pack(_COUNT.size, REGISTER) + _COUNT.pack(count)


DETAILS = {
    "shapes": "PROFILE_REPORT_INPUT_SHAPES",
    "memory": "PROFILE_PROFILE_MEMORY",
    "stacks": "PROFILE_WITH_STACK",
    "flops": "PROFILE_WITH_FLOPS",
    "modules": "PROFILE_WITH_MODULES",
}
"""What a recording may hold besides times -> Kineto's option."""
_NOT_IN_PATHS = ("=", "#", "\\", ".json", "..")
"""Kineto ends a value at the first two, turns the third into "/", and puts its pid before the fourth; later
versions refuse the last.
"""


def path_problem(folder: str) -> str:
    """Return why Kineto could not be told to write into a folder, "" where it can."""
    if not folder.isprintable() or folder != folder.strip():
        return "it holds a line break, another control character, or begins or ends in a blank"
    return next((f"it holds {part!r}" for part in _NOT_IN_PATHS if part in folder), "")


@dataclass(frozen=True)
class RecordingPlan:
    """What processes are to record: `duration_ms`, or so many `steps` from step `first_step` on (0: the next
    one).
    """

    duration_ms: int = 500
    steps: int = 0
    first_step: int = 0
    warmup_s: int = 2
    details: tuple[str, ...] = ()

    def config(self, path: str, start_ms: int) -> str:
        """Return the configuration that has a process write a path, into which it puts its pid before
        ".json", from `start_ms` (ms since 1970) on.
        """
        lines = [f"ACTIVITIES_LOG_FILE={path}", f"ACTIVITIES_WARMUP_PERIOD_SECS={self.warmup_s}"]
        if self.steps:
            lines += [f"PROFILE_START_ITERATION={self.first_step}", f"ACTIVITIES_ITERATIONS={self.steps}"]
            lines += ["PROFILE_START_ITERATION_ROUNDUP=1", "ACTIVITIES_WARMUP_ITERATIONS=1"]
        else:
            lines += [f"PROFILE_START_TIME={start_ms}", f"ACTIVITIES_DURATION_MSECS={self.duration_ms}"]
        return "\n".join([*lines, *(f"{DETAILS[one]}=true" for one in self.details)]) + "\n"

    def dyno_command(self, folder: str, pids: tuple[int, ...]) -> str:
        """Return the command that has a dynolog daemon do the same."""
        import shlex

        words = ["dyno", "gputrace", "--log-file", f"{folder}/trace.json"]
        words += ["--iterations", f"{self.steps}"] if self.steps else ["--duration-ms", f"{self.duration_ms}"]
        words += ["--pids", ",".join(map(str, pids))] if pids else []
        flags = {"shapes": "record-shapes", "memory": "profile-memory"}
        words += [f"--{flags.get(one, f'with-{one}')}" for one in self.details]
        return shlex.join([*words, "--process-limit", "1000"])
