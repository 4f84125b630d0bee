"""`tracelane cache`, `demo` and bare `tracelane`: what is kept, what is made, what can be chosen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tracelane.core.index.cached import list_cache
from tracelane.tui.cli.main import main

from .cli_process import on_terminal, tracelane


def test_indexes_are_listed_and_cleared(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An index is listed with its trace, spared while young, and gone after clear."""
    assert tracelane("index", str(demo)).returncode == 0
    assert main(["cache", "list"]) == 0
    listed = capsys.readouterr().out
    assert listed.count("\n") == 1 and str(demo) in listed
    assert main(["cache"]) == 0 and capsys.readouterr().out == listed
    assert main(["cache", "clear", "--older-than", "1h"]) == 0
    assert main(["cache", "list"]) == 0 and str(demo) in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert main(["cache", "list"]) == 0 and capsys.readouterr().out == ""


def test_an_age_has_its_unit(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is cleared by a bare number would hang on a unit that nobody named: nothing is."""
    assert tracelane("index", str(demo)).returncode == 0
    assert main(["cache", "clear", "--older-than", "1"]) == 64
    assert "with its unit" in capsys.readouterr().err and len(list_cache()) == 1
    assert main(["cache", "clear", "--older-than", "0"]) == 0 and not list_cache()


def test_traces_are_listed_by_where_they_lie(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was opened by a relative path is listed in every folder, and opens from there."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    shutil.copy(demo, tmp_path / "one" / "t.json")
    monkeypatch.chdir(tmp_path / "one")
    assert main(["index", "t.json"]) == 0
    monkeypatch.chdir(tmp_path / "other")
    capsys.readouterr()
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "one" / "t.json")]
    assert main(["cache", "list"]) == 0 and str(tmp_path / "one" / "t.json") in capsys.readouterr().out


def test_what_made_room_is_told(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list says how much the cache holds and may hold, and which index went to keep it below that."""
    other = tmp_path / "other.json"
    other.write_text('[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]', encoding="utf-8")
    monkeypatch.setenv("TRACELANE_CACHE_LIMIT", "none")
    assert tracelane("index", str(demo)).returncode == 0 and main(["cache", "list"]) == 0
    assert "without a limit" in capsys.readouterr().err
    for entry in list_cache():
        os.utime(entry.folder, (0, 0))
    monkeypatch.setenv("TRACELANE_CACHE_LIMIT", "64k")
    assert main(["index", str(other)]) == 0 and main(["cache", "list"]) == 0
    captured = capsys.readouterr()
    assert str(other) in captured.out and str(demo) not in captured.out
    made_room, total = captured.err.splitlines()[-2:]
    assert made_room.startswith("made room 2") and made_room.endswith(f"MB: {demo}")
    assert " of 64.0 KiB at most in " in total and total.endswith("tracelane")


def test_demo_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`demo --no-open` writes the files where asked and names them."""
    assert main(["demo", "--out", str(tmp_path / "d"), "--no-open"]) == 0
    names = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert names == ["rank0.pt.trace.json", "rank1.pt.trace.json", "aiu-smi.log"]
    assert all((tmp_path / "d" / name).stat().st_size for name in names)


@pytest.mark.slow
def test_demo_is_printed_without_a_terminal(tmp_path: Path) -> None:
    """Without a terminal `demo` prints the picture of both ranks and exits 0."""
    done = tracelane("demo", "--out", "d", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3,481 events") == 2 and "rank 0" in done.stdout and "rank 1" in done.stdout


def test_demo_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that cannot be made is told in one line."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["demo", "--out", str(tmp_path / "file" / "d"), "--no-open"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_traces_here_and_opened_lately(demo: Path, tmp_path: Path) -> None:
    """Bare `tracelane` lists the traces here, then those opened lately; nothing is told apart by luck."""
    assert tracelane(cwd=tmp_path).stdout == ""
    assert "tracelane demo" in tracelane(cwd=tmp_path).stderr
    (tmp_path / "b.json").write_text("[]", encoding="utf-8")
    (tmp_path / "a.json.gz").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    assert tracelane("index", str(demo)).returncode == 0
    done = tracelane(cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["a.json.gz", "b.json", str(demo)])


@pytest.mark.slow
def test_choosing_on_a_terminal(demo: Path) -> None:
    """On a terminal the traces are a list, a folder of several ranks among them, that typing filters; Enter
    opens one, Esc none.
    """
    both = demo.parent
    (both / "run").mkdir(exist_ok=True)
    for rank in range(2):
        shutil.copy(demo, both / "run" / f"rank{rank}.pt.trace.json")
    played = on_terminal(cwd=both, play=(("Open a trace", "zzz"), ("fewer letters", "\x1b")))
    assert played.code == 0
    played = on_terminal(cwd=both, play=(("Open a trace", "rank0\r"), ("step 4", "q")))
    assert played.code == 0
