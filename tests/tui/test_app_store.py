"""The picture of a capture store in the viewer: keys group its ranks, open one, and read all again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rank_files import rank_file
from tests.remote.servers import bucket, web_server
from tests.store.test_store_tables import store_of
from tests.tui.cli_process import on_terminal
from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tracelane.core.store.opened import open_store
from tracelane.core.store.picture import picture_of_store
from tracelane.core.trace import Trace
from tracelane.tui.view_state import GroupRanks, OpenRank, Reopen

RANKS = 4


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Ranks whose files tell tensor parallel pairs; the last one is late to every collective."""
    folder = tmp_path / "traces"
    for rank in range(RANKS):
        path = rank_file(folder, rank, RANKS)
        text = json.loads(path.read_text(encoding="utf-8"))
        pair = [rank // 2 * 2, rank // 2 * 2 + 1]
        text["distributedInfo"]["pg_config"] = [{"pg_name": "1", "pg_desc": "mesh_tp", "ranks": pair}]
        for event in text["traceEvents"]:
            if "nccl" in event["name"] and rank == RANKS - 1:
                event["ts"], event["dur"] = event["ts"] + 200, event["dur"] - 200
        path.write_text(json.dumps(text), encoding="utf-8")
    return folder


@pytest.fixture
def store(traces: Path, tmp_path: Path) -> Path:
    """Their store."""
    return store_of(traces, tmp_path / "store")


@pytest.fixture
def picture(store: Path) -> Trace:
    """Its picture."""
    return picture_of_store(open_store(str(store)))


@pytest.mark.slow
async def test_keys_group_the_ranks_anew(picture: Trace) -> None:
    """The palette finds the command by any of its words; the chosen layout is what is drawn next."""
    async with open_viewer(picture, size=(100, 40)) as (app, pilot):
        await press_keys(app, pilot, "ctrl+p", *"tensor", "enter")
        assert "data parallel" in screen_text(app)
        await press_keys(app, pilot, "down", "enter")
        assert app.return_value == GroupRanks("tp")
    async with open_viewer(picture, size=(100, 40)) as (app, pilot):
        await press_keys(app, pilot, ":", *"rank-groups", "enter")
        await press_keys(app, pilot, "escape")
        assert app.return_value is None


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3, 4], ids=["ranks", "slowest by step", "heat map"])
async def test_enter_on_a_row_of_a_table_opens_its_rank(picture: Trace, times: int) -> None:
    """The rank that the others wait for stands first in the ranks and in each step."""
    async with open_viewer(picture, size=(160, 45)) as (app, pilot):
        await press_keys(app, pilot, *["9"] * times)
        if times == 4:
            assert "....................  " in screen_text(app) and "99999999999999999999" in screen_text(app)
            await pilot.press("down", "down", "down", "enter")
        else:
            await pilot.press("enter")
        await wait_until_idle(app, pilot)
        assert app.return_value == OpenRank(RANKS - 1)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["t", "3", "6", "7"])
async def test_a_table_that_summaries_cannot_answer_says_so(picture: Trace, key: str) -> None:
    """The panel says that it needs traces; nothing is counted for good, and nothing is said elsewhere."""
    async with open_viewer(picture, size=(100, 40)) as (app, pilot):
        await press_keys(app, pilot, key)
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "needs traces" in text and "counting" not in text and "needs" not in message(app)


async def test_the_picture_is_drawn_anew_from_what_lies_in_the_store(picture: Trace) -> None:
    """`:reload` leaves to open the store again: another shard may have written to it meanwhile."""
    async with open_viewer(picture) as (app, pilot):
        await press_keys(app, pilot, ":", *"reload", "enter")
        assert app.return_value == Reopen() and "pipe" not in message(app)


OPENED = "rank3.json"


def opens_a_rank(store: str, *options: str) -> None:
    """Open the rank that the others wait for from the table of ranks, on a terminal, and come back."""
    play = (
        ("Nothing selected", "9"),
        ("Came last", "\r"),
        ("thread 50", "q"),
        ("steps of rank 0", "q"),
    )
    assert on_terminal(store, "--fresh", *options, play=play, size=(140, 50)).code == 0


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("where", ["named", "beside"])
def test_a_rank_opens_from_a_table_over_a_terminal(store: Path, traces: Path, where: str) -> None:
    """Its trace lies where it was collected, or in the folder of --traces."""
    if where == "named":
        opens_a_rank(str(store), "--traces", str(traces.rename(traces.with_name("moved"))))
    else:
        opens_a_rank(str(store))


@pytest.mark.slow
def test_a_rank_opens_whose_trace_is_on_a_web_server(store: Path, traces: Path) -> None:
    """The store is here, its traces by URL: only the file of that rank is read."""
    with web_server(traces) as (url, sent):
        opens_a_rank(str(store), "--traces", url)
    assert set(sent) == {OPENED}


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["beside", "indexes"])
def test_a_rank_opens_from_a_bucket(
    traces: Path, tmp_path: Path, layout: str, collected_into: Callable[..., None]
) -> None:
    """Store and traces lie in one bucket; or the traces are gone and the store has the indexes."""
    with bucket() as url:
        import s3fs

        system = s3fs.S3FileSystem()
        system.put(str(traces), "traces/run", recursive=True)
        collected_into(f"{url}/run/", f"{url}/store", with_index=layout == "indexes")
        if layout == "indexes":
            system.rm("traces/run", recursive=True)
        opens_a_rank(f"{url}/store")


@pytest.fixture
def collected_into() -> Callable[..., None]:
    """Collects traces into a store in this process."""
    from tracelane.core.store.collect import collect, one_after_another, planned

    def run(traces: str, store: str, *, with_index: bool) -> None:
        list(collect(planned([traces], store, with_index=with_index), store, one_after_another))

    return run
