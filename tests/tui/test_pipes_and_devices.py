"""Files beside a trace may be pipes and devices that never end: each is refused at once, in one line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file

LOG = "timestamp,power.draw [W]\n2026-06-20 07:10:01,3\n2026-06-20 07:10:02,4\n"
PIPE = "it is a pipe: write what comes from it to a file first"
DEVICE = "it is a device or socket, not a file"


@pytest.mark.slow
@pytest.mark.parametrize("words", ["telemetry TRACE --smi", "view TRACE --smi", "check TRACE --limits"])
@pytest.mark.parametrize(
    ("special", "why"), [("pipe", PIPE), ("/dev/zero", DEVICE), ("folder", "it is a directory")]
)
def test_what_is_no_file_is_refused(words: str, special: str, why: str, tmp_path: Path) -> None:
    """A log or limits that are a pipe without a writer, a device without an end or a folder: exit code 2."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    trace = small_file(tmp_path)
    done = tracelane_here(*words.replace("TRACE", str(trace)).split(), str(tmp_path / special))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and done.stderr.endswith(f"{why}\n") and special in done.stderr


@pytest.mark.slow
def test_a_side_of_a_comparison_may_be_a_pipe(tmp_path: Path) -> None:
    """A trace that comes through a pipe is compared as one that lies in a file; a device is refused."""
    trace = small_file(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", 'cat "$0" >"$1"', str(trace), str(pipe)])
    try:
        done = tracelane_here("diff", str(pipe), str(trace), "--format", "json")
    finally:
        writer.kill()
        writer.wait()
    plain = tracelane_here("diff", str(trace), str(trace), "--format", "json")
    assert done.returncode == plain.returncode == 0
    assert done.stdout.count("\n") == plain.stdout.count("\n") > 10
    refused = tracelane_here("diff", str(trace), "/dev/zero")
    assert refused.returncode == 2 and "/dev/zero: is a device or socket, not a trace" in refused.stderr
