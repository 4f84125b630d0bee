"""No command connects or binds, or runs anything that came with a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.index_damage import COMMANDS, OUT, write_trace

HOOK = """
import os, socket, sys
INTERNET = (socket.AF_INET, socket.AF_INET6)
FOLDER, REPORT = os.environ["WATCHED_FOLDER"], os.environ["WATCHED_REPORT"]

def watch(event, arguments):
    bad = ""
    if event in ("socket.connect", "socket.bind", "socket.sendto"):
        bad = f"{event} {arguments[1]}" if arguments[0].family in INTERNET else ""
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "pickle.find_class", "os.system"):
        bad = f"{event} {arguments}"
    elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
        bad = f"{event} {arguments[:2]}" if str(arguments[0]) != sys.executable else ""
    elif event == "exec" and getattr(arguments[0], "co_filename", "").startswith(FOLDER):
        bad = f"exec {arguments[0].co_filename}"
    if bad:
        with open(REPORT, "a") as file:
            file.write(bad + "\\n")

sys.addaudithook(watch)
"""
"""Python code that writes down what must not happen, in every process that a command starts."""
RUN = """
import json, sys
from tracelane.tui.cli.main import main
for words in json.loads(sys.argv[1]):
    main(words)
"""


def watched(commands: list[list[str]], folder: Path, code: str = RUN) -> str:
    """Run commands in a process that is watched, with its children, and return what must not happen."""
    hooks = folder.parent / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    report = folder.parent / "report"
    report.touch()
    names = {"WATCHED_FOLDER": str(folder), "WATCHED_REPORT": str(report), "PYTHONPATH": str(hooks)}
    subprocess.run(
        [sys.executable, "-P", "-c", code, json.dumps(commands)],
        cwd=folder,
        env={**os.environ, **names},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=240,
        check=True,
    )
    return report.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a trace, and beside it files that would be run if names were taken for modules."""
    inside = tmp_path / "traces"
    inside.mkdir()
    write_trace(inside / "trace.json")
    for name in (
        "json.py",
        "numpy.py",
        "sitecustomize.py",
        "usercustomize.py",
        "tracelane.py",
        "conftest.py",
    ):
        (inside / name).write_text(
            f"open({str(tmp_path / 'run')!r}, 'a').write(__file__)\n", encoding="utf-8"
        )
    return inside


@pytest.mark.slow
def test_commands_neither_connect_nor_run_what_came_with_a_trace(folder: Path) -> None:
    """All commands, with an index to build and without, in the folder of the trace."""
    trace, out = str(folder / "trace.json"), str(folder / "out.json")
    commands = [["index", trace, "--force"], ["cache", "list"], ["diff", trace, trace]]
    commands += [["demo", "--out", str(folder / "demo"), "--no-open"]]
    for name, *words in COMMANDS:
        commands.append([name, trace, *(out if word == OUT else word for word in words)])
    assert watched(commands, folder) == ""
    assert not (folder.parent / "run").exists()


def test_the_watch_sees_what_it_is_to_see(folder: Path) -> None:
    """The hook reports connections, bound ports, foreign programs and modules of the folder."""
    code = """
import os, pickle, runpy, socket, subprocess
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    with socket.socket() as other:
        other.settimeout(1)
        other.connect_ex(one.getsockname())
with socket.socket(socket.AF_INET6) as six:
    try:
        six.bind(("::1", 0))
    except OSError:
        pass
subprocess.run(["/bin/true"])
pickle.loads(pickle.dumps(subprocess.Popen))
runpy.run_path(os.path.abspath("json.py"))
"""
    seen = watched([], folder, code)
    for word in ("socket.bind ('127", "socket.connect", "socket.bind ('::1", "/bin/true", "pickle", "exec"):
        assert word in seen
    assert (folder.parent / "run").exists()
