"""Change single operators and numbers of core and tui, and list the changes that no test notices.

    python -m tests.mutation [--seed 1 2 …] [--most 40] [--since COMMIT | FILE[:LINE] …] [--record]

Without --since and files, places are drawn all over core and tui. A place is drawn by a hash of the seed, its
line and the names of the functions around it: what is drawn stays the same while other lines change and files
move. Each change is tried in a copy of the tree, by the test files that import its file, directly or through
others: the nearest first, the fast tests before the slow ones, until one fails or `--seconds` of processor
time are spent. No corpus lies beside a copy.

--record runs all tests once and keeps which lines each of them runs, and how long it takes. As long as a file
is as it was, only tests that run the changed line are tried, the cheapest of each file first, and test files
newer than the record. It pays from some fifty changes on.

Each survivor is a question: is a test missing, or does the place not matter? What cannot matter goes, with
the reason, into `EQUIVALENT` of tests/equivalent.py; it is drawn too, and counted apart.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from xml.etree import ElementTree

from coverage import CoverageData

from tests.equivalent import EQUIVALENT
from tests.importers import Importers

ROOT = Path(__file__).resolve().parent.parent
SWAPS: Mapping[type[Any], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
FAST, SLOW, ALL = "not slow and not corpus", "slow and not corpus", "not corpus"
STAGES = ((FAST, slice(0, 5), 0.3), (FAST, slice(5, 40), 0.4), (SLOW, slice(0, 10), 0.3))
"""Which tests are tried after one another: of which of the nearest files, and with which part of the time."""
NEAR = ((slice(0, 4), 0.4), (slice(4, 16), 0.4))
"""The same for tests that are known to run the changed line."""
AT_A_TIME = 8
"""Tests of one file that are tried before those of the next file: others of it tell little more."""
RECORD = ROOT / ".pytest_cache" / "mutation"
ENDLESS_S = 600
"""A change after which the tests of a stage take longer is one that they notice."""
TEST_S = 100
"""So is one after which a single test takes longer."""
HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
MAX_MEMORY = 6 << 30
"""What a process of tests may take: a change may make a loop endless."""


@dataclass(frozen=True)
class Change:
    """One operator or number of a file that is another; `number` counts the nodes as `ast.walk` does."""

    file: str
    line: int
    lines: range  # of the statement, none where it runs when the file is imported
    number: int
    before: str
    after: str
    text: str  # of its line
    within: str  # the functions and classes around it, as "Reader.read"
    same: int  # changes of the same words before it in the file

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"

    def rank(self, seed: int) -> bytes:
        """Return what orders the changes for a seed, the same wherever its line and its file stand."""
        words = (seed, self.within, self.text, self.before, self.after, self.same)
        return hashlib.sha256("\0".join(map(str, words)).encode()).digest()

    def reason(self) -> str:
        """Return why nobody can tell the change, "" where somebody might."""
        rows = EQUIVALENT.get(self.file, {}).items()
        return next((why for (part, after), why in rows if part in self.text and after == self.after), "")


def changes_of(file: str, parts: Sequence[str] = ("",)) -> list[Change]:
    """Return all changes of a file, or those in lines that have one of some texts."""
    text = (ROOT / file).read_text(encoding="utf-8")
    tree, changes, times = ast.parse(text), list[Change](), Counter[tuple[str, ...]]()
    texts, statements, names = text.splitlines(), _lines_of_statements(tree), _names_around(tree)
    lines_with = {number for number, line in enumerate(texts, 1) if any(part in line for part in parts)}
    for number, node in enumerate(ast.walk(tree)):
        if _can_change(node) and getattr(node, "lineno", 0) in lines_with:
            before = ast.unparse(node)
            _change(node, 1)
            line = node.lineno  # type: ignore[attr-defined]
            words = (texts[line - 1].strip(), before, ast.unparse(node))
            _change(node, -1)
            lines = statements.get(id(node), range(0))
            within = names.get(id(node), "")
            changes.append(
                Change(file, line, lines, number, before, words[2], words[0], within, times[words])
            )
            times[words] += 1
    return changes


def _lines_of_statements(tree: ast.Module) -> dict[int, range]:
    """Return the lines of the innermost statement of each node of a function's body, by its id."""
    lines = dict[int, range]()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in (each for body in function.body for each in ast.walk(body)):
                if isinstance(statement, ast.stmt):
                    inner = getattr(statement, "body", None)
                    last = inner[0].lineno - 1 if inner else statement.end_lineno or statement.lineno
                    here = range(statement.lineno, max(last, statement.lineno) + 1)
                    lines |= {id(node): here for node in ast.walk(statement)}
    return lines


def _names_around(tree: ast.Module) -> dict[int, str]:
    """Return the names of the functions and classes around each node, by its id."""
    names = dict[int, str]()
    for node in ast.walk(tree):  # those outside before those inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = ".".join(filter(None, (names.get(id(node), ""), node.name)))
            names |= {id(inner): name for inner in ast.walk(node)}
    return names


def _can_change(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in SWAPS
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in SWAPS
    return isinstance(node, ast.Constant) and type(node.value) is int


def _change(node: ast.AST, step: int) -> None:
    """Change a node in its place: a number by a step, an operator to its neighbour and, next, back."""
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value += step  # type: ignore[operator]


def changed_text(change: Change) -> str:
    """Return the text of a file with its change, without its comments."""
    tree = ast.parse((ROOT / change.file).read_text(encoding="utf-8"))
    _change(next(node for number, node in enumerate(ast.walk(tree)) if number == change.number), 1)
    return ast.unparse(tree)


def lines_since(commit: str) -> dict[str, set[int]]:
    """Return the lines of core and tui that are new or other since a commit, by file."""
    command = ["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", commit, "--", "core", "tui"]
    diff = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    lines, file = dict[str, set[int]](), ""
    for line in diff.stdout.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif (hunk := HUNK.match(line)) and file.endswith(".py"):
            first, length = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + length))
    return lines


@dataclass(eq=False)
class Budget:
    """A plugin of pytest: runs the chosen tests in their order, all where none is, ends them when a time of
    the processor is spent, and notes the first failure.
    """

    seconds: float
    chosen: Mapping[str, int]
    failure: str = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.chosen:
            items[:] = sorted((item for item in items if item.nodeid in self.chosen), key=self._order)

    def _order(self, item: Any) -> int:
        return self.chosen[item.nodeid]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failure = self.failure or report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_runtest_teardown(self, item: Any) -> None:
        if sum(os.times()[:4]) > self.seconds:
            item.session.shouldstop = "the time is spent"


def run_tests(home: Path, tests: Sequence[str], marks: str, seconds: float, answers: Any) -> None:
    """Run tests of a copy of the tree, in a process of their own; send which failed, "" if none did."""
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (ENDLESS_S, ENDLESS_S))  # where nobody is left to end it, too
    os.setpgid(0, 0)  # what the tests start ends with them
    os.chdir(home)
    folders = [str(home), str(home / "src")]
    sys.path[:] = folders + [folder for folder in sys.path if Path(folder or ".").resolve() != ROOT]
    os.environ |= {"PYTHONPATH": os.pathsep.join(folders), "CI": "1"}
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(home / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "tracelane")]:
        del sys.modules[name]
    import pytest

    options = ["-x", "-q", "-m", marks, f"--timeout={TEST_S}", "-p", "no:cacheprovider", "-p", "no:xdist"]
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    chosen = {test: at for at, test in enumerate(tests) if "::" in test}
    budget = Budget(sum(os.times()[:4]) + seconds, chosen)
    code = pytest.main([*options, f"--rootdir={home}", *files], plugins=[budget])
    failed = budget.failure or ("" if code in (0, 2, 5) else f"pytest ended with {code}")
    answers.send(failed)
    os.killpg(0, signal.SIGKILL)


class Copies:
    """Copies of the tree, one for each change that is tried at a time, and the processes that try them."""

    def __init__(self, folder: Path, number: int) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["pytest", "hypothesis", "numpy", "textual.pilot", "click"])
        self.homes: SimpleQueue[Path] = SimpleQueue()
        self.times = count(1)
        for each in range(number):
            self.homes.put(_copy_of_tree(folder / str(each)))

    def failure(self, tests: Sequence[str], marks: str, seconds: float, change: Change | None = None) -> str:
        """Return which of some tests fails first after a change, "" where none does."""
        home = self.homes.get()
        try:
            if change is not None:
                self._write(home, change.file, changed_text(change))
            return self._run(home, tests, marks, seconds)
        finally:
            if change is not None:
                self._write(home, change.file, (ROOT / change.file).read_text(encoding="utf-8"))
            self.homes.put(home)

    def _write(self, home: Path, file: str, text: str) -> None:
        """Write a file with a time of its own: compiled code is looked up by it, in whole seconds."""
        target, second = home / file, next(self.times)
        target.write_text(text, encoding="utf-8")
        os.utime(target, (second, second))

    def _run(self, home: Path, tests: Sequence[str], marks: str, seconds: float) -> str:
        receiver, sender = self.context.Pipe(duplex=False)
        process = self.context.Process(target=run_tests, args=(home, tests, marks, seconds, sender))
        process.start()
        sender.close()
        try:
            return str(receiver.recv()) if receiver.poll(ENDLESS_S) else f"more than {ENDLESS_S} s"
        except EOFError:
            return "the process of the tests ended"
        finally:
            if process.pid is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.join()


def _copy_of_tree(home: Path) -> Path:
    """Copy what git knows or would, and the compiled core; return the folder."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.split(
        "\0"
    )
    native = [path.relative_to(ROOT).as_posix() for path in (ROOT / "core" / "native").glob("*.so")]
    links = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src" / "tracelane").iterdir()
        if path.is_symlink()
    ]
    for name in filter(None, dict.fromkeys([*names, *native, *links])):
        if os.path.lexists(ROOT / name):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, home / name, follow_symlinks=False)
    return home


class Record:
    """Which tests run which lines, how long they take, and of which texts that was seen; empty before the
    first.
    """

    def __init__(self, folder: Path) -> None:
        self.data = CoverageData(str(folder / "lines"))
        known = folder / "hashes.json"
        self.hashes: dict[str, str] = json.loads(known.read_text("utf-8")) if known.is_file() else {}
        self.lines = dict[str, dict[int, list[str]]]()
        self.seconds = dict[str, float]()
        self.tests = dict[str, list[str]]()  # of each file, the quickest first
        if self.hashes:
            self.data.read()
            for case in ElementTree.parse(folder / "times.xml").iter("testcase"):
                file = case.attrib["classname"].replace(".", "/") + ".py"
                self.seconds[f"{file}::{case.attrib['name']}"] = float(case.attrib["time"])
            for test in sorted(self.seconds, key=self.seconds.__getitem__):
                self.tests.setdefault(test.partition("::")[0], []).append(test)

    def is_as_seen(self, file: str) -> bool:
        return self.hashes.get(file) == _hash_of(ROOT / file)

    def tests_of(self, change: Change) -> dict[str, list[str]]:
        """Return the tests that run the statement of a change, by file, the quickest first; none where the
        record cannot tell.

        What a fixture runs may be run for the first test only: all tests of its file are taken.
        """
        if not change.lines or not self.is_as_seen(change.file):
            return {}
        if change.file not in self.lines:
            measured = (name for name in self.data.measured_files() if name.endswith(f"/{change.file}"))
            self.lines[change.file] = self.data.contexts_by_lineno(next(measured, ""))
        of_lines = self.lines[change.file]
        contexts = {context.partition("|")[::2] for at in change.lines for context in of_lines.get(at, ())}
        tests, fixed = {test for test, _ in contexts}, {test for test, part in contexts if part == "setup"}
        files, fixed_files = ({test.partition("::")[0] for test in some} for some in (tests, fixed))
        return {
            file: [test for test in self.tests[file] if file in fixed_files or test in tests]
            for file in files
            if file in self.tests and self.is_as_seen(file)
        }


def record_lines(home: Path, jobs: int) -> None:
    """Run the tests in a copy of the tree; keep which lines each of them runs, and how long it takes."""
    RECORD.mkdir(parents=True, exist_ok=True)
    hashes = {
        path.relative_to(ROOT).as_posix(): _hash_of(path)
        for folder in ("core", "tui", "tests")
        for path in (ROOT / folder).rglob("*.py")
    }
    (RECORD / "lines").unlink(missing_ok=True)
    options = ["-m", ALL, "-n", str(jobs), "--dist", "worksteal", "-p", "no:cacheprovider"]
    options.append(f"--junitxml={RECORD / 'times.xml'}")
    coverage = ["--cov=core", "--cov=tui", "--cov-context=test", "--cov-report="]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(home), str(home / "src"))),
        "COVERAGE_FILE": str(RECORD / "lines"),
        "CI": "1",
    }
    command = [sys.executable, "-m", "pytest", *options, *coverage]
    subprocess.run(command, cwd=home, env=environment, check=False)
    (RECORD / "hashes.json").write_text(json.dumps(hashes), "utf-8")


def _hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Trial:
    """What tries changes: copies of the tree, who imports what, the record, the processor time for each."""

    copies: Copies
    importers: Importers
    record: Record
    seconds: float

    def noticed_by(self, change: Change) -> str:
        """Return the test that notices a change, "" where none does in the time."""
        return next(filter(None, self._failures(change)), "")

    def _failures(self, change: Change) -> Iterator[str]:
        files = self.importers.tests_of(change.file)
        stages = [(marks, files[part], share) for marks, part, share in STAGES]
        if tests := self.record.tests_of(change):
            newer = [file for file in files if not self.record.is_as_seen(file)]
            near = [file for file in files if file in tests]
            stages = [(ALL, in_turns([tests[file] for file in near[part]]), share) for part, share in NEAR]
            stages.append((FAST, newer[:5], 0.2))
        for marks, some, share in stages:
            if some:
                yield self.copies.failure(some, marks, self.seconds * share, change)


def in_turns(files: Sequence[Sequence[str]]) -> list[str]:
    """Return the tests of files, a few of each file at a time."""
    rounds = range(0, max(map(len, files), default=0), AT_A_TIME)
    return [test for at in rounds for tests in files for test in tests[at : at + AT_A_TIME]]


def drawn(changes: Sequence[Change], seed: int, most: int) -> list[Change]:
    """Draw some of the changes by chance, the same for a seed wherever their lines stand."""
    return sorted(changes, key=lambda change: change.rank(seed))[:most]


def changes_asked_for(files: Sequence[str], since: str) -> list[Change]:
    """Return the changes of files or lines, of the lines since a commit, or of all of core and tui."""
    targets = {(file, int(line or 0)) for file, _, line in (each.partition(":") for each in files)}
    if since:
        targets = {(file, line) for file, lines in lines_since(since).items() for line in lines}
    elif not files:
        paths = [path for room in ("core", "tui") for path in sorted((ROOT / room).rglob("*.py"))]
        targets = {(path.relative_to(ROOT).as_posix(), 0) for path in paths}
    every = [change for file in sorted({file for file, _ in targets}) for change in changes_of(file)]
    return [change for change in every if targets & {(change.file, 0), (change.file, change.line)}]


def main() -> int:
    """Try the changes; print those that no test notices, and their number. 2 where a test fails anyway."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE[:LINE]", help="change these only")
    parser.add_argument("--since", default="", metavar="COMMIT", help="only lines that are other since")
    parser.add_argument("--most", type=int, default=40, help="changes that are tried for a seed (40)")
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--seconds", type=float, default=60, help="processor time for the tests of a change (60)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="changes tried at a time")
    parser.add_argument("--record", action="store_true", help="see first which lines each test runs")
    parser.add_argument("--noticed", action="store_true", help="list what was noticed too, and by which test")
    options = parser.parse_args()
    every = changes_asked_for(options.files, options.since)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as threads:
        copies, failures = Copies(Path(folder), options.jobs), set[str]()
        if options.record:
            record_lines(_copy_of_tree(Path(folder) / "record"), options.jobs)
        trial = Trial(copies, Importers(ROOT), Record(RECORD), options.seconds)
        for seed in options.seed:
            changes = drawn(every, seed, options.most)
            tried = [change for change in changes if not change.reason()]
            answers = threads.map(trial.noticed_by, tried)
            left = 0
            for change, failure in zip(tried, answers, strict=True):
                left += not failure
                failures.add(failure)
                if options.noticed or not failure:
                    print(f"{change}" + (f"  ({failure})" if failure else ""), flush=True)
            print(
                f"seed {seed}: {left} of {len(changes)} changes were noticed by no test,"
                f" {len(changes) - len(tried)} are known to matter to nobody; of {len(every):,} changes\n",
                flush=True,
            )
        nodes = sorted(each for each in failures if "::" in each)
        wrong = copies.failure(nodes, "not corpus", ENDLESS_S) if nodes else ""
    if wrong:
        print(f"not all of this can be true: a test fails without any change: {wrong}")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
