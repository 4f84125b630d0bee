"""`tracelane capture` from end to end: with a stand-in for PyTorch everywhere, with PyTorch where it is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus import ROOT
from tests.waiting import wait_until
from tracelane.core.capture.daemon import KinetoDaemon, address_of
from tracelane.core.capture.processes import SOCKET_FOLDER
from tracelane.core.trace import open_trace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="PyTorch asks a daemon on Linux alone"),
]
TORCH = os.environ.get("TRACELANE_TORCH", sys.executable)
"""A Python that has PyTorch."""
HAS_TORCH = "TRACELANE_TORCH" in os.environ or importlib.util.find_spec("torch") is not None


@pytest.fixture
def sockets() -> Iterator[str]:
    """A folder for the daemon's socket, whose name is short enough: the usual one belongs to all tests."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder


def _capture(sockets: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracelane", "capture", *map(str, arguments)],
        env={**os.environ, SOCKET_FOLDER: sockets},
        cwd=ROOT,
        check=False,
        capture_output=True,
        encoding="utf-8",
    )


def test_what_a_process_wrote_is_named(sockets: str, tmp_path: Path) -> None:
    """Without a terminal the files are printed, and the command that opens them; all record at once."""
    folder = tmp_path / "traces"
    log = tmp_path / "smi log"
    log.touch()
    command = [sys.executable, "-m", "tests.stand_in", str(address_of(sockets)), "100"]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, "RANK": f"{rank}"}) for rank in (0, 1)
    ]
    try:
        result = _capture(sockets, "-o", folder, "--smi", log, "--ms", "20")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert result.returncode == 0, result.stderr
    paths = result.stdout.splitlines()
    assert sorted(paths) == sorted(map(str, folder.iterdir())) and len(paths) == 2
    assert [member.rank for member in open_trace([folder]).members] == [0, 1]
    for rank, process in enumerate(processes):
        assert f"process {process.pid}  rank {rank}  " in result.stderr
    assert f"open them: tracelane {folder} --smi '{log}'" in result.stderr


def test_who_does_not_answer_is_named(sockets: str, tmp_path: Path) -> None:
    """A process that cannot take part is named with the reason, and the exit code says so."""
    result = _capture(sockets, os.getpid(), "-o", tmp_path / "traces")
    assert result.returncode == 1 and not result.stdout
    assert f"{os.getpid()}: it was started without KINETO_USE_DAEMON=1" in result.stderr
    assert "nothing was recorded" in result.stderr


def test_a_daemon_that_is_there_gets_its_own_command(sockets: str, tmp_path: Path) -> None:
    """Where another has the socket that is said at once, and nothing is made."""
    with KinetoDaemon(lambda _: "", address_of(sockets)):
        result = _capture(sockets, "7", "--ms", "20", "-o", tmp_path / "traces")
    assert result.returncode == 1 and f"belongs to process {os.getpid()}" in result.stderr
    assert not (tmp_path / "traces").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--ms", "5", "--steps", "5"], "give one of them"),
        (["--from-step", "5"], "needs --steps"),
        (["-o", "a=b"], "Kineto cannot write there"),
        (["0"], "is less than 1"),
    ],
)
def test_what_means_nothing_is_said(sockets: str, arguments: list[str], why: str) -> None:
    """Options that contradict each other end before anybody is asked."""
    result = _capture(sockets, *arguments)
    assert result.returncode == 64 and why in result.stderr


LOOP = """
import sys, threading, torch
weight = torch.nn.Parameter(torch.randn(64, 64))
optimizer = torch.optim.SGD([weight], lr=0.1)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
print("runs", flush=True)
while not ended.wait(0.01):
    (weight @ weight).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def torch_loop(sockets: str) -> Iterator[subprocess.Popen[str]]:
    """A process that trains with PyTorch, unchanged but for its environment."""
    environment = {**os.environ, SOCKET_FOLDER: sockets, "KINETO_USE_DAEMON": "1", "KINETO_LOG_LEVEL": "99"}
    with subprocess.Popen(
        [TORCH, "-c", LOOP],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        lines = process.stdout
        wait_until(lambda: lines.readline() == "runs\n" or process.poll() is not None)
        yield process
        process.communicate("")


@pytest.mark.torch
@pytest.mark.skipif(not HAS_TORCH, reason="no PyTorch (set TRACELANE_TORCH to a Python that has it)")
@pytest.mark.parametrize("how", [("--ms", "300"), ("--steps", "4", "--with", "shapes")], ids=["ms", "steps"])
def test_pytorch_records(
    sockets: str, torch_loop: subprocess.Popen[str], tmp_path: Path, how: tuple[str, ...]
) -> None:
    """PyTorch itself records on demand, on CPU, a time or steps, and tracelane opens what it wrote."""
    result = _capture(sockets, torch_loop.pid, "-o", tmp_path / "traces", *how)
    assert result.returncode == 0, result.stderr
    (name,) = result.stdout.splitlines()
    assert os.stat(name).st_mode & 0o777 == 0o600
    trace = open_trace([name])
    hits = subprocess.run(
        [sys.executable, "-m", "tracelane", "slices", name, "--where", "name=aten::mm", "--format", "csv"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        encoding="utf-8",
    ).stdout.splitlines()
    assert len(hits) > 3 and not trace.sources[0].problems
