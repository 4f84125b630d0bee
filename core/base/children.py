"""Child processes of tracelane and their talk in JSON lines: `Children` is the end of the process that starts
them, `lines` and `tell` are theirs; `answers_of` and `answer_request` are both ends of one question. No child
outlives whoever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import Cancelled, TracelaneError, UnreadableError
from .heap import KEEPING
from .progress import CancelledCallback, never
from .threads import BackgroundThread

if TYPE_CHECKING:
    import subprocess

MESSAGE_SECONDS = 0.1
"""So long to wait for a message before the caller may look at other things."""
EXIT_SECONDS = 5.0
ONE_THREAD: Mapping[str, str] = {
    "OPENBLAS_NUM_THREADS": "1",  # no linear algebra here, and its threads take memory
    "OMP_NUM_THREADS": "1",
}
DECODING: Mapping[str, str] = {
    **ONE_THREAD,
    # Blocks come and go by the thousand: keep their memory instead of giving pages back each time.
    # Of one heap, or each thread would keep what it gave back to itself.
    **KEEPING,
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_ARENA_MAX": "1",
    # Pages of 2 MB are seldom those that were just given back: on a virtual machine new ones cost tenfold.
    "NUMPY_MADVISE_HUGEPAGE": "0",
}

NICENESS = 10

Message: TypeAlias = dict[str, Any]
Process: TypeAlias = "subprocess.Popen[bytes]"


def stand_back(pid: int = 0) -> None:
    """Lower the priority of a process (0: this one): others draw what the user looks at."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)


def serves_decoding() -> bool:
    """Tell whether this process was started with the settings that make decoding faster."""
    return DECODING.items() <= os.environ.items()


class ChildrenError(Exception):
    """Processes cannot be started here, or one ended without a last message."""


class ChildFailedError(ChildrenError):
    """A process says why it cannot answer."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message["failed"]))
        self.exit_code = message["exit_code"]


class Children:
    """Processes that run one module, until `close`."""

    def __init__(
        self,
        count: int,
        greeting: Message | None = None,
        *,
        module: str,
        environment: Mapping[str, str] = DECODING,
        behind: bool = False,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start `count` processes and greet each, if so wished; with `behind` they let all others come first.
        They inherit `descriptors`. Raises ChildrenError if none can be started.
        """
        from queue import SimpleQueue

        self._messages: SimpleQueue[tuple[int, Message | None]] = SimpleQueue()
        self._processes: list[Process] = []
        try:
            self._processes += (_started(module, environment, descriptors) for _ in range(count))
            for number, process in enumerate(self._processes):
                if behind:
                    stand_back(process.pid)
                BackgroundThread(partial(self._listen, number, process))
                if greeting is not None:
                    self.send(number, greeting)
        except (OSError, MemoryError) as error:
            self.close()
            why = error.strerror if isinstance(error, OSError) else "no memory"
            raise ChildrenError(f"no worker process can be started: {why}") from error

    def __len__(self) -> int:
        return len(self._processes)

    @property
    def pids(self) -> Sequence[int]:
        return [process.pid for process in self._processes]

    def send(self, number: int, message: Message) -> None:
        """Send one process a line; ChildrenError if it has ended."""
        stdin = self._processes[number].stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise ChildrenError(f"a worker process ended: {error.strerror}") from error

    def receive(self, wait: float = MESSAGE_SECONDS) -> tuple[int, Message] | None:
        """Return (number of the process, its message), None if none comes; ChildrenError if one has ended."""
        from queue import Empty

        try:
            number, message = self._messages.get(wait > 0, wait or None)
        except Empty:
            return None
        if message is None:
            status = self._processes[number].wait(EXIT_SECONDS)
            raise ChildrenError(f"a worker process ended with status {status}")
        return number, message

    def close(self, patience: float = 0.0) -> None:
        """End all processes: at once, or after so many seconds in which they may clear up by themselves."""
        if patience:
            self._await_all(patience)
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was still to be written to a dead process
                        pipe.close()

    def _await_all(self, seconds: float) -> None:
        """Close their standard inputs, which asks them to end, and wait so long for it."""
        from subprocess import TimeoutExpired

        until = time.monotonic() + seconds
        for process in self._processes:
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        for process in self._processes:
            with contextlib.suppress(TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))

    def _listen(self, number: int, process: Process) -> None:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                self._messages.put((number, json.loads(line)))
        except ValueError:
            pass  # closed while listening, or killed in the middle of a line
        self._messages.put((number, None))


def answers_of(
    module: str,
    request: Message,
    cancelled: CancelledCallback = never,
    environment: Mapping[str, str] = DECODING,
    behind: bool = False,
) -> Iterator[Message]:
    """Yield what a process of its own answers to a request. Raises ChildrenError, Cancelled."""
    with closing(Children(1, request, module=module, environment=environment, behind=behind)) as children:
        while True:
            if cancelled():
                raise Cancelled
            if (received := children.receive()) is None:
                continue
            message = received[1]
            if "failed" in message:
                raise ChildFailedError(message)
            if "finished" in message:
                return
            yield message


def _started(
    module: str, environment: Mapping[str, str], descriptors: Sequence[int]
) -> subprocess.Popen[bytes]:
    import subprocess

    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
        pass_fds=descriptors,
    )


# -- in the child -------------------------------------------------------------------------------------------

ENDED = 3
"""Exit status when the starter went away."""


def _end() -> None:
    os._exit(ENDED)


def tell(message: dict[str, Any], ended: Callable[[], None] = _end) -> None:
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        ended()


def lines(ended: Callable[[], None] = _end) -> Iterator[dict[str, Any]]:
    """Yield the objects of standard input; when it ends, end the process, whatever it is doing, or call
    `ended` (in a thread of its own) and yield no more.
    """
    from queue import SimpleQueue

    waiting: SimpleQueue[dict[str, Any] | None] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        waiting.put(None)
        ended()

    BackgroundThread(listen)
    while (message := waiting.get()) is not None:
        yield message


def answer_request(answers: Callable[[Message], Iterable[Message]]) -> int:
    """Tell the answers to the first line of standard input, then {"finished"}, or {"failed"} and why; return
    the exit status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    try:
        for message in answers(next(lines())):
            tell(message)
    except (TracelaneError, OSError) as error:
        code = error.exit_code if isinstance(error, TracelaneError) else UnreadableError.exit_code
        tell({"failed": str(error), "exit_code": code})
        return 1
    tell({"finished": True})
    return 0
