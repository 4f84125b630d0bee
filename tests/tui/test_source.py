"""Source files that a slice names: found where they are there, shown at the line, refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.events import open_events
from tests.tui.driver import message, open_viewer, wait_until_idle
from tracelane.core.base.errors import UnreadableError
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.screens.source import (
    MAX_BYTES,
    SourceLine,
    SourceScreen,
    existing,
    lines_of,
    source_lines_in,
)
from tracelane.tui.widgets.table import VirtualTable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch/nn/module.py(14): forward", SourceLine("torch/nn/module.py", 14)),
        ("/a b/c.py(7): <lambda>", SourceLine("/a b/c.py", 7)),
        ("/tmp/inductor/ab/cabc.py:33", SourceLine("/tmp/inductor/ab/cabc.py", 33)),
        ('File "/x/y.py", line 5, in f', SourceLine("/x/y.py", 5)),
        ("/tmp/inductor/ab/cabc.py", SourceLine("/tmp/inductor/ab/cabc.py", 1)),
        ("main.py(3): f;model.py(9): g", SourceLine("main.py", 3)),
        ("aten::linear", None),
        ("void at::native::kernel<4, at::Functor>(int)", None),
        ("<built-in method run of object at 0x7f>", None),
    ],
)
def test_what_names_a_place(text: str, expected: SourceLine | None) -> None:
    """Frames, tracebacks, file:line and whole paths are places; names of ops and kernels are none."""
    assert (source_lines_in([text]) or [None])[0] == expected


def test_only_what_is_there(tmp_path: Path) -> None:
    """The first place whose file is there is taken, relative ones from the folders; folders are no files."""
    (tmp_path / "model.py").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "folder.py").mkdir()
    candidates = [
        SourceLine("folder.py", 1),
        SourceLine("gone.py", 2),
        SourceLine("x" * 5000, 1),
        SourceLine("model.py", 3),
    ]
    assert existing(candidates, [tmp_path / "none", tmp_path]) == (tmp_path / "model.py", 3)
    assert existing(candidates[:3], [tmp_path]) is None


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    """What is no text, too large or gone is refused in one line."""
    binary, large = tmp_path / "a.py", tmp_path / "b.py"
    binary.write_bytes(b"\0\1")
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for path, why in ((binary, "no text"), (large, "too large"), (tmp_path / "c.py", "No such file")):
        with pytest.raises(UnreadableError, match=why):
            lines_of(path)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A frame whose file is there around an op, a kernel with a file that is there, one that names none."""
    (tmp_path / "model.py").write_text("".join(f"line {n}\n" for n in range(1, 201)), encoding="utf-8")
    (tmp_path / "out.py").write_text("import x\n", encoding="utf-8")

    def event(name: str, tid: int, ts: int, dur: int, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "cat": "c", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [
        event("model.py(120): forward", 1, 0, 100),
        event("aten::mm", 1, 10, 10),
        event("triton_0", 2, 0, 10, kernel_file=str(tmp_path / "out.py")),
        event("plain", 3, 0, 10),
        event("gone.py(3): f", 4, 0, 10),
        event("triton_poi_fused_add_0", 5, 0, 10),
        event("triton_poi_fused_mul_1", 6, 0, 10),
    ]
    frames = {
        "triton_poi_fused_add_0:1": ['  File "model.py", line 42, in forward\n    y = x + 1\n'],
        "triton_poi_fused_mul_1:2": ['  File "/gone/model.py", line 7, in forward\n    z = y * 2\n'],
    }
    (tmp_path / "inductor_provenance_tracking_kernel_stack_traces_1.json").write_text(
        json.dumps(frames), encoding="utf-8"
    )
    return open_events(tmp_path, events)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ordinal", "file", "line"),
    [(0, "model.py", 120), (1, "model.py", 120), (2, "out.py", 1), (5, "model.py", 42)],
)
async def test_shown_at_the_line(trace: Trace, ordinal: int, file: str, line: int) -> None:
    """V shows the file of the slice, of a frame around it, or of a compiled kernel; Esc leaves it."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        app.action_jump(0, ordinal)
        app.run_command("source")
        await pilot.pause()
        await wait_until_idle(app, pilot)
        screen = app.screen
        assert isinstance(screen, SourceScreen)
        await pilot.pause()
        table = screen.query_one(VirtualTable)
        assert table.row == line - 1
        assert str(screen.query_one("Vertical").border_title).endswith(f"{file}:{line}")
        await pilot.press("escape")
        assert app.session.selection == SliceId(0, ordinal)
        assert not isinstance(app.screen, SourceScreen)


@pytest.mark.parametrize(
    ("ordinal", "said"),
    [
        (3, "this names no source file"),
        (4, "gone.py is not on this"),
        (6, "/gone/model.py is not on this machine; model.py:7: z = y * 2"),
    ],
)
async def test_refused_in_one_line(trace: Trace, ordinal: int, said: str) -> None:
    """Where nothing is named, or the file is not here, the footer says so."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        app.action_jump(0, ordinal)
        app.run_command("source")
        await pilot.pause()
        await wait_until_idle(app, pilot)
        assert said in message(app)
