"""Marks and the view of last time: kept beside the index, found again, harmless when damaged."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.tui.cli_process import on_terminal
from tests.tui.driver import message, open_viewer, screen_text
from tests.tui.small_file import events, small_file
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.units import format_ns
from tracelane.core.export.marks import Mark, read_marks, read_object, shelf, write_marks, write_object
from tracelane.core.index.options import IndexOptions
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.scene import Refusal
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.trace_options import TraceOptions
from tracelane.tui.cli.view_request import ViewOptions, session_of_options
from tracelane.tui.screens.answer import CopiedText, PickScreen
from tracelane.tui.session import GapId, InstantId, LaneKey, RowKey, Session, Viewport
from tracelane.tui.times import parse_span, time_frame
from tracelane.tui.view_line import view_line
from tracelane.tui.view_state import import_marks, saved_session, session_json, session_of


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """The small file, its index in a folder of its own."""
    return open_trace(small_file(tmp_path), index_dir=tmp_path / "index")


def _file(trace: Trace, kind: str) -> Path:
    path = shelf(trace, kind)
    assert path is not None
    return path


async def test_marks_are_kept_and_found_again(trace: Trace, tmp_path: Path) -> None:
    """m marks the cursor, M the range with a text; another viewer lists both and goes there; one goes."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.run_command("marks")
        assert "no marks" in message(app)
        await pilot.press("m", "v", "right", "right", "v")
        app.run_command("mark-text")
        await pilot.pause()
        await pilot.press(*"late", "enter")
        await pilot.pause()
        first, second = app.session.range or (0, 0)
        assert "◆" in screen_text(app)
    assert set(read_marks(_file(trace, "marks"))) == {Mark(first, first), Mark(first, second, "late")}
    assert tmp_path / "index" / "marks" == _file(trace, "marks").parent
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.run_command("marks")
        await pilot.pause()
        assert isinstance(app.screen, PickScreen)
        assert "late" in screen_text(app) and "(no text)" in screen_text(app)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.session.range == (first, second)
        await pilot.press("escape")
        app.run_command("unmark")
        assert len(app.store.now.marks) == 1
    assert len(read_marks(_file(trace, "marks"))) == 1


async def test_the_mark_next_to_the_cursor_goes(trace: Trace) -> None:
    """Of several marks in view that one is removed which is nearest to the cursor, on either side."""
    async with open_viewer(trace, (120, 50)) as (app, _):
        view = app.session.viewport
        times = [view.start + view.span * share // 10 for share in (1, 3, 6, 8)]
        for cursor, gone in ((5, 6), (4, 3), (9, 8), (0, 1)):
            app.store.dispatch(replace(app.store.now, marks=tuple(Mark(time, time) for time in times)))
            app.store.go(app.session._replace(cursor=view.start + view.span * cursor // 10), "cursor")
            app.run_command("unmark")
            left = {mark.start for mark in app.store.now.marks}
            assert {*times} - left == {view.start + view.span * gone // 10}


@pytest.mark.parametrize(("at_end", "is_gone"), [(False, True), (True, False)])
async def test_a_mark_at_the_edge_of_the_view(trace: Trace, at_end: bool, is_gone: bool) -> None:
    """A mark where the view begins is in it, one where it ends is not, and stays."""
    async with open_viewer(trace, (120, 50)) as (app, _):
        app.run_command("zoom-in")
        view = app.session.viewport
        mark = Mark(view.end, view.end) if at_end else Mark(view.start, view.start)
        app.store.dispatch(replace(app.store.now, marks=(mark,)))
        app.run_command("unmark")
        assert (app.store.now.marks == ()) == is_gone
        assert is_gone or "no mark in view" in message(app)


def test_a_copy_has_the_same_marks(trace: Trace, tmp_path: Path) -> None:
    """The file is named by what the trace holds, not by where it lies or when it was written."""
    other = tmp_path / "other"
    other.mkdir()
    copy = open_trace(small_file(other), index_dir=tmp_path / "index")
    assert _file(copy, "marks") == _file(trace, "marks")
    assert _file(copy, "marks") != _file(copy, "view")
    assert shelf(Trace([]), "marks") is None


def test_nothing_is_left_of_a_temporary_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no cache can be written, marks and view lie in the private folder that goes with the index."""
    (tmp_path / "taken").write_text("a file, not a folder", encoding="utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "taken")
    private = trace.indexes[0].folder.parents[1]
    assert private.parent == tmp_path and private.name.startswith("tracelane-")
    for kind in ("marks", "view"):
        assert private in _file(trace, kind).parents
    assert private.stat().st_mode & 0o077 == 0


async def test_a_foreign_file_is_never_written_over(trace: Trace) -> None:
    """Where the marks' file holds something else, marking says so and leaves it alone."""
    path = _file(trace, "marks")
    path.parent.mkdir(parents=True)
    path.write_text("[1, 2", encoding="utf-8")
    async with open_viewer(trace) as (app, pilot):
        await pilot.press("m")
        assert "is not JSON" in message(app)
    assert path.read_text(encoding="utf-8") == "[1, 2"
    with pytest.raises(TracelaneError):
        write_marks(path / "below", [])


async def test_the_view_is_found_again(trace: Trace) -> None:
    """What was saved on leaving is the session of the next time, whatever is in it."""
    async with open_viewer(trace) as (app, pilot):
        await pilot.press("w", "w", "down", "enter", "r", "p", "t")
        app.marking.save_view()
        left = app.session
    assert saved_session(trace) == left


def test_every_part_of_a_session_survives(trace: Trace) -> None:
    """A session with something in every field comes back equal."""
    lane = LaneKey(0, "7", '"a"', 1, "x")
    low, high = trace.span
    for selection in (SliceId(0, 3), InstantId(0, 4), GapId(0, 5)):
        session = Session(
            Viewport(low, high - low, 100),
            low + 5,
            RowKey(lane, 2),
            selection,
            3,
            frozenset({lane, (0, "7")}),
            frozenset({(1, "8")}),
            (lane,),
            frozenset({lane}),
            frozenset({(0, "9")}),
            ("worker",),
            range=(low, high),
            baseline=(low, low + 7),
            clocks=Clocks(MappingProxyType({(1, ""): 5, (0, "9"): -(2**70)})),
        )
        texts = {name: "x" for name, kind in TYPES.items() if kind == "str"}
        session = session._replace(**texts)  # type: ignore[arg-type]
        assert session_of(session_json(session), trace) == session


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"schema": 1},
        {"schema": 1, "session": 3},
        {"schema": 1, "session": {"is": "Nothing"}},
        {"schema": 1, "session": {"is": "Session", "viewport": 1, "cursor": "x"}},
        {"schema": 1, "session": {"is": "Session", "viewport": {"is": "Viewport"}, "cursor": 1}},
    ],
)
def test_a_damaged_view_is_no_view(value: dict[str, object] | None, trace: Trace) -> None:
    """What is no session, or one of another time, is left aside."""
    assert session_of(value, trace) is None
    far = Session(Viewport(trace.span[1] + 10**15, 1000, 100), 0)
    assert session_of(session_json(far), trace) is None
    write_object(_file(trace, "view"), {"schema": 9})
    assert saved_session(trace) is None and read_object(_file(trace, "view")) == {"schema": 9}


TYPES = {name: kind.__forward_arg__ for name, kind in Session.__annotations__.items()}
WRONG = {
    "int": ("x", None, True, ("x",)),
    "str": (1, None, ("x",)),
    "bool": (1, "x", None),
    "tuple": (1, "x", None, (None,), (1, "x", 2.5)),
    "frozenset": (1, "x", None, frozenset({1}), frozenset({"x"})),
    "RowKey": (1, "x", ("x",)),
    "Selectable": (1, "x", ("x",)),
    "Viewport": (1, None),
    "Clocks": (1, None),
}


@pytest.mark.parametrize("name", Session._fields)
def test_a_view_of_other_types_is_no_view(name: str, trace: Trace) -> None:
    """Whatever of a kept view is of another type than it has to be, nothing of it is used."""
    session = first_session(trace, 80)
    kind = TYPES[name]
    assert session_of(session_json(session), trace) == session
    for value in WRONG[kind.partition("[")[0].partition(" ")[0]]:
        if name != "anchor" and not (value is None and "None" in kind):
            stored = session_json(session)
            stored["session"][name] = session_json(session._replace(**{name: value}))["session"][name]
            assert session_of(stored, trace) is None, (name, value)


@pytest.mark.parametrize(
    "wrong",
    [{"rank_lines": 0}, {"rank_lines": 9}, {"device_lines": 0}, {"device_lines": 3}, {"device_rows": 0}]
    + [{name: -1} for name in ("host_rows", "map_lines", "scroll", "panel_size")],
)
def test_a_view_of_impossible_numbers_is_no_view(wrong: dict[str, int], trace: Trace) -> None:
    """A view with more lines for a row than there are, or fewer than none, is left aside."""
    session = first_session(trace, 80)._replace(**wrong)  # type: ignore[arg-type]
    assert session_of(session_json(session), trace) is None


async def test_the_view_as_a_command_line(trace: Trace) -> None:
    """`:copy view` gives a line that, taken apart by the command line's own rules, shows the same time."""
    async with open_viewer(trace) as (app, pilot):
        await pilot.press("home")
        app.run_command("baseline")
        await pilot.press("w", "w", "v", "right", "v", ":")
        await pilot.press(*"only stream", "enter", ":", *"steps aten::linear", "enter", ":")
        await pilot.press(*"copy view", "enter")
        await pilot.pause()
        assert isinstance(app.screen, CopiedText)
        line = view_line(trace, app.session)
        assert app.clipboard == line
        words = shlex.split(line)
        assert words[:2] == ["tracelane", "view"] and Path(words[2]).is_file()
        options = dict(zip(words[3::2], words[4::2]))
        span, baseline = options.pop("--range"), options.pop("--baseline")
        names = {"from": "begin", "to": "end", "step-name": "step_name"}
        part = TraceOptions(**{names.get(key[2:], key[2:]): text for key, text in options.items()})
        view_options = ViewOptions(part, span, baseline)
        again = session_of_options(trace, view_options, 100 + 24)
        seen = app.session.viewport
        assert (again.viewport.start, again.viewport.end, again.only) == (seen.start, seen.end, "stream")
        assert again.range is not None and again.range == app.session.range
        assert again.baseline is not None and again.baseline == app.session.baseline
        assert again.steps == app.session.steps == "aten::linear"


@pytest.mark.corpus
@pytest.mark.slow
def test_left_and_opened_again_on_a_terminal(tmp_path: Path) -> None:
    """Quitting keeps the view, opening finds it, --fresh does not."""
    trace = ["view", str(small_file(tmp_path)), "--index-dir", str(tmp_path / "index")]
    assert on_terminal(*trace, play=(("1 Details", "t"), ("whole trace", "q"))).code == 0
    assert on_terminal(*trace, play=(("whole trace", "q"),)).code == 0
    assert on_terminal(*trace, "--fresh", play=(("1 Details", "q"),)).code == 0


async def test_marks_go_from_one_to_another(trace: Trace, tmp_path: Path) -> None:
    """:save marks writes a file that :marks and `view --marks` add elsewhere, the same ones only once."""
    file = tmp_path / "found.json"
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        with pytest.raises(Refusal):
            app.saving.save(f"marks {file}")
        await pilot.press("m", "v", "right", "right", "v")
        app.run_command("mark-text")
        await pilot.pause()
        await pilot.press(*"late", "enter")
        app.saving.save(f"marks {file}")
        assert "saved" in message(app)
        marks = app.store.now.marks
        app.marking.add_marks(str(file))
        assert app.store.now.marks == marks and "0 new" in message(app)
        with pytest.raises(Refusal):
            app.marking.add_marks(str(tmp_path / "nothing"))
    _file(trace, "marks").unlink()
    assert import_marks(trace, file) == 2 and read_marks(_file(trace, "marks")) == marks
    assert import_marks(trace, file) == 0
    async with open_viewer(trace) as (app, _):
        assert app.store.now.marks == marks
    with pytest.raises(TracelaneError):
        import_marks(trace, tmp_path / "nothing")


def test_marks_outlive_the_index(trace: Trace, tmp_path: Path) -> None:
    """Indexed again, a trace has the marks that it had."""
    write_marks(_file(trace, "marks"), [Mark(1, 2, "x")])
    trace.close()
    again = open_trace(small_file(tmp_path), IndexOptions(tmp_path / "index", force=True))
    assert read_marks(_file(again, "marks")) == (Mark(1, 2, "x"),)


@pytest.mark.slow
async def test_places_by_name_and_number(trace: Trace) -> None:
    """g goes to a mark by its text and to an event by its number, and says which there are not."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await pilot.press("home", "v", "right", "right", "v")
        app.run_command("mark-text")
        await pilot.pause()
        await pilot.press(*"start", "enter", "escape", "end")
        first = app.store.now.marks[0]
        for text, said in (
            ("mark:nowhere", "there are start"),
            ("#999999", "not drawn"),
            ("#0", "not drawn"),
        ):
            await pilot.press("g", *text, "enter")
            assert said in message(app), text
        await pilot.press("g", *"mark:Start", "enter")
        assert app.session.range == (first.start, first.end)
        slices = {event["name"]: n for n, event in enumerate(events()) if event["ph"] in "Xi"}
        for name, kind in (("launch", SliceId), ("mark\x1b[31m", InstantId)):
            await pilot.press("g", *f"#{slices[name]}", "enter")
            assert app.session.selection == kind(0, slices[name])
    named_ranges = time_frame(trace).marks
    assert [text for text, _, _ in named_ranges] == ["start"]
    assert parse_span("mark:start", time_frame(trace)) == (first.start, first.end)


async def test_the_ruler_tells_the_distance(trace: Trace) -> None:
    """How far the cursor is from the mark set last stands on the ruler, with its sign."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await pilot.press("home")
        app.run_command("mark-text")
        await pilot.pause()
        await pilot.press(*"here", "enter", "right")
        ns = app.session.cursor - app.store.now.marks[0].start
        assert f"◆ here +{format_ns(ns)}" in screen_text(app)
        app.store.show(app.session._replace(cursor=app.session.cursor - 2 * ns))
        await pilot.pause()
        assert f"◆ here -{format_ns(ns)}" in screen_text(app)
