"""One recording of processes that run: who takes part, what they write, and why one writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.stand_in import TRACE, StandIn, trace_path
from tests.waiting import PATIENCE_S, wait_until
from tracelane.core.base.errors import UsageError
from tracelane.core.capture.daemon import KinetoDaemon
from tracelane.core.capture.live import CapturePace, LiveCapture, Outcome
from tracelane.core.capture.processes import environment_of, launched_rank, silent_processes, why_silent
from tracelane.core.capture.protocol import POLL_S, RecordingPlan
from tracelane.core.index.captures import captures_of, members_of
from tracelane.core.index.member import NO_FACTS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="PyTorch asks a daemon on Linux alone")
TICK_S = 0.02
AT_ONCE = CapturePace(listen_s=PATIENCE_S, start_s=-PATIENCE_S, patience_s=PATIENCE_S)
"""Begins at once, and goes on for as long as a test may take."""
PLAN = RecordingPlan(duration_ms=1)
MakeCapture = Callable[..., LiveCapture]


@pytest.fixture
def address() -> bytes:
    """An address of this test's own."""
    return f"\0tracelane-{os.urandom(8).hex()}\0".encode()


@pytest.fixture
def capture(address: bytes, tmp_path: Path) -> MakeCapture:
    """Make a recording into the folder `traces` with whatever is said of it."""

    def live(
        pace: CapturePace = AT_ONCE, plan: RecordingPlan = PLAN, pids: tuple[int, ...] = ()
    ) -> LiveCapture:
        daemon = partial(KinetoDaemon, address=address)
        fallback = str(tmp_path / "default_{}.json")
        return LiveCapture(plan, tmp_path / "traces", pids, pace, daemon, fallback)

    return live


def _config(live: LiveCapture, process: StandIn) -> dict[str, str]:
    process.ask()
    live.advance(TICK_S)
    return process.config()


def _end(live: LiveCapture, patience_s: float = PATIENCE_S) -> list[Outcome]:
    """Let nobody else take part, and return what becomes of those that do."""
    live.pace = live.pace._replace(listen_s=0, patience_s=patience_s)
    while not live.is_done:
        live.advance(TICK_S)
    return live.outcomes()


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("is_renamed", [True, False])
def test_a_trace_is_taken_once_it_is_whole(
    capture: MakeCapture, address: bytes, tmp_path: Path, is_renamed: bool
) -> None:
    """The folder and the file are their owner's alone from the beginning, however Kineto names it."""
    with capture() as live, StandIn(address) as process:
        config = _config(live, process)
        path = trace_path(config, process.pids[0])
        assert _mode(path.with_name(f"{path.name}.tmp")) == 0o600
        if is_renamed:
            process.write(config, is_whole=False)
            live.advance(TICK_S)
            assert not live.participants[0].outcome
            process.write(config)
        else:
            path.write_text(TRACE[:-9], encoding="utf-8")
            live.advance(TICK_S)
            assert not live.participants[0].outcome
            path.write_text(TRACE, encoding="utf-8")
        (outcome,) = _end(live)
    assert outcome == Outcome(os.getpid(), launched_rank(os.getpid()), path)
    assert _mode(path) == 0o600 and _mode(path.parent) == 0o700
    assert os.listdir(tmp_path / "traces") == [path.name]


def test_all_begin_at_one_time(capture: MakeCapture, address: bytes) -> None:
    """Whoever asks while it is listened gets the same start, more than a poll after the last may ask."""
    pace = CapturePace()
    before = time.time()
    with capture(pace) as live, StandIn(address) as process:
        config = _config(live, process)
        live.daemon.clients[0].has_config = False  # as another process of the same number
        again = _config(live, process)
    start = int(config["PROFILE_START_TIME"]) / 1000
    assert start == int(again["PROFILE_START_TIME"]) / 1000
    assert start >= before + pace.listen_s + POLL_S + live.plan.warmup_s
    assert config["ACTIVITIES_LOG_FILE"] != again["ACTIVITIES_LOG_FILE"]


def test_files_of_one_recording_are_one_capture(tmp_path: Path) -> None:
    """The names have the time and the rank in the form in which folders are read."""
    names = ["20261129-081630_rank0_7.json", "20261129-081630_rank1_8.json", "20261129-091630_rank0_7.json"]
    for name in names:
        (tmp_path / name).touch()
    captures = captures_of(members_of([tmp_path / name for name in names], lambda _: NO_FACTS))
    assert [capture.ranks for capture in captures] == [(0,), (0, 1)]


def test_a_process_is_named_by_what_started_it(capture: MakeCapture, address: bytes) -> None:
    """A number means a process and all that it started; others are not asked to record."""
    with capture(pids=(4242,)) as live, StandIn(address, pids=(os.getpid(), 4242)) as process:
        assert _config(live, process)
    with capture(pids=(4242,)) as live, StandIn(address) as other:
        assert not _config(live, other)
        outcomes = _end(live)
    assert [outcome.pid for outcome in outcomes] == [4242] and outcomes[0].why


def test_who_asks_too_late_takes_no_part(capture: MakeCapture, address: bytes) -> None:
    """A process that asks after the time for it is left alone."""
    with capture(AT_ONCE._replace(listen_s=0.0)) as live, StandIn(address) as process:
        assert not _config(live, process) and _end(live) == []


def test_who_is_recording_is_said(capture: MakeCapture, address: bytes) -> None:
    """A process that records by itself cannot take part, and that is the reason."""
    with capture() as live, StandIn(address) as process:
        process.ask(kinds=1)
        live.advance(TICK_S)
        (outcome,) = _end(live)
    assert outcome.path is None and "recording already" in outcome.why


@pytest.mark.parametrize(
    ("plan", "written", "why"),
    [
        (PLAN, "", "dropped the request"),
        (PLAN, TRACE[:40], "and then no more"),
        (RecordingPlan(steps=3), "", "too few steps"),
    ],
)
def test_who_writes_nothing_is_given_up(
    capture: MakeCapture, address: bytes, tmp_path: Path, plan: RecordingPlan, written: str, why: str
) -> None:
    """A process that does not answer ends the wait, with the usual reason; no empty file of it is left."""
    with capture(plan=plan) as live, StandIn(address) as process:
        config = _config(live, process)
        if written:
            process.write(config, written, is_whole=False)
        (outcome,) = _end(live, patience_s=0)
    assert outcome.path is None and why in outcome.why
    assert len(os.listdir(tmp_path / "traces")) == bool(written)


@pytest.mark.slow
def test_a_process_that_ends_is_not_awaited(capture: MakeCapture, address: bytes) -> None:
    """Who ends before its trace is whole is given up at once, however patient one is."""
    code = "import sys; from tests.stand_in import StandIn; StandIn(bytes.fromhex(sys.argv[1])).ask()\n"
    code += "sys.stdin.read()"
    with (
        capture() as live,
        subprocess.Popen([sys.executable, "-c", code, address.hex()], stdin=subprocess.PIPE) as process,
    ):
        wait_until(lambda: live.advance(TICK_S) or bool(live.participants))
        process.kill()
        process.wait()
        wait_until(lambda: live.advance(TICK_S) or live.participants[0].outcome is not None)
        outcome = live.participants[0].outcome
    assert outcome is not None and outcome.pid == process.pid and "it ended" in outcome.why


def test_a_trace_that_kineto_wrote_elsewhere_is_taken(
    capture: MakeCapture, address: bytes, tmp_path: Path
) -> None:
    """Where Kineto does not accept the folder, what it wrote to its own place is brought there."""
    with capture() as live, StandIn(address) as process:
        _config(live, process)
        elsewhere = tmp_path / f"default_{process.pids[0]}.json"
        elsewhere.write_text(TRACE, encoding="utf-8")
        (outcome,) = _end(live)
    assert outcome.path is not None and outcome.path.read_text(encoding="utf-8") == TRACE
    assert _mode(outcome.path) == 0o600 and not elsewhere.exists()


@pytest.mark.parametrize("name", ["default", "own"])
def test_links_are_not_followed(capture: MakeCapture, address: bytes, tmp_path: Path, name: str) -> None:
    """A link in place of a trace is no trace, neither in the folder nor where Kineto writes by itself."""
    secret = tmp_path / "secret"
    secret.write_text(TRACE, encoding="utf-8")
    secret.chmod(0o644)
    with capture() as live, StandIn(address) as process:
        own = trace_path(_config(live, process), process.pids[0])
        (own if name == "own" else tmp_path / f"default_{process.pids[0]}.json").symlink_to(secret)
        (outcome,) = _end(live, patience_s=0)
    assert outcome.path is None and _mode(secret) == 0o644


def test_an_interrupt_leaves_nothing(capture: MakeCapture, address: bytes, tmp_path: Path) -> None:
    """Ctrl+C while it is waited gives the socket back and leaves no file."""
    with pytest.raises(KeyboardInterrupt), capture() as live, StandIn(address) as process:
        assert _config(live, process)
        raise KeyboardInterrupt
    assert os.listdir(tmp_path / "traces") == []
    with capture():
        pass


def test_folders_that_kineto_cannot_write_to_are_refused(tmp_path: Path) -> None:
    """A name that Kineto would misread is said before anybody is asked."""
    with pytest.raises(UsageError, match="cannot write there"):
        LiveCapture(PLAN, tmp_path / "a=b")


def _process(**environment: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, **environment}
    )
    wait_until(lambda: bool(environment_of(process.pid)))
    return process


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "without KINETO_USE_DAEMON=1"),
        ({"KINETO_USE_DAEMON": "1"}, "has not asked for 6 s"),
        (
            {"KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": "/run/x"},
            "its KINETO_IPC_SOCKET_DIR is /run/x",
        ),
    ],
)
def test_why_a_process_is_silent(environment: dict[str, str], why: str) -> None:
    """Each usual reason is told from the others by what the process was started with."""
    with _process(RANK="3", **environment) as process:
        assert why in why_silent(process.pid, 6.0) and launched_rank(process.pid) == 3
        assert (process.pid in silent_processes(set())) == bool(environment)
        assert process.pid not in silent_processes({process.pid})
        process.communicate(b"\n")
    assert why_silent(process.pid, 6.0) == "there is no such process"


@pytest.mark.slow
def test_another_network_namespace_is_said() -> None:
    """A process of a container cannot see the socket: that is the reason, and what helps."""
    with subprocess.Popen(
        ["unshare", "--net", "--map-root-user", sys.executable, "-c", "print(1, flush=True); input()"],
        env={**os.environ, "KINETO_USE_DAEMON": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            pytest.skip("no new network namespace may be made here")
        why = why_silent(process.pid, 6.0)
        process.communicate(b"\n")
    assert "another network namespace" in why and "KINETO_IPC_SOCKET_DIR" in why
