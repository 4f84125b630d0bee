"""Collecting ranks into a store: the same bytes whoever collects, only what is missing, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import in_turn
from tests.rank_files import rank_file, rank_files
from tests.remote.servers import bucket
from tests.tui.cli_process import PROGRAM, tracelane, tracelane_here
from tests.tui.test_folders import FOREIGN, NAMES
from tests.waiting import PATIENCE_S
from tracelane.core.store.collect import collect, one_after_another, planned

RANKS = 5
Files = dict[str, bytes]


def files_of(store: Path) -> Files:
    """Return the files of a store by relative name."""
    return {
        str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()
    }


def collected(traces: Path | str, store: Path | str, *options: str, code: int = 0) -> str:
    """Run `collect` and return what it says."""
    done = tracelane_here("collect", str(traces), "-o", str(store), *options)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Ranks of which each has the clock of the one before, 5 µs behind."""
    return rank_files(tmp_path / "traces", RANKS, late_us=5.0)


@pytest.fixture(scope="module")
def collected_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Ranks of which each has the clock of the one before, 5 µs behind; the store that one process makes."""
    folder = tmp_path_factory.mktemp("once")
    traces = rank_files(folder / "traces", RANKS, late_us=5.0)
    assert "5 ranks collected" in collected(traces, folder / "alone")
    return traces, folder / "alone"


@pytest.fixture
def alone(collected_once: tuple[Path, Path], traces: Path, tmp_path: Path) -> Files:
    """A copy of that store, and of those traces where this test has its own."""
    for path in collected_once[0].iterdir():
        shutil.copy2(path, traces)
    shutil.copytree(collected_once[1], tmp_path / "alone")
    return files_of(tmp_path / "alone")


@pytest.mark.slow
def test_shards_leave_the_bytes_of_one_process(traces: Path, tmp_path: Path, alone: Files) -> None:
    """In any order, one after another, and two of them at once."""
    for number in (2, 0, 1):
        collected(traces, tmp_path / "shards", "--shard", f"{number}/3")
    assert files_of(tmp_path / "shards") == alone
    both = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM.format(code=""),
                "collect",
                str(traces),
                "-o",
                str(tmp_path / "two"),
            ]
        )
        for _ in range(2)
    ]
    assert [process.wait(PATIENCE_S) for process in both] == [0, 0]
    assert files_of(tmp_path / "two") == alone


@pytest.mark.slow
def test_running_again_does_what_is_missing(traces: Path, tmp_path: Path, alone: Files) -> None:
    """A rank that came later, one whose trace changed, and one whose summary was lost are collected."""
    store = tmp_path / "alone"
    assert "0 ranks collected, 5 were there already" in collected(traces, store)
    assert files_of(store) == alone
    lost = next(store.glob("ranks/000002-*"))
    lost.unlink()
    assert "1 ranks collected, 4 were there already" in collected(traces, store)
    assert files_of(store) == alone
    rank_file(traces, RANKS, RANKS + 1)
    rank_file(traces, 1, RANKS + 1, begin_us=300.0)
    assert "2 ranks collected, 4 were there already" in collected(traces, store)
    assert len(list(store.glob("ranks/000001-*"))) == 1
    assert files_of(store) != alone


@pytest.mark.slow
def test_a_rank_that_cannot_be_read_is_named_until_it_can(traces: Path, tmp_path: Path) -> None:
    """Exit code 1 where it was named; the tables say it; once its file is sound the store is that of sound
    files.
    """
    broken = traces / "rank3.json"
    sound = broken.read_bytes()
    broken.write_bytes(b"\x00\x01\x02nothing" * 100)
    first, *others = sorted(map(str, traces.iterdir()))
    said = collected(first, tmp_path / "store", *others, code=1)
    assert (
        "rank3.json: is binary data" in said and "4 ranks collected" in said and "1 could not be read" in said
    )
    ranks = tracelane_here("ranks", str(tmp_path / "store"))
    assert ranks.returncode == 0
    assert "missing: rank 3" in ranks.stdout and "rank3.json could not be read" in ranks.stdout
    broken.write_bytes(sound)
    assert "1 ranks collected, 4 were there" in collected(traces, tmp_path / "store")
    collected(traces, tmp_path / "other")
    assert files_of(tmp_path / "store") == files_of(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "called"),
    [
        pytest.param(kind, called, id=f"{kind}-{called[0]}-{'newer' if called[1] else 'older'}")
        for kind, called in in_turn(FOREIGN, product(NAMES, (False, True)), 1)
    ],
)
def test_what_is_no_trace_is_skipped(
    kind: str, called: tuple[str, bool], collected_once: tuple[Path, Path], tmp_path: Path
) -> None:
    """A file beside the ranks that is no trace changes nothing but for one note, which names it, also where a
    summary of it is there from when it was one; alone it is refused.
    """
    name, newer = called
    traces = tmp_path / "traces"
    shutil.copytree(collected_once[0], traces)
    store, foreign = tmp_path / "store", traces / name
    foreign.write_bytes(FOREIGN[kind])
    os.utime(foreign, (4_000_000_000 if newer else 1,) * 2)
    said = collected(traces, store)
    assert [name in line for line in said.splitlines() if "skipped" in line] == [True]
    assert "5 ranks collected, 0 were there" in said and len(said.splitlines()) == 2
    assert files_of(store) == files_of(collected_once[1])
    alone = tmp_path / "alone"
    alone.mkdir()
    foreign.rename(alone / name)
    assert name in collected(alone, tmp_path / "none", code=2)
    if kind in ("pointer", "page", "empty", "binary"):
        assert "1 could not be read" in collected(alone / name, tmp_path / "named", code=1)


@pytest.mark.slow
def test_a_trace_that_is_one_no_more_leaves_the_store(
    collected_once: tuple[Path, Path], tmp_path: Path
) -> None:
    """The summary of a rank whose file has become a pointer is removed, from its group too."""
    traces, store = tmp_path / "traces", tmp_path / "store"
    shutil.copytree(collected_once[0], traces)
    rank_file(traces, RANKS, RANKS)
    assert "6 ranks collected" in collected(traces, store)
    (traces / f"rank{RANKS}.json").write_bytes(FOREIGN["pointer"])
    assert "0 ranks collected, 5 were there" in collected(traces, store)
    assert files_of(store) == files_of(collected_once[1])


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["groups", "ranks"])
def test_running_again_mends_what_is_damaged(traces: Path, tmp_path: Path, folder: str) -> None:
    """Wherever a group or a summary was changed: one that is needed and does not match is made anew."""
    store = tmp_path / "store"
    results = list(collect(planned([str(traces)], str(store)), str(store), one_after_another))
    assert len(results) == RANKS
    sound = files_of(store)
    path = sorted((store / folder).iterdir())[-1]
    data = path.read_bytes()
    for at in range(30, len(data), max(1, len(data) // 12)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        if folder == "ranks":
            next((store / "groups").iterdir()).unlink()  # which had a copy of it
        plan = planned([str(traces)], str(store))
        results = list(collect(plan, str(store), one_after_another))
        assert [result.name for result in results if result.is_new] == (
            [] if folder == "groups" else ["rank4.json"]
        )
        assert files_of(store) == sound


@pytest.mark.slow
def test_summaries_hold_no_place_time_or_maker(traces: Path, tmp_path: Path, alone: Files) -> None:
    """Traces in another folder, with other times: the same summaries."""
    moved = tmp_path / "elsewhere" / "traces"
    moved.parent.mkdir()
    traces.rename(moved)
    for path in moved.iterdir():
        os.utime(path, (1, 1))
    collected(moved, tmp_path / "elsewhere" / "store")
    assert files_of(tmp_path / "elsewhere" / "store") == alone


def test_a_summary_takes_a_hundredth_of_its_trace(traces: Path, alone: Files) -> None:
    """With its copy in a group 64 KB at most, or a hundredth of the trace."""
    sizes: dict[str, int] = {}
    for name, data in alone.items():
        sizes[name.split("/")[0]] = sizes.get(name.split("/")[0], 0) + len(data)
    assert sizes["ranks"] + sizes["groups"] <= RANKS * (64 << 10)


@pytest.mark.slow
def test_what_killed_workers_left_is_removed(traces: Path, tmp_path: Path) -> None:
    """Folders of processes that are no more; those of a living one stay."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, used = (tmp_path / f"tracelane-collect-{pid}-x" for pid in (gone.pid, os.getpid()))
    for folder in (left, used):
        folder.mkdir()
        (folder / "index").write_text("", encoding="utf-8")
    done = tracelane("collect", str(traces), "-o", str(tmp_path / "store"), TMPDIR=str(tmp_path))
    assert done.returncode == 0 and used.is_dir() and not left.exists()


USAGE: list[tuple[list[str], str]] = [
    (["--shard", "3/3"], "--shard 3/3"),
    (["--shard", "x"], "--shard x"),
    (["--shard", "0/2", "--cluster", "local:2"], "give one of them"),
    (["--cluster", "local:none"], "local:N"),
    (["--cluster", "somewhere"], "tcp://"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "says"), USAGE)
def test_options_without_a_meaning_are_refused(
    traces: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    """One line, exit code 64, and no store."""
    said = collected(traces, tmp_path / "store", *options, code=64)
    assert says in said and said.count("\n") == 1
    assert not (tmp_path / "store").exists()


def test_without_the_extra_a_line_says_what_to_install(traces: Path, tmp_path: Path) -> None:
    """`--cluster` names the extra."""
    code = "import sys; sys.modules['distributed'] = None"
    done = tracelane("collect", str(traces), "-o", str(tmp_path / "s"), "--cluster", "local:2", code=code)
    assert done.returncode == 64 and "pip install distributed" in done.stderr


@pytest.mark.slow
def test_a_bucket_is_a_store(traces: Path, tmp_path: Path, alone: Files) -> None:
    """Traces and store on object storage: the summaries of local files, and the same tables."""
    with bucket() as url:
        import s3fs

        s3fs.S3FileSystem().put(str(traces), "traces/traces", recursive=True)
        said = collected(f"{url}/traces/", f"{url}/store")
        assert "5 ranks collected" in said
        assert "0 ranks collected" in collected(f"{url}/traces/", f"{url}/store")
        local = json.loads(tracelane_here("ranks", str(tmp_path / "alone"), "--json").stdout)
        assert tables_of(local) == tables_of(
            json.loads(tracelane_here("ranks", f"{url}/store", "--json").stdout)
        )


def tables_of(answer: dict[str, Any]) -> object:
    """Return the tables of an answer."""
    return answer["tables"]
