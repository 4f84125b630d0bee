"""`make size`: how large each room is, and what changed."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests import size
from tests.size import files_at, room_of, size_of, sizes_of, table_of

LONG = "def long():\n" + "    pass\n" * 40


@pytest.mark.parametrize(
    ("text", "column", "amount"),
    [
        ("a = 1\n", "lines", 1),
        ("a = 1\n\n# why\n", "lines", 3),
        (LONG, "over 40", 1),
        (LONG.replace("    pass\n", "", 1), "over 40", 0),
        ("def _a(): ...\n_a()\n", "used once", 1),
        ("def _a(): ...\n_a()\n_a()\n", "used once", 0),
        ("def _a(): ...\n", "used once", 0),
        ("def a(): ...\na()\n", "used once", 0),
        ("class A:\n    def _b(self): ...\n    def c(self): self._b()\n", "used once", 1),
        ("class A:\n    def __len__(self): ...\nA.__len__\n", "used once", 0),
    ],
)
def test_a_file_is_measured(text: str, column: str, amount: int) -> None:
    """Each column counts what its heading says."""
    assert size_of("core/a.py", text)[column] == amount


def test_a_table_in_a_text_is_as_long_as_its_lines() -> None:
    """A text of several lines counts each as a node; a text of one line and a docstring do not."""
    one = size_of("core/a.py", 'rows = "a"')["nodes"]
    assert size_of("core/a.py", 'rows = """a\nb\n\nc"""')["nodes"] == one + 3
    assert (
        size_of("core/a.py", '"""a\nb"""\nrows = "a"')["nodes"]
        == size_of("core/a.py", '"a"\nrows = "a"')["nodes"]
    )


def test_each_file_is_in_one_room() -> None:
    """Rooms are the folders of core and tui, packages, bundle, and all C; the last row is their sum."""
    names = (
        "core/read/a.py",
        "core/a.py",
        "tui/b/c/d.py",
        "packages/x/y.py",
        "bundle/z.py",
        "core/native/a.c",
    )
    assert [*map(room_of, names)] == ["core/read", "core", "tui/b", "packages", "bundle", "C"]
    sizes = sizes_of((name, "a\nb\n") for name in names)
    assert sizes["all together"]["lines"] == 2 * len(names)
    assert sizes["core, all rooms"]["files"] == 2


def test_what_changed_stands_beside_each_number() -> None:
    """Rooms that grew, shrank, came and went are all listed, and what stayed the same has no difference."""
    now = {"tui": Counter(lines=12, files=1), "core/new": Counter(lines=3)}
    before = {"tui": Counter(lines=10, files=1), "core/old": Counter(lines=4)}
    rows = {
        row.rsplit("  ", 1)[1]: row.rsplit("  ", 1)[0].split() for row in table_of(now, before).splitlines()
    }
    assert rows["tui"] == ["0", "12", "+2", "1", "0", "0"]
    assert rows["core/new"] == ["0", "3", "+3", "0", "0", "0"]
    assert rows["core/old"] == ["0", "0", "-4", "0", "0", "0"]
    assert "+" not in table_of(now)


def test_a_commit_is_read_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a commit are those it has, whatever the folder holds now."""
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text("a = 1\n", encoding="utf-8")
    (tmp_path / "core" / "a.txt").write_text("no code\n", encoding="utf-8")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (tmp_path / "core" / "a.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(size, "ROOT", tmp_path)
    assert [*files_at("HEAD")] == [("core/a.py", "a = 1\n")]
