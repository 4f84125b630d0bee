"""A terminal that does not know its size: a serial line, `docker exec`, a program that drives another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.slow_line import SlowLine, tracelane_command
from tracelane.core.demo.trace import write_demo

HUNG_UP = 129  # 128 + SIGHUP


@pytest.mark.slow
@pytest.mark.parametrize(("end", "code"), [("q", 0), ("hang up", HUNG_UP)])
def test_a_terminal_without_a_size(end: str, code: int, tmp_path: Path) -> None:
    """The viewer draws itself for 80 columns and 24 lines, comes to rest, and ends as anywhere else."""
    trace = write_demo(tmp_path)[0]
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = tracelane_command("view", str(trace))
    with SlowLine(command, size=(80, 24), stated=(0, 0), environ=environ) as line:
        line.wait_for("17.7 %")
        line.wait_for_quiet(0.5)
        if end == "q":
            line.type("q")
        else:
            line.hang_up()
        assert line.wait_for_end() == code
