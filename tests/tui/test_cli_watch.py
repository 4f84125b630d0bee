"""`tracelane watch`: a line for each capture, limits and changes, and a program that runs as if by itself."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import ROOT
from tests.tui.small_file import small_file
from tests.waiting import wait_until
from tracelane.core.index.arrivals import Arrivals
from tracelane.core.index.store import Index
from tracelane.tui.cli.trace_options import TraceOptions
from tracelane.tui.cli.watch import Judge

pytestmark = pytest.mark.slow
TORCH = os.environ.get("TRACELANE_TORCH", "")
"""A Python that has PyTorch."""


def _command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "tracelane", "watch", *map(str, arguments)]


def _watch(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*arguments), cwd=ROOT, check=False, capture_output=True, encoding="utf-8")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace that somewhere else waits to be written."""
    (tmp_path / "made").mkdir()
    return small_file(tmp_path / "made")


def _program(trace: Path, folder: Path, code: int = 0) -> list[str]:
    """A program that writes a trace and says something."""
    text = (
        "import os, shutil, sys; os.makedirs(sys.argv[2], exist_ok=True); "
        "shutil.copy(sys.argv[1], sys.argv[2] + '/t.json'); print('said'); "
        f"print('erred', file=sys.stderr); sys.exit({code})"
    )
    return ["--", sys.executable, "-c", text, str(trace), str(folder)]


def test_a_folder_that_is_not_there_is_said(trace: Path, tmp_path: Path) -> None:
    """A folder that the program makes is waited for, and that it is not there yet is said once."""
    result = _watch(tmp_path / "later", *_program(trace, tmp_path / "later"))
    assert result.returncode == 0 and result.stderr.count("later is not there yet") == 1
    assert "t.json" in result.stderr
    assert "not there" not in _watch(trace.parent, "--from-start", "--count", 1).stderr


def test_a_line_for_each_capture(trace: Path) -> None:
    """Captures that are there are said from the start where that is asked for, then as lines or JSON."""
    result = _watch(trace.parent, "--from-start", "--count", 1, "--against", trace)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 1 and trace.name in result.stdout
    result = _watch(trace.parent, "--from-start", "--count", 1, "--json")
    value = json.loads(result.stdout)
    assert value["files"] == [str(trace)] and value["changes"] == value["limits"] == []
    assert not value["error"]


@pytest.mark.parametrize(
    ("limits", "code", "exit_code"),
    [("", 0, 0), ("", 7, 7), ('[max]\n"trace.slices" = 1\n', 0, 1), ('[max]\n"trace.slices" = 1\n', 7, 7)],
)
def test_a_program_runs_as_if_by_itself(
    trace: Path, tmp_path: Path, limits: str, code: int, exit_code: int
) -> None:
    """Its output is its own, lines go to stderr, and its exit code goes first; then broken limits count."""
    options: list[str | Path] = []
    if limits:
        (tmp_path / "limits.toml").write_text(limits, encoding="utf-8")
        options = ["--limits", tmp_path / "limits.toml"]
    result = _watch(tmp_path / "runs", *options, *_program(trace, tmp_path / "runs", code))
    assert result.stdout == "said\n" and "erred\n" in result.stderr
    assert "t.json" in result.stderr and ("LIMIT trace.slices" in result.stderr) == bool(limits)
    assert result.returncode == exit_code


def test_half_a_file_is_said_at_the_end(tmp_path: Path) -> None:
    """What a program leaves unfinished is no capture and no error, but named."""
    text = "open(__import__('sys').argv[1] + '/t.json', 'w').write('{\"traceEvents\": [')"
    result = _watch(tmp_path, "--", sys.executable, "-c", text, tmp_path)
    assert result.returncode == 0 and "t.json ends in the middle" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_signals_are_handed_on(tmp_path: Path, number: signal.Signals) -> None:
    """A signal reaches the program, which decides what it means."""
    text = (
        "import signal, sys, time\n"
        "signal.signal(int(sys.argv[1]), lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(60)"
    )
    command = _command(tmp_path, "--", sys.executable, "-c", text, f"{int(number)}")
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        wait_until(lambda: process.poll() is not None)
    assert process.returncode == 9


def test_a_program_that_a_signal_ends(tmp_path: Path) -> None:
    """The exit code is that of a shell."""
    text = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert _watch(tmp_path, "--", sys.executable, "-c", text).returncode == 137


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--", "/no/such/program"], "cannot run /no/such/program"),
        (["--count", "1", "--", "true"], "--count ends without a program"),
        (["--against", "/no/such/trace", "--", "true"], "no such file"),
    ],
)
def test_what_means_nothing_is_said_first(tmp_path: Path, arguments: list[str], why: str) -> None:
    """What cannot be done is said before a program runs."""
    result = _watch(tmp_path, *arguments)
    assert result.returncode in (2, 64) and why in result.stderr


def test_a_capture_that_is_gone_is_said(trace: Path, tmp_path: Path) -> None:
    """What was deleted or is damaged when it is opened is a line, and the program's end is its own."""
    folder = tmp_path / "runs"
    text = (
        "import os, sys; os.makedirs(sys.argv[1]); "
        'open(sys.argv[1] + \'/t.json\', \'w\').write(\'{"traceEvents": [{"ph": "X", "name": 5}]}\')'
    )
    result = _watch(folder, "--", sys.executable, "-c", text, folder)
    assert result.returncode == 0 and "should not have happened" not in result.stderr
    assert os.listdir(folder) == ["t.json"]


def test_captures_leave_nothing(trace: Path, tmp_path: Path) -> None:
    """After its line, nothing of a capture is held: no index, no file that is open, no more objects."""
    folder = tmp_path / "runs"
    folder.mkdir()
    judge, arrivals = Judge(TraceOptions(index_dir=tmp_path / "index")), Arrivals(str(folder))
    counts: list[tuple[int, int]] = []
    for number in range(60):
        path = folder / f"{number}.json"
        shutil.copy(trace, path)
        (capture,) = arrivals.look(is_over=True).captures
        assert not judge.report(capture).error
        path.unlink()
        if number in (19, 39, 59):
            gc.collect()
            files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
            counts.append((len(gc.get_objects()), files))
    indexes = [one for one in gc.get_objects() if isinstance(one, Index)]
    assert not [one for one in indexes if str(folder) in str(getattr(one, "path", ""))]  # of others
    (_, files), (objects, _), (objects_later, files_later) = counts
    assert files_later <= files
    assert objects_later - objects < 20  # of 20 captures


RECORDED = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
weights = torch.rand(64, 64)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=1, active=3, repeat=2),
    on_trace_ready=tensorboard_trace_handler(sys.argv[1], worker_name="one"),
) as recording:
    for _ in range(8):
        weights = torch.relu(weights @ weights)
        recording.step()
print("trained")
"""
"""A program that PyTorch's profiler records twice, three steps each."""


@pytest.mark.torch
@pytest.mark.timeout(600)
@pytest.mark.skipif(not TORCH, reason="TRACELANE_TORCH names no Python with PyTorch")
def test_what_pytorch_records_is_said(tmp_path: Path) -> None:
    """Each capture that PyTorch's profiler writes while it is watched is a line with its steps."""
    result = _watch(tmp_path / "runs", "--", TORCH, "-c", RECORDED, tmp_path / "runs")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "trained\n"
    lines = [line for line in result.stderr.splitlines() if "3 steps" in line]
    assert len(lines) == 2 and all("step " in line and "busy " in line for line in lines), result.stderr
