"""A damaged index is never shown as right: it is built again, or said to be damaged."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.text import Text

from tests.corpus import later
from tests.fuzz.index_damage import (
    COMMANDS,
    UNEXPECTED,
    Answer,
    fuzz,
    index_folder,
    judged,
    run,
    sealed_again,
    write_trace,
)
from tests.tui.driver import wait_until as wait_in_viewer
from tests.tui.small_file import small_file
from tests.waiting import wait_until
from tracelane.core.base.errors import CacheError, DamagedIndexError
from tracelane.core.index.format import TABLES
from tracelane.core.index.store import Index, Verification, table_file
from tracelane.core.index.version import MANIFEST
from tracelane.core.trace import open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.view_state import Reopen

KERNELS = ("kernels", "--format", "json")
SLICES = ("slices", "--format", "csv")
CHAINS = ("chain", "--name", "kernel|gemm|copy", "--all", "--json")
PICTURE = ("view", "--width", "120", "--height", "40")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace and its index."""
    folder = tmp_path_factory.mktemp("pristine")
    open_trace(write_trace(folder / "trace.json"), index_dir=folder / "index")
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """The same, to be damaged."""
    shutil.copytree(pristine, tmp_path / "x", copy_function=shutil.copy2)
    return tmp_path / "x"


def answer(command: tuple[str, ...], folder: Path) -> Answer:
    return run(command, folder / "trace.json", folder / "index")


def flip(path: Path, at: int = 2, bits: int = 0xFF) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("slices.duration.u4", KERNELS),
        ("slices.start.i8", SLICES),
        ("slices.name.u4", SLICES),
        ("strings.blob.u1", SLICES),
        ("rows.table", SLICES),
        ("slices.parent.u4", CHAINS),
        ("long.position.u4", CHAINS),
        (MANIFEST, KERNELS),
    ],
)
def test_a_flipped_byte_changes_no_number(folder: Path, name: str, command: tuple[str, ...]) -> None:
    """A command prints what it prints of the undamaged index, and says in one line that it was rebuilt."""
    before = answer(command, folder)
    assert before.code == 0 and not before.err
    flip(index_folder(folder / "index") / name)
    now = answer(command, folder)
    assert (now.code, now.out) == (0, before.out)
    assert "rebuilt" in now.err and len(now.err.splitlines()) == 1
    assert answer(command, folder) == Answer(0, before.out, "", seconds=pytest.approx(0, abs=1e9))


@pytest.mark.parametrize("how", ["pipe", "link", "folder", "gone", "empty"])
def test_what_is_no_file_is_not_read(folder: Path, how: str) -> None:
    """A pipe in the place of a column is not waited for, a link not followed."""
    before = answer(KERNELS, folder)
    path = index_folder(folder / "index") / "slices.name.u4"
    elsewhere = shutil.copy(path, folder / "elsewhere")
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        path.symlink_to(elsewhere)
    elif how == "folder":
        path.mkdir()
    elif how == "empty":
        path.touch()
    now = answer(KERNELS, folder)
    assert (now.code, now.out) == (0, before.out) and "is rebuilt" in now.err


def test_an_index_of_another_trace_is_not_taken(folder: Path) -> None:
    """An index that was put in the place of another's is known by the trace it was made of."""
    before = answer(SLICES, folder)
    own = index_folder(folder / "index")
    (folder / "other.json").write_text(
        json.dumps([{"ph": "X", "name": "x", "pid": 1, "ts": 1, "dur": 2}]), encoding="utf-8"
    )
    other = open_trace(folder / "other.json", index_dir=folder / "others").indexes[0].folder
    shutil.rmtree(own)
    shutil.copytree(other, own)
    now = answer(SLICES, folder)
    assert now.out == before.out and "that of another file" in now.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("slices.name.u4", 10**6),
        ("slices.category.u1", 255),
        ("slices.parent.u4", 10**6),
        ("slices.parent.u4", 5),
        ("flows.source.u4", 10**6),
        ("flows.by_target.u4", 10**6),
        ("pyramid.longest.u4", 10**6),
        ("row_categories.u4", 99),
        ("blocks.count.u4", 10**9),
        ("blocks.ordinal.u4", 10**6),
        ("strings.offset.i8", -5),
        ("promoted.correlation.position.u4", 10**7),
        ("flows.source_ordinal.u4", 0xFFFFFFFF),
        ("flows.target_ordinal.u4", 0xFFFFFFFF),
    ],
)
def test_numbers_out_of_bounds_are_damage(folder: Path, column: str, value: int) -> None:
    """Also where every checksum fits, a number that leads nowhere is found before it is used."""
    name, _, dtype = column.rpartition(".")
    path = index_folder(folder / "index")
    values = np.fromfile(path / column, dtype)
    values[0] = value
    values.tofile(path / column)
    sealed_again(path)
    with pytest.raises(DamagedIndexError, match=rf"{name.split('.')[0]}"):
        index = Index.open(path)
        index.column(name)
        index.column("blocks.length")


@pytest.mark.slow
@pytest.mark.parametrize("most", [10, later(30)])
def test_damage_at_random(most: int, tmp_path: Path) -> None:
    """Whatever is damaged or crafted, each command answers as before or with one clear line."""
    findings = fuzz(600, 12, tmp_path, most=most)
    assert not findings.wrong
    assert findings.cases == 3 * most


def test_every_command_is_tried(folder: Path) -> None:
    """None of the fuzzer's commands is refused as such: each could tell a difference."""
    for command in COMMANDS:
        now = answer(command, folder)
        assert now.code in (0, 1) and UNEXPECTED not in now.err, command
        assert now.out or now.written, command
    assert judged(answer(KERNELS, folder), answer(SLICES, folder), crafted=False)


# -- in the viewer ------------------------------------------------------------------------------------------


def behind(app: TracelaneApp) -> TracelaneApp:
    """Have columns of any size checked while they are drawn."""
    app.reloading.verification = Verification(app.reloading._verified, least_bytes=1)
    app.reloading.verification.attach(app.trace.indexes)
    return app


async def test_damage_is_found_behind_the_picture(tmp_path: Path) -> None:
    """The viewer leaves to open the trace anew: the damaged index is gone, the view is kept."""
    path = small_file(tmp_path)
    index = open_trace(path, index_dir=tmp_path / "index").indexes[0]
    flip(index.folder / "flows.by_target.u4", 0, 1)  # which no picture needs
    app = behind(TracelaneApp(open_trace(path, index_dir=tmp_path / "index")))
    async with app.run_test() as pilot:
        await wait_in_viewer(pilot, lambda: app.return_value is not None, "the damage to be found")
    assert isinstance(app.return_value, Reopen)
    assert "flows.by_target does not match its checksum" in str(app.return_value.damage)
    assert not index.folder.exists()


async def test_the_header_says_unverified_until_all_is_checked(tmp_path: Path) -> None:
    """While columns are drawn that were not checked yet, the header says so, and then no more."""
    app = behind(TracelaneApp(open_trace(small_file(tmp_path), index_dir=tmp_path / "index")))
    app.reloading.verification._running = True  # a check that goes on
    async with app.run_test() as pilot:
        await pilot.pause()
        app.drawing.fill_header()
        assert any("unverified" in piece.plain for piece in header(app))
        app.reloading.verification._running = False
        app.reloading.verification_changed()
        assert not any("unverified" in piece.plain for piece in header(app))


def header(app: TracelaneApp) -> tuple[Text, ...]:
    from tracelane.tui.widgets.bars import Bar

    return app.main.query_one("#header", Bar).pieces


def test_waiting_for_a_verification(tmp_path: Path) -> None:
    """Whoever waits hears of damage; a sound index is passed in silence."""
    path = small_file(tmp_path)
    index = open_trace(path, index_dir=tmp_path / "index").indexes[0]
    reports: list[int] = []
    verification = Verification(lambda: reports.append(1), least_bytes=1)
    verification.attach([index])
    index.column("slices.ordinal")
    verification.wait()
    wait_until(lambda: bool(reports), "the end of the check")
    flip(index.folder / "slices.self.u4", 0, 1)
    index.column("slices.self")
    with pytest.raises(DamagedIndexError):
        verification.wait()
    with pytest.raises(CacheError):
        Index.open(tmp_path / "nothing")


def test_a_count_that_is_none_is_damage(folder: Path) -> None:
    """A crafted index whose report holds an object in place of a number is rebuilt."""
    path = index_folder(folder / "index")
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    manifest["read_report"]["instant_events"] = {"a": 1}
    (path / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    sealed_again(path)
    now = answer(PICTURE, folder)
    assert now.code == 0 and "rebuilt" in now.out + now.err


@pytest.mark.parametrize(
    "change", [{"kind": 1}, {"message": None}, {"count": "1"}, {"offset": "5"}], ids=lambda one: str(*one)
)
def test_a_problem_that_is_none_is_damage(change: dict[str, object], folder: Path) -> None:
    """A crafted index whose problems are not of their types is rebuilt; one that has them is not."""
    path = index_folder(folder / "index")
    sound = {"kind": "repaired", "message": "a value", "count": 1, "offset": None}
    for problem, is_rebuilt in ((sound, False), (sound | change, True)):
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        (path / MANIFEST).write_text(json.dumps(manifest | {"problems": [problem]}), encoding="utf-8")
        sealed_again(path)
        now = answer(PICTURE, folder)
        assert now.code == 0 and ("rebuilt" in now.out + now.err) == is_rebuilt, problem


@pytest.mark.parametrize("names", [("oversized",), ("counts",), ("flows", "ac2g", "paired")], ids=".".join)
def test_a_count_that_is_missing_is_damage(names: tuple[str, ...], folder: Path) -> None:
    """A crafted index whose report lacks a number is rebuilt, whichever command would have read it."""
    index = index_folder(folder / "index")
    manifest = json.loads((index / MANIFEST).read_text(encoding="utf-8"))
    report = manifest["read_report"]
    for name in names[:-1]:
        report = report[name]
    del report[names[-1]]
    (index / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    sealed_again(index)
    now = answer(PICTURE, folder)
    assert now.code == 0 and "rebuilt" in now.out + now.err


def test_categories_that_a_row_does_not_list_are_drawn(folder: Path) -> None:
    """A crafted index whose slices have categories that their rows do not list is drawn without an error."""
    path = index_folder(folder / "index")
    (column,) = path.glob("slices.category.*")
    column.write_bytes(column.read_bytes()[::-1])
    sealed_again(path)
    now = answer(PICTURE, folder)
    assert now.code == 0 and UNEXPECTED not in now.err


@pytest.mark.parametrize("depth", [0, 1, 4, 1000, 0xFFFFFFFF])
def test_a_depth_that_the_rows_do_not_have_is_drawn(folder: Path, depth: int) -> None:
    """A crafted index whose lanes are said to have other rows than there are is drawn all the same."""
    index = index_folder(folder / "index")
    lanes = np.fromfile(index / table_file("lanes"), TABLES["lanes"])
    lanes["depth"] = depth
    lanes.tofile(index / table_file("lanes"))
    sealed_again(index)
    now = answer(PICTURE, folder)
    assert now.code == 0 and UNEXPECTED not in now.err


def test_rows_that_share_a_list_are_damage(folder: Path) -> None:
    """Where a row's part of a list reaches over the end of another's, its numbers do not ascend."""
    index = index_folder(folder / "index")
    values = np.fromfile(index / "row_categories.u4", np.uint32)
    rows = np.fromfile(index / table_file("rows"), TABLES["rows"])
    several = rows[rows["category_count"] > 1]
    falls = np.flatnonzero(values[1:] <= values[:-1])
    several["categories"][0] = falls[falls + several["category_count"][0] <= len(values)][0]
    rows[rows["category_count"] > 1] = several
    rows.tofile(index / table_file("rows"))
    sealed_again(index)
    with pytest.raises(DamagedIndexError, match="row_categories"):
        Index.open(index).column("row_categories")
