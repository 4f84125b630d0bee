"""Ranks in the viewer: heads, a line each where there are many, the panel, the switch of their clocks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs
from tests.events import complete
from tests.tui.cli_process import on_terminal
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tracelane.core.demo.trace import write_demo
from tracelane.core.query.filter import parse
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import matches
from tracelane.tui.actions.lanes import hidden_things, hide_matching
from tracelane.tui.actions.scene import Refusal
from tracelane.tui.cli.main import main
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import LineKind
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.session import Session, Viewport
from tracelane.tui.session_store import SessionStore, ViewerState
from tracelane.tui.view_state import OpenCapture

DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
US = 1000


def write(folder: Path, ranks: int, late_us: float = 0) -> Trace:
    """Return ranks of a host lane and a stream; each rank's clock is `late_us` behind the one before."""
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        at = 100 - late_us * rank
        events: list[dict[str, Any]] = [
            complete(at + 1000 * n, 900, "ProfilerStep#1", "user_annotation", pid=50 + rank) for n in range(2)
        ]
        events += [complete(at + 1000 * n, 500, REDUCE, "kernel", pid=rank, tid=7) for n in range(2)]
        info = {"rank": rank, "world_size": ranks}
        text = json.dumps({"distributedInfo": info, "host_name": f"pod-{rank}", "traceEvents": events})
        (folder / f"rank{rank}.json").write_text(text, encoding="utf-8")
    return open_trace(folder)


def lines(trace: Trace, **session: Any) -> list[tuple[LineKind, str, bool]]:
    layout = Layout(trace, Session(Viewport(*trace.span, 100), 0, **session))
    return [(line.kind, line.title, line.folded) for line in layout.lines(0, layout.height)]


@pytest.mark.parametrize("ranks", [2, 3, 9])
def test_ranks_start_as_a_line_each(tmp_path: Path, ranks: int) -> None:
    """Ranks open as one line each, in order; one that is opened has a line for each process, lane and row."""
    trace = write(tmp_path, ranks)
    heads = [(title, is_folded) for _, title, is_folded in lines(trace)]
    assert heads == [(f"rank {n} · pod-{n} · 2 lanes", True) for n in range(ranks)]
    assert len(lines(trace, unfolded=frozenset({(1, "")}))) == ranks - 1 + 5
    one = lines(trace, unfolded=frozenset({(1, "")}), folded=frozenset({(0, "")}))
    assert [is_folded for _, title, is_folded in one if title.startswith(("rank 0", "rank 1"))] == [
        True,
        False,
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_rank_keeps_its_number(width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However narrow the titles are, they say which rank it is; what its host is called gives way."""
    paths = map(str, write_demo(tmp_path)[:2])
    assert main([*paths, "--width", str(width), "--index-dir", str(tmp_path / "index")]) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = [line.partition("│")[0] for line in lines if "│" in line]
    assert [title[2:8] for title in titles if "rank" in title] == ["rank 0", "rank 1"]


@needs(CORPUS)
@pytest.mark.slow
async def test_an_open_rank_leaves_room_for_the_others(corpus_cache: Path) -> None:
    """On a low screen the host of a rank that is opened stays one line, so that all ranks are seen."""
    async with open_viewer(open_trace(DLRM, index_dir=corpus_cache), (80, 24)) as (app, pilot):
        await pilot.press("home", "space")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "▾ rank 0" in text and "stream 84" in text
        assert all(f"▸ rank {number}" in text for number in (1, 2, 3)) and app.session.host_rows == 0
        assert "ProfilerStep" not in text
        await pilot.press("u")
        await wait_until_idle(app, pilot)
        assert "▸ rank 0" in screen_text(app) and app.session.host_rows > 0


async def test_a_change_is_fitted_before_it_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that is opened is one change, with the rows it leaves the others; none is made while drawing."""
    depth, seen = 0, list[tuple[int, bool, int]]()
    dispatch = SessionStore.dispatch

    def noted(store: SessionStore, state: ViewerState) -> None:
        nonlocal depth
        depth += 1
        dispatch(store, state)
        seen.append((depth, bool(store.session.unfolded), store.session.host_rows))
        depth -= 1

    async with open_viewer(write(tmp_path, 9), (80, 18)) as (app, pilot):
        monkeypatch.setattr(SessionStore, "dispatch", noted)
        closed = app.session.host_rows
        for key in ("home", "space", "space", "d", "u"):
            await pilot.press(key)
            await wait_until_idle(app, pilot)
        assert {nested for nested, _, _ in seen} == {1}
        assert closed and {rows for _, is_open, rows in seen if is_open} == {0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("only", "ranks"),
    [
        ("rank 1", [1]),
        ("RANK 10 · pod-10", [10]),
        ("rank (0|1)", [0, 1]),
        ("rank .*0", [0, 10]),
        ("rank", list(range(11))),
    ],
)
def test_only_knows_the_title_of_a_rank(tmp_path: Path, only: str, ranks: list[int]) -> None:
    """A rank's title, whole words of it, keeps all its lanes, and no rank whose number only begins alike."""
    trace = write(tmp_path, 11)
    numbers = [
        int(title.split()[1]) for kind, title, _ in lines(trace, only=only) if title.startswith("rank ")
    ]
    threads = [title for kind, title, _ in lines(trace, only=only) if title == "thread 1"]
    assert (numbers, len(threads)) == (ranks, len(ranks))
    hits = matches(trace, parse(f"lane:/{only}/i"), trace.clocks)
    assert [len(positions) for positions in hits.positions] == [4 * (rank in ranks) for rank in range(11)]


def test_a_rank_is_hidden_by_its_title(tmp_path: Path) -> None:
    """`:hide rank 1` hides that rank as `x` on its line does; hiding all of them is refused."""
    trace = write(tmp_path, 3)
    session = Session(Viewport(*trace.span, 100), 0)
    hidden = hide_matching(trace, session, "rank 1", 40)
    assert hidden.hidden_processes == {(1, "")}
    assert hidden_things(trace, hidden)[0].title.startswith("rank 1")
    with pytest.raises(Refusal, match="every lane"):
        hide_matching(trace, session, "rank", 40)


def test_a_part_of_a_word_is_no_rank(tmp_path: Path) -> None:
    """A number that is in titles of streams and in those of ranks means the streams."""
    trace = write(tmp_path, 3)
    assert [len(positions) for positions in matches(trace, parse("lane:7"), trace.clocks).positions] == [
        2,
        2,
        2,
    ]
    assert not matches(trace, parse("lane:0"), trace.clocks).count


def test_tables_and_filters_know_the_title_of_a_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--lanes`, `lane:` and its opposite keep or leave out a rank as a whole."""
    write(tmp_path, 3)
    for option, expected in (
        (("--lanes", "rank 1"), {"rank1.json"}),
        (("--where", "lane:'rank 1'"), {"rank1.json"}),
        (("--where", "-lane:'Rank 1' cat:kernel"), {"rank0.json", "rank2.json"}),
    ):
        assert main(["slices", str(tmp_path), "--format", "json", *option]) == 0
        rows = json.loads(capsys.readouterr().out)["tables"]["slices"]["rows"]
        assert {Path(row["source"]).name for row in rows} == expected
        assert {row["category"] for row in rows} >= {"kernel"}


def test_a_file_alone_has_no_head(tmp_path: Path) -> None:
    """A single rank, or files that tell none, are laid out as they always were."""
    write(tmp_path, 2)
    assert not any("rank" in title for _, title, _ in lines(open_trace(tmp_path / "rank1.json")))


@pytest.mark.slow
async def test_what_is_selected_in_a_folded_rank_comes_in_sight(tmp_path: Path) -> None:
    """Selecting a slice of a folded rank opens it; a rank is hidden and shown again as a process is."""
    trace = write(tmp_path, 6)
    async with open_viewer(trace) as (app, pilot):
        thing = thing_by_id(trace, app.session.clocks, SliceId(4, 2))
        assert thing is not None
        app.store.select(thing)
        await pilot.pause()
        assert "▾ rank 4 · pod-4" in screen_text(app) and "nccl" in screen_text(app)
        app.store.show(Session(app.session.viewport, app.session.cursor, clocks=app.session.clocks))
        app.run_command("hide")
        await pilot.pause()
        assert message(app) == "rank 0 · pod-0 · 2 lanes is hidden: u undoes it"
        app.say("")
        await pilot.pause()
        assert "rank 0 · pod-0" not in screen_text(app)
        app.run_command("hidden")
        await pilot.pause()
        await pilot.pause()
        assert "rank 0 · pod-0" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert "▸ rank 0" in screen_text(app)


async def test_the_ranks_clocks_are_switched(tmp_path: Path) -> None:
    """Ranks open aligned; the command takes that back and makes it again, and says so, and u undoes it."""
    trace = write(tmp_path, 2, late_us=30)
    async with open_viewer(trace) as (app, pilot):
        assert app.session.clocks.offset(1) == 30 * US
        app.run_command("rank-clocks")
        assert app.session.clocks.offset(1) == 0 and "as recorded" in message(app)
        app.run_command("rank-clocks")
        assert app.session.clocks.offset(1) == 30 * US and "2 collectives" in message(app)
        await pilot.press("u")
        assert app.session.clocks.offset(1) == 0
    alone = open_trace(tmp_path / "rank0.json")
    async with open_viewer(alone) as (app, pilot):
        app.run_command("rank-clocks")
        assert "not two ranks" in message(app)


@needs(CORPUS)
@pytest.mark.slow
async def test_the_panel_of_ranks(corpus_cache: Path) -> None:
    """9 shows the ranks, again their collectives and the steps; Enter goes to the slice behind a row."""
    trace = open_trace(DLRM, index_dir=corpus_cache)
    async with open_viewer(trace, size=(160, 45)) as (app, pilot):
        await pilot.press("9")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "Came last" in text and "16.415 ms" in text
        await pilot.press("9")
        await wait_until_idle(app, pilot)
        assert "all_to_all" in screen_text(app) and "7.116 ms" in screen_text(app)
        await pilot.press("enter")
        await wait_until_idle(app, pilot)
        assert app.session.selection is not None and app.session.selection.source == 2
        await pilot.press("1")
        await wait_until_idle(app, pilot)
        assert re.search(r"rank +2\b", screen_text(app))
        await pilot.press("tab", "9", "9", "9")
        await wait_until_idle(app, pilot)
        assert "Slowest rank" in screen_text(app) and "12.994 ms" in screen_text(app)
        app.run_command("panel-findings")
        app.action_panel("problems")
        await wait_until_idle(app, pilot)
        assert "missing: ranks 4-7 of 8" in screen_text(app) and "residual 500 ns" in screen_text(app)


def two_captures(folder: Path) -> None:
    folder.mkdir()
    for second in (1_700_000_000, 1_700_009_000):
        for rank in (0, 1):
            text = json.dumps({"traceEvents": [complete(1, 900, f"op_{second}", pid=5)]})
            (folder / f"rank{rank}.{second}.json").write_text(text, encoding="utf-8")


@pytest.mark.slow
async def test_captures_are_listed(tmp_path: Path) -> None:
    """The captures that lie together are listed, the one shown marked; choosing another asks for it."""
    two_captures(tmp_path / "run")
    async with open_viewer(open_trace(tmp_path / "run")) as (app, pilot):
        app.run_command("captures")
        await pilot.pause()
        text = screen_text(app)
        assert "2023-11-15 00:43:20 UTC" in text and "2023-11-14 22:13:20 UTC" in text and "0-1" in text
        await pilot.press("down", "enter")
        await pilot.pause()
    assert app.return_value == OpenCapture(2)
    async with open_viewer(open_trace(sorted((tmp_path / "run").glob("*.1700000000.json")))) as (app, pilot):
        app.run_command("captures")
        assert "no other capture" in message(app) and app.return_value is None


@pytest.mark.slow
def test_another_capture_opens_on_a_terminal(tmp_path: Path) -> None:
    """Choosing the older capture closes the newer one's view and opens its own."""
    two_captures(tmp_path / "run")
    played = on_terminal(
        str(tmp_path / "run"),
        play=(
            ("1700009000", ":"),
            ("only REGEX", "captures\r"),
            ("22:13:20", "\x1b[B\r"),
            ("1700000000", "q"),
        ),
    )
    assert played.code == 0
