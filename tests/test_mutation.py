"""`make mutation`: which changes there are, which tests try them, if what is known of them still holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import mutation
from tests.equivalent import EQUIVALENT
from tests.importers import Importers
from tests.mutation import Change, Copies, Record, changed_text, changes_of, drawn, in_turns, lines_since

FILES = {
    "core/deep.py": "LEAST = 3\n\ndef is_long(size):\n    return size > LEAST and size != 9\n",
    "core/near.py": "from .deep import is_long\n",
    "core/named.py": 'ROWS = ("near:is_long",)\n',
    "src/tracelane/__init__.py": "",
    "tests/core/test_deep.py": "from tracelane.core.deep import is_long\n\n"
    "def test_long():\n    assert is_long(4) and not is_long(3)\n",
    "tests/core/test_other.py": "def test_it():\n    from tracelane.core import named\n",
    "tests/core/test_near.py": "import tracelane.core.near\n\ndef test_it(): ...\n",
    "tests/core/test_nothing.py": "def test_it(): ...\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, committed."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "src" / "tracelane" / "core").symlink_to("../../core")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    return tmp_path


def change_to(file: str, after: str) -> Change:
    return next(change for change in changes_of(file) if change.after == after)


def test_operators_and_numbers_are_changed(tree: Path) -> None:
    """Each operator of a line and each number has a change, which leaves the rest as it is."""
    changes = {change.after: change for change in changes_of("core/deep.py")}
    assert sorted(changes) == ["10", "4", "size == 9", "size > LEAST or size != 9", "size >= LEAST"]
    text = changed_text(changes["size >= LEAST"])
    assert text.splitlines()[-1].strip() == "return size >= LEAST and size != 9"
    assert (tree / "core" / "deep.py").read_text(encoding="utf-8") == FILES["core/deep.py"]


def test_what_is_drawn_does_not_move_with_the_lines(tree: Path) -> None:
    """Lines that come before others, in the file or in another, change nothing of what a seed draws."""

    def words() -> list[tuple[str, str]]:
        return [(change.before, change.after) for change in drawn(changes_of("core/deep.py"), 7, 3)]

    before = words()
    (tree / "core" / "deep.py").write_text("# why\n\n" + FILES["core/deep.py"], encoding="utf-8")
    assert words() == before
    seeds = [drawn(changes_of("core/deep.py"), seed, 1)[0].after for seed in range(20)]
    assert len(set(seeds)) > 2


def test_what_is_drawn_does_not_move_with_the_files(tree: Path) -> None:
    """A file that moves to another folder under another name changes nothing of what a seed draws."""
    before = [(change.before, change.after) for change in drawn(changes_of("core/deep.py"), 7, 3)]
    (tree / "core" / "room").mkdir()
    (tree / "core" / "deep.py").rename(tree / "core" / "room" / "other.py")
    assert [(c.before, c.after) for c in drawn(changes_of("core/room/other.py"), 7, 3)] == before
    assert {change.within for change in changes_of("core/room/other.py")} == {"", "is_long"}


def test_files_take_turns() -> None:
    """The first tests of each file come before the others of the first; none is left out."""
    files = [[f"{file}{number}" for number in range(size)] for file, size in (("a", 20), ("b", 3), ("c", 9))]
    tests = in_turns(files)
    assert sorted(tests) == sorted(test for file in files for test in file)
    assert tests[:19] == [*files[0][:8], *files[1], *files[2][:8]] and tests[-1] == "a19"
    assert in_turns([]) == []


def test_tests_are_found_by_import(tree: Path) -> None:
    """The test that imports a file comes first, then those that do so through others, or through a name in a
    text; one that does not is none.
    """
    tests = [f"tests/core/test_{name}.py" for name in ("deep", "near", "other", "nothing")]
    importers = Importers(tree)
    assert importers.tests_of("core/deep.py") == tests[:3]
    assert importers.tests_of("core/near.py") == tests[1:3]
    assert importers.tests_of("core/named.py") == tests[2:3]


def test_lines_since_a_commit_are_those_that_are_other(tree: Path) -> None:
    """Lines that were changed or added since a commit are found, in core and tui only."""
    (tree / "core" / "near.py").write_text("\nfrom .deep import is_long\nA = 1\nB = 2\n", encoding="utf-8")
    (tree / "tests" / "core" / "test_near.py").write_text("A = 1\n", encoding="utf-8")
    assert lines_since("HEAD") == {"core/near.py": {1, 3, 4}}


@pytest.mark.slow
def test_a_change_is_tried_by_tests(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests that fail after a change are told, none where all pass, and the copy is as before."""
    copies = Copies(tmp_path_factory.mktemp("copies"), 1)
    tests, file = ["tests/core/test_deep.py"], "core/deep.py"
    noticed = copies.failure(tests, "not slow", 100, change_to(file, "size >= LEAST"))
    assert noticed == "tests/core/test_deep.py::test_long"
    assert copies.failure(tests, "not slow", 100, change_to(file, "size == 9")) != ""
    assert copies.failure(tests, "not slow", 100, change_to(file, "10")) == ""
    assert copies.failure(tests, "not slow", 100) == ""


@pytest.mark.slow
def test_tests_are_found_by_the_lines_that_they_run(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a recorded run the tests that run a line are known, until their file or that of the line changes."""
    monkeypatch.setattr(mutation, "RECORD", tree / "record")
    mutation.record_lines(tree, 1)
    file, tests = "core/deep.py", "tests/core/test_deep.py"
    change = change_to(file, "size >= LEAST")
    assert Record(tree / "record").tests_of(change) == {tests: [f"{tests}::test_long"]}
    assert Record(tree / "record").tests_of(change_to(file, "4")) == {}  # it runs when the file is imported
    for other in (tests, file):
        before = (tree / other).read_text(encoding="utf-8")
        (tree / other).write_text("# other\n" + before, encoding="utf-8")
        assert Record(tree / "record").tests_of(change) == {}
        (tree / other).write_text(before, encoding="utf-8")


@pytest.mark.parametrize("file", EQUIVALENT)
def test_what_is_known_to_matter_to_nobody_still_stands_there(file: str) -> None:
    """Each row of EQUIVALENT says of a change that can be made why nobody can notice it."""
    changes = changes_of(file, [part for part, _ in EQUIVALENT[file]])
    for part, after in EQUIVALENT[file]:
        assert any(part in change.text and after == change.after for change in changes), (part, after)
