"""Transcripts: text files of commands and what they print, each followed to the letter.

A line that is not indented says what the commands below it show. Indented by four, `$ ` begins a command;
what it prints follows, with `! ` before what goes to stderr, and its exit code in brackets unless that is 0:

    $ tracelane kernel trace.json
    ! tracelane: no file and no command is called 'kernel': did you mean `tracelane kernels`?
    [64]

`python -m tests.transcripts FILE…` writes down what commands print now: read the difference then.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.events import complete, write_events, write_slices
from tests.graph_pairs import MODEL, capture_events, replay_events, write_pair
from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file

FOLDER = Path(__file__).parent / "tui" / "transcripts"
INDENT = "    "
PROMPT = f"{INDENT}$ tracelane"


class Exchange(NamedTuple):
    """A command with what it printed."""

    line: int  # of the file, from 1
    words: tuple[str, ...]
    printed: str  # as the file has it, indented


def exchanges(text: str) -> Iterator[Exchange]:
    """Yield the commands of a transcript."""
    lines = text.splitlines()
    begins = [number for number, line in enumerate(lines) if line.startswith(PROMPT)]
    for number in begins:
        end = number + 1
        while end < len(lines) and (lines[end].startswith(INDENT) or _goes_on(lines, end)):
            if lines[end].startswith(PROMPT):
                break
            end += 1
        words = tuple(shlex.split(lines[number].removeprefix(PROMPT)))
        yield Exchange(number + 1, words, "\n".join(lines[number + 1 : end]))


def _goes_on(lines: list[str], at: int) -> bool:
    """Tell whether an empty line is one of the output: what follows is output, too."""
    after = next((line for line in lines[at:] if line), "")
    return not lines[at] and after.startswith(INDENT) and not after.startswith(PROMPT)


def printed(words: tuple[str, ...]) -> str:
    """Run a command and return what it prints as a transcript has it."""
    done = tracelane_here(*words)
    lines = [*done.stdout.splitlines(), *(f"! {line}" for line in done.stderr.splitlines())]
    lines += [f"[{done.returncode}]"] if done.returncode else []
    return "\n".join(f"{INDENT}{line}".rstrip() for line in lines).rstrip()


def write_chain(path: Path) -> Path:
    """Write a step in which a graph launches two kernels under a module's op, and two pieces of work that
    nobody launched.
    """
    ids = {"correlation": 7}
    events = [
        complete(0, 100, "ProfilerStep#3", "user_annotation"),
        complete(5, 80, "nn.Module: Linear_0", "python_function"),
        complete(8, 60, "aten::mm", "cpu_op"),
        complete(10, 20, "graphLaunch", "cuda_runtime", args=ids),
        complete(50, 10, "mm_kernel", "kernel", pid=0, args=ids),
        complete(70, 30, "add_kernel", "kernel", pid=0, args=ids),
        complete(300, 5, "Memset (Device)", "gpu_memset", pid=0, tid=2),
        complete(400, 5, "mm_kernel", "kernel", pid=0),
    ]
    return write_events(path, events)


def write_replays(path: Path) -> Path:
    """Write two replays of a graph of two kernels, of which the second takes 10 and 14 µs."""
    events = []
    for replay, length in enumerate((10, 14), start=1):
        ids = {"correlation": replay}
        events.append(complete(1000 * replay, 5, "graphLaunch", "cuda_runtime", args=ids))
        for number, took in enumerate((20, length)):
            ts = 1000 * replay + 100 * number + 50
            events.append(complete(ts, took, f"k{number}", "kernel", pid=0, args=ids))
    return write_events(path, events)


def _captured(folder: Path, is_swapped: bool) -> object:
    folder.mkdir()
    captured = [MODEL[1], MODEL[0], *MODEL[2:]] if is_swapped else MODEL
    return write_pair(folder, [replay_events(MODEL)], {"a.json": capture_events(captured)})


def _write(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")


MAKERS: Mapping[str, Callable[[Path], object]] = {
    "small.json": lambda path: small_file(path.parent),
    "slices.json": write_slices,
    "chain.json": write_chain,
    "replays.json": write_replays,
    "captured": lambda path: _captured(path, is_swapped=False),
    "swapped": lambda path: _captured(path, is_swapped=True),
    "summary.json": _write('{"schema": 2, "tables": {}}'),
    "settings.json": _write('{"some": "configuration"}'),
    "notes.md": _write("# Notes\n\n[a link](notes.md), {a set}\n"),
    "source.py": _write("def main():\n    return [1, {2: x}]\n"),
    "licence.txt": _write("(c) [2026] {}"),
    "empty.json": _write(""),
    "link.json": lambda path: path.symlink_to("nothing"),
}
"""What files and folders that a transcript's commands may name are made by."""


def make_files(text: str, folder: Path) -> None:
    """Make the files that a transcript names."""
    for name, make in MAKERS.items():
        if name in text:
            make(folder / name)


def main() -> None:
    for path in map(Path, sys.argv[1:] or map(str, sorted(FOLDER.glob("*.txt")))):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        with TemporaryDirectory() as name:
            folder = Path(name)
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            make_files(text, folder)
            with chdir(folder):
                for one in reversed([*exchanges(text)]):
                    old = one.printed.count("\n") + 1 if one.printed else 0
                    new = printed(one.words)
                    lines[one.line : one.line + old] = new.splitlines()
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
