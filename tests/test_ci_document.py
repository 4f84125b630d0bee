"""The jobs of docs/ci.md run as they stand there, and end with the exit codes that the document lists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tracelane.core.demo.trace import write_demo

DOCUMENT = (Path(__file__).resolve().parent.parent / "docs" / "ci.md").read_text(encoding="utf-8")
JOB, COMPARISON = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
(QUOTED,) = re.findall(r"^```text\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
(WORKFLOW,) = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
RUN = re.compile(r"^(?: {6}- | {8})run: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", re.MULTILINE)
RECORDING = "tracelane demo --out trace --no-open"

pytestmark = pytest.mark.slow


def run_job(script: str, folder: Path, run: str = "1") -> subprocess.CompletedProcess[str]:
    """Run a script in a folder, with a `tracelane` on PATH that is the one of this checkout."""
    programs = folder.parent / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "tracelane"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tracelane "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder.parent / "cache"),
        "RUN": run,
        "GITHUB_RUN_NUMBER": run,
    }
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that a job runs in."""
    folder = tmp_path / "job"
    folder.mkdir()
    return folder


def failures(folder: Path, name: str = "check.xml") -> int:
    """Return how many tests failed by the JUnit file."""
    return int(ElementTree.parse(folder / name).getroot().attrib["failures"])


def slowed(folder: Path) -> str:
    """Write the demo's first rank with kernels 1.3 times as long; return what copies it into place."""
    trace = json.loads(write_demo(folder.parent / "quick")[0].read_text(encoding="utf-8"))
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] = event["dur"] * 1.3
    (folder / "slow.json").write_text(json.dumps(trace), encoding="utf-8")
    return "mkdir -p trace && cp slow.json trace/rank0.pt.trace.json"


def test_the_job_passes_and_keeps_summaries(folder: Path) -> None:
    """Run after run ends with 0, adds its summary, prints what the document quotes; then diff compares."""
    for run in ("1", "2"):
        done = run_job(JOB, folder, run)
        assert done.returncode == 0, done.stderr
        assert failures(folder) == 0
        assert {line for line in QUOTED.splitlines() if line} <= set(done.stdout.splitlines())
    assert "EXCEEDED" not in done.stdout
    assert sorted(path.name for path in (folder / "summaries").iterdir()) == ["1.json", "2.json"]
    assert "History of kernels.time: 2 runs" in done.stdout
    compared = run_job(COMPARISON, folder)
    assert compared.returncode == 0, compared.stderr
    assert failures(folder, "diff.xml") == 0


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ('"700ms"', '"600ms"', 1),
        ("TRACE=trace/rank0.pt.trace.json", "TRACE=trace/nothing.json", 2),
        ('"kernels.calls" = 252', '"kernels.colour" = 252', 64),
        ("--junit check.xml", "--no-such-option", 64),
    ],
    ids=["limit", "missing", "limits-file", "usage"],
)
def test_the_job_fails(folder: Path, before: str, after: str, code: int) -> None:
    """What is wrong is the exit code of the job, and nothing is added to the summaries."""
    assert before in JOB
    done = run_job(JOB.replace(before, after), folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert not list((folder / "summaries").iterdir())
    if code == 1:
        assert failures(folder) == 1 and "EXCEEDED  step.wall.p95 643.687 ms" in done.stdout


@pytest.mark.corpus
def test_slower_kernels_fail_the_job(folder: Path) -> None:
    """Against an earlier summary, kernels that take 30 % longer end check and diff with 1."""
    assert run_job(JOB, folder).returncode == 0
    done = run_job(JOB.replace(RECORDING, slowed(folder)), folder, "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "EXCEEDED  kernels.time rose by 30.0%" in done.stdout and failures(folder) == 1
    assert run_job(COMPARISON, folder).returncode == 1
    assert failures(folder, "diff.xml") == 1


def test_the_workflow_s_commands_run(folder: Path) -> None:
    """Each command of the workflow succeeds in its turn; slower kernels are annotated."""
    commands = [block or line for block, line in RUN.findall(WORKFLOW)]
    assert len(commands) == WORKFLOW.count("run: ") and commands.pop(0).startswith("pip install ")
    script = "set -e\n" + "\n".join(re.sub(r"^ {10}", "", one, flags=re.MULTILINE) for one in commands)
    done = run_job(script, folder)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (folder / "summaries").iterdir()] == ["1.json"]
    done = run_job(script.replace(RECORDING, slowed(folder)), folder, "2")
    assert done.returncode == 1 and "::error title=tracelane check::" in done.stderr
