"""A store whose traces lack what the other side recorded is compared no more than the traces are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.test_comparable import (
    CANNOT_COMPARE,
    DAMAGES,
    OK,
    PROGRAMS,
    jittered,
    takes_away,
    text_of,
)
from tests.events import Event
from tests.store.test_store_tables import store_of
from tracelane.core.base.errors import UnreadableError
from tracelane.core.store.collect import collect, one_after_another, planned
from tracelane.core.store.opened import open_store
from tracelane.core.store.tables import recorded_of_store
from tracelane.core.tables.compare.comparable import recorded
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

Write = Callable[[list[Event], Event], str]


def _ranks(folder: Path, events: list[Event], last: Write) -> Path:
    """Write three ranks, the last one by a function of its own."""
    folder.mkdir(parents=True)
    for rank in range(3):
        write = last if rank == 2 else text_of
        more = {"distributedInfo": {"rank": rank, "world_size": 3}}
        (folder / f"rank{rank}.json").write_text(write(events, more), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Of each program the store and the traces of three ranks that lack nothing."""
    sides = {}
    for number, program in enumerate(PROGRAMS):
        folder = tmp_path_factory.mktemp(f"whole-{number}")
        traces = _ranks(folder / "whole", PROGRAMS[program], text_of)
        sides[program] = store_of(traces, folder / "whole.store"), traces
    return sides


def _lacks_the_same(store: Path, traces: Path, index: Path) -> bool:
    """Tell whether a store says that it lacks what its traces do."""
    return recorded_of_store(open_store(str(store))) == recorded(Scope(open_trace(traces, index_dir=index)))


def _gate(before: Path, now: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["diff", str(before), str(now), "--fail-above", "5%"])
    out, err = capsys.readouterr()
    return code, out + err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "damage"),
    [(name, damage) for name in PROGRAMS for damage in DAMAGES if takes_away(damage, PROGRAMS[name])],
)
def test_a_loss_of_a_rank_in_a_store_is_no_gain(
    program: str,
    damage: str,
    whole: dict[str, tuple[Path, Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each damage of one rank ends with exit code 3 on either side, as for traces, and a store says that it
    lacks the same as its traces do.
    """
    store, traces = whole[program]
    lacking = _ranks(tmp_path / "less", PROGRAMS[program], DAMAGES[damage])
    less = store_of(lacking, tmp_path / "less.store")
    assert _lacks_the_same(less, lacking, tmp_path / "index")
    for before, now in ((store, less), (less, store), (traces, less), (less, traces)):
        code, text = _gate(before, now, capsys)
        assert code == CANNOT_COMPARE and "cannot be compared" in text and "faster" not in text, text


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_store_that_lacks_nothing_says_so(
    program: str, whole: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    """What a store of whole traces says to comparisons equals what the traces say."""
    assert _lacks_the_same(*whole[program], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("write", [text_of, jittered])
def test_stores_that_lack_nothing_are_compared(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies, and what differs by up to 2 %, end with exit code 0."""
    events = PROGRAMS["two devices"]
    before, now = (
        store_of(_ranks(tmp_path / name, events, last), tmp_path / f"{name}.store")
        for name, last in (("before", text_of), ("now", write))
    )
    code, text = _gate(before, now, capsys)
    assert code == OK and "cannot be compared" not in text, text


def test_a_rank_that_could_not_be_read_is_missed(tmp_path: Path) -> None:
    """A store without one of its ranks says so to comparisons."""
    traces = _ranks(tmp_path / "traces", PROGRAMS["one device"], lambda events, more: "no trace")
    store = tmp_path / "store"
    named = sorted(str(path) for path in traces.iterdir())  # what is no trace in a folder belongs to nobody
    list(collect(planned(named, str(store)), str(store), one_after_another))
    (lack,) = recorded_of_store(open_store(str(store))).lacks
    assert lack.need == "all" and "1 of 3 files" in lack.text


def test_a_store_that_says_nothing_of_it_is_damaged(tmp_path: Path) -> None:
    """What a rank lacks is never taken for nothing."""
    store = open_store(str(store_of(_ranks(tmp_path / "t", PROGRAMS["one device"], text_of), tmp_path / "s")))
    for facts in ({"lacks": [["lost", "nobody", 1, 1]]}, {"lacks": None}, {"working_devices": None}):
        known = store.ranks[0].facts
        assert isinstance(known, dict)
        whole = dict(known)
        known.update(facts)
        with pytest.raises(UnreadableError, match="lacks"):
            recorded_of_store(store)
        known.update(whole)
