"""A store from somebody else: whatever its files hold, every command answers or says in a line why not."""

from __future__ import annotations

import os
import random
import shutil
import traceback
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.rank_files import rank_files
from tests.tui.cli_process import tracelane_here
from tracelane.core.base.errors import TracelaneError
from tracelane.core.index.options import IndexOptions
from tracelane.core.store.collect import collect, one_after_another, planned
from tracelane.core.store.groups import MAX_PART, DamagedStoreError, PackedFile, packed
from tracelane.core.store.opened import open_store
from tracelane.core.store.picture import opened_rank, picture_of_store
from tracelane.core.store.tables import STORE_TABLES, store_tables, summary_of_store

ROUNDS = int(os.environ.get("STORE_DAMAGES", "20"))
RANKS = 3
SPARSE_BYTES = 1 << 40
MAX_MEMORY = 256 << 20
GROUPINGS = ("host", "tp", "pp", "dp")
Damage = Callable[[Path, random.Random], None]


def store_with_indexes(folder: Path, ranks: int = RANKS) -> Path:
    """Collect small ranks with their indexes."""
    folder.mkdir(exist_ok=True)
    traces, store = rank_files(folder / "traces", ranks), folder / "store"
    list(collect(planned([str(traces)], str(store), with_index=True), str(store), one_after_another))
    return store


def files_in(store: Path) -> list[Path]:
    plain = (path for path in store.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in plain if path.stat().st_size < SPARSE_BYTES)


# -- what is done to a store --------------------------------------------------------------------------------


def flip(store: Path, chance: random.Random) -> None:
    path = chance.choice(files_in(store))
    data = bytearray(path.read_bytes() or b"x")
    for _ in range(chance.choice((1, 1, 8, 100))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)


def truncate(store: Path, chance: random.Random) -> None:
    path = chance.choice(files_in(store))
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data) + 1)])


def extend(store: Path, chance: random.Random) -> None:
    with chance.choice(files_in(store)).open("ab") as file:
        file.truncate(SPARSE_BYTES)


def swap(store: Path, chance: random.Random) -> None:
    one, other = (chance.choice(files_in(store)) for _ in range(2))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def remove(store: Path, chance: random.Random) -> None:
    chance.choice(files_in(store)).unlink()


def link_file(store: Path, chance: random.Random) -> None:
    path = chance.choice(files_in(store))
    outside = store.parent / "outside"
    path.rename(outside)
    path.symlink_to(chance.choice((str(outside), "/dev/zero", "/etc/passwd", path.name)))


def link_folder(store: Path, chance: random.Random) -> None:
    folder = store / chance.choice(("ranks", "groups", "indexes"))
    if folder.is_dir() and not folder.is_symlink():
        folder.rename(store.parent / "folder")
        folder.symlink_to(store.parent / "folder")


def no_file(store: Path, chance: random.Random) -> None:
    path = chance.choice(files_in(store))
    path.unlink()
    if chance.random() < 0.5:
        os.mkfifo(path)
    else:
        path.mkdir()


def absurd_name(store: Path, chance: random.Random) -> None:
    path = chance.choice(files_in(store))
    names = ("x" * 250, "999999999-0-0-0.rank", "\x1b[31m.group", "\udcff.group", "-rf", "9" * 12 + ".group")
    shutil.copy(path, path.with_name(chance.choice(names)))


def absurd_manifest(store: Path, chance: random.Random) -> None:
    texts = ('{"format":"tracelane capture store","version":4,"traces":%s}', "%s", "[" * 60_000 + "%s")
    value = chance.choice(('"/etc"', '"../../../../etc"', "1e999", "null", "[]", '"\\ud800"', '"a\\u0000b"'))
    (store / "tracelane-store.json").write_text(chance.choice(texts) % value, encoding="utf-8")


def sealed(directory: bytes, sound: bytes) -> bytes:
    """Return a file with another directory than it had, and a head that agrees."""
    body = directory + sound.split(b"\n", 2)[2]
    return b"tracelane store 4 %d %d\n" % (len(body), zlib.crc32(body)) + body


def absurd_facts(store: Path, chance: random.Random) -> None:
    """Sound checksums over values that nobody wrote, in a summary that is read alone."""
    for group in store.glob("groups/*"):
        group.unlink()
    summaries = [path for path in files_in(store) if path.suffix == ".rank"]
    if not summaries:
        return
    path = chance.choice(summaries)
    try:
        parts = parts_of(path)
    except TracelaneError:
        return
    (facts,) = cast(list[dict[str, object]], parts["facts"])
    numbers = (2**62, -(2**62), 2**200, -1, 0, 1.5, float("nan"), float("inf"))
    texts = ("\x1b]0;x\x07", "../../etc/passwd", "\ud800", "x" * 100_000, "\0")
    lists: tuple[object, ...] = (
        [],
        [[]],
        [[[0, 2**40, 1]]],
        [["tp", "tp", [[0, 2**20, 1]] * 50]],
        {},
        [["", ""]] * 1000,
        [1, 2],
    )
    value = chance.choice((*numbers, *texts, *lists, None, True))
    if chance.random() < 0.5:
        facts[chance.choice(sorted(facts))] = value
    elif chance.random() < 0.5:
        parts[chance.choice([name for name in parts if isinstance(parts[name], list)])] = value
    else:
        name = chance.choice([name for name in parts if isinstance(parts[name], np.ndarray)])
        made_up: tuple[Any, ...] = (
            [2**62, -(2**62)] * 10,
            [2**63 - 1, -(2**63)],
            np.arange(20) * 2**58,
            [],
            [0] * 20,
        )
        parts[name] = np.array(chance.choice(made_up), np.int64).astype(parts[name].dtype)  # type: ignore[attr-defined]
    path.write_bytes(packed(parts))


def parts_of(path: Path) -> dict[str, object]:
    file = packed_file(path.read_bytes())
    return {
        name: file.json(name) if dtype == "json" else file.column(name)
        for name, (dtype, *_) in file.parts.items()
    }


def packed_file(data: bytes) -> PackedFile:
    return PackedFile("x", lambda offset, length: data[offset : offset + length])


DAMAGES: tuple[Damage, ...] = (
    flip,
    flip,
    truncate,
    extend,
    swap,
    remove,
    link_file,
    link_folder,
    no_file,
    absurd_name,
    absurd_manifest,
    absurd_facts,
    absurd_facts,
)

# -- what is asked of it ------------------------------------------------------------------------------------


def ask_everything(store: Path, work: Path) -> list[str]:
    """Run what every command runs on a store; return the messages of those that failed."""
    questions: list[Callable[[], object]] = [
        *(lambda name=name: tables(store, name) for name in STORE_TABLES),
        *(lambda by=by: tables(store, "ranks", group_by=by, worst=2) for by in GROUPINGS),
        lambda: summary_of_store(open_store(str(store))),
        lambda: picture_of_store(open_store(str(store)), IndexOptions(work / "picture")).close(),
        *(lambda number=number: open_rank(store, number, work) for number in range(RANKS)),
    ]
    messages = []
    for ask in questions:
        try:
            ask()
        except TracelaneError as error:
            messages.append(str(error))
    return messages


def tables(store: Path, name: str, **options: object) -> None:
    for table in store_tables(open_store(str(store)), name, options):
        list(table.rows())


def open_rank(store: Path, number: int, work: Path) -> None:
    opened = open_store(str(store))
    if number < len(opened.ranks):
        folder = work / f"rank{number}"
        opened_rank(opened, number, folder, options=IndexOptions(work / "indexes")).close()


@pytest.mark.slow
def test_any_damage_is_said_in_a_line(tmp_path: Path) -> None:
    """One or two damages to a sound store, of every kind: answers, or one line, and no memory to speak of."""
    chance = random.Random(int(os.environ.get("STORE_SEED", "1")))
    sound = store_with_indexes(tmp_path / "sound")
    failures = []
    tracemalloc.start()
    for turn in range(ROUNDS):
        folder = tmp_path / "damaged"
        shutil.copytree(sound, folder / "store")
        shutil.copytree(sound.parent / "traces", folder / "traces")
        (folder / "work").mkdir()
        damages = [chance.choice(DAMAGES) for _ in range(chance.choice((1, 1, 2)))]
        for damage in damages:
            damage(folder / "store", chance)
        tracemalloc.reset_peak()
        why = ""
        try:
            messages = ask_everything(folder / "store", folder / "work")
        except Exception:
            why = traceback.format_exc(limit=-3)
        else:
            why = next((repr(message) for message in messages if not message or "\n" in message), "")
        if tracemalloc.get_traced_memory()[1] > MAX_MEMORY:
            why = f"{tracemalloc.get_traced_memory()[1] >> 20} MB of memory"
        if why:
            failures.append(f"turn {turn}: {[damage.__name__ for damage in damages]}: {why}")
        shutil.rmtree(folder)
    tracemalloc.stop()
    assert not failures, "\n".join(failures)


def test_links_out_of_a_store_are_not_followed(tmp_path: Path) -> None:
    """A summary that lies elsewhere is none of the store's, be the file a link or its folder."""
    store = store_with_indexes(tmp_path)
    (group,) = store.glob("groups/*")
    group.unlink()
    summary = sorted(store.glob("ranks/*"))[1]
    summary.rename(tmp_path / "outside.rank")
    summary.symlink_to(tmp_path / "outside.rank")
    assert [rank.rank for rank in open_store(str(store)).ranks] == [0, 2]
    (store / "ranks").rename(tmp_path / "elsewhere")
    (store / "ranks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TracelaneError, match="a link, which is not followed"):
        open_store(str(store))


def test_collecting_into_a_store_writes_through_no_link(tmp_path: Path) -> None:
    """A folder of the store that leads elsewhere is refused, and nothing is written there."""
    store = store_with_indexes(tmp_path)
    shutil.rmtree(store / "ranks")
    (tmp_path / "elsewhere").mkdir()
    (store / "ranks").symlink_to(tmp_path / "elsewhere")
    done = tracelane_here("collect", str(tmp_path / "traces"), "-o", str(store))
    assert done.returncode != 0 and "a link, which is not followed" in done.stderr
    assert done.stderr.count("\n") == 1 and not list((tmp_path / "elsewhere").iterdir())


LIES: dict[str, Callable[[], bytes]] = {
    "cut off": lambda: packed({"a": np.arange(5)})[:-2],
    "no store's": lambda: packed({"a": np.arange(5)}).replace(b"tracelane", b"tracelain"),
    "empty": lambda: b"",
    "of another type": lambda: packed({"a": {}}),
    "missing": lambda: packed({"b": np.arange(5)}),
    "more than 64 ranks need": lambda: packed({"a": np.zeros(MAX_PART // 8 + 1, np.int64)}),
    "a wrong length": lambda: sealed(b'{"a":["i8",4,19]}\n', packed({"a": np.arange(5)})),
    "a negative size": lambda: sealed(b'{"a":["i8",5,-9]}\n', packed({"a": np.arange(5)})),
    "an unknown type": lambda: sealed(b'{"a":["O",5,19]}\n', packed({"a": np.arange(5)})),
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_values_that_lie_are_refused(lie: str) -> None:
    """Whatever a file's head and directory say that its parts are not."""
    data = LIES[lie]()
    with pytest.raises(DamagedStoreError):
        packed_file(data).column("a")


@pytest.mark.parametrize("values", [[], [0, 1, 2], [-(2**63), 2**63 - 1]])
def test_columns_come_back_as_written(values: list[int]) -> None:
    """Differences of numbers as far apart as can be wrap around and back."""
    assert packed_file(packed({"b": {}, "a": np.array(values, np.int64)})).column("a").tolist() == values


def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path: Path) -> None:
    """A file that nobody writes any more goes; one that is still locked stays."""
    import fcntl

    store = store_with_indexes(tmp_path, 1)
    left, locked = store / "ranks" / ".x.rank-0123", store / "groups" / ".y.group-0123"
    left.write_bytes(b"half")
    with locked.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert tracelane_here("collect", str(tmp_path / "traces"), "-o", str(store)).returncode == 0
        assert not left.exists() and locked.exists()
