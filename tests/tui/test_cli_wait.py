"""`--wait`: what is not complete yet is waited for, in a line that says why."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.tui.small_file import events
from tests.waiting import PATIENCE_S

from .cli_process import start_tracelane

WHOLE = json.dumps({"traceEvents": events()})


def write_at_once(path: Path, text: str) -> None:
    """Write a file in one step: a program that watches it never sees it empty or half written."""
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def test_it_opens_when_it_is_complete(tmp_path: Path) -> None:
    """Each reason to wait is said once; what is shown at the end is the complete trace."""
    path, live = tmp_path / "t.pt.trace.json", tmp_path / "t.pt.trace.json.tmp"
    with start_tracelane("view", str(path), "--wait", "--index-dir", str(tmp_path / "index")) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting: {path} is not there yet (Ctrl+C ends)\n"
        write_at_once(live, WHOLE[:1000])
        expected = f"waiting: {path} is still called {live.name}, 1000 B by now (Ctrl+C ends)\n"
        assert process.stderr.readline() == expected
        write_at_once(live, WHOLE)
        live.rename(path)
        out, rest = process.communicate(timeout=PATIENCE_S)
        assert "21 events" in out
        assert [line.split(" is ")[1].split(",")[0] for line in rest.splitlines()] == ["being written"]
        assert process.returncode == 0


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    """Ctrl+C ends the wait with its own exit code and without a word more."""
    path = tmp_path / "t.json"
    with start_tracelane("view", str(path), "--wait") as process:
        assert process.stderr is not None
        assert "is not there yet" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr.read() == ""


def test_a_file_still_being_written_says_so(tmp_path: Path) -> None:
    """Without --wait a `.tmp` opens with what is there, and the summary says what it is."""
    live = tmp_path / "t.json.tmp"
    live.write_text(WHOLE[: WHOLE.rindex("}, {")])
    with start_tracelane("view", str(live), "--index-dir", str(tmp_path / "index")) as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert "t.json.tmp is still being written" in out and "--wait" in out
