"""A file has its name when it is whole; what a killed process left of one is removed by the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tracelane.core.base.output import write_new_file
from tracelane.core.base.whole_file import publish, unfinished

WRITE = """
import sys, time
from pathlib import Path
from tracelane.core.base.whole_file import unfinished
with unfinished(Path(sys.argv[1])) as path:
    path.write_text("half")
    print(path, flush=True)
    time.sleep(600)
"""


def writer(out: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that is not done with a file, and return it with what it writes to."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(out)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Of the same name alone, and not what another process still writes to."""
    out = tmp_path / "out.json"
    (dead, left), (alive, being_written), (other, of_other) = writer(out), writer(out), writer(tmp_path / "b")
    for process in (dead, other):
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left.exists() and not out.exists()
    write_new_file(out, ["whole"])
    assert {path.name for path in tmp_path.iterdir()} == {"out.json", being_written.name, of_other.name}
    assert out.read_text("utf-8") == "whole"
    alive.kill()
    alive.wait()


def test_what_nobody_has_written_to_for_a_day_is_left_over(tmp_path: Path) -> None:
    """Also where it is of a host that cannot be asked; a fresh one stays."""
    old, fresh = (tmp_path / f".out.json-elsewhere-{pid}.part" for pid in (1, 2))
    for path in (old, fresh):
        path.touch()
    os.utime(old, (time.time() - 100_000,) * 2)
    write_new_file(tmp_path / "out.json", ["whole"])
    assert not old.exists() and fresh.exists()


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """Neither before nor after the pieces are made, and nothing else is left."""
    out = tmp_path / "out.json"

    def pieces() -> list[str]:
        out.write_text("theirs", encoding="utf-8")
        return ["ours"]

    with pytest.raises(FileExistsError):
        write_new_file(out, pieces())
    with pytest.raises(FileExistsError), unfinished(out) as path:
        publish(path, out)
    assert [one.name for one in tmp_path.iterdir()] == ["out.json"] and out.read_text("utf-8") == "theirs"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["json", "json.gz", "pftrace", "speedscope.json", "html", "sqlite"])
def test_a_killed_export_leaves_nothing_after_the_next(ending: str, tmp_path: Path) -> None:
    """Whatever it writes: the target is whole or not there, and the next export removes the rest."""
    from tracelane.core.demo.trace import write_demo

    trace = write_demo(tmp_path / "demo")[0]
    name = f"x.{ending}"
    out = tmp_path / "out" / name
    out.parent.mkdir()
    command = [sys.executable, "-m", "tracelane", "export", str(trace), "-o", str(out)]
    environ = {**os.environ, "TRACELANE_INDEX_DIR": str(tmp_path / "index")}
    killed = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    wait_until(lambda: any(out.parent.iterdir()) or killed.poll() is not None, "the export begins")
    killed.kill()
    killed.wait()
    out.unlink(missing_ok=True)
    assert subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert [path.name for path in out.parent.iterdir()] == [name]
