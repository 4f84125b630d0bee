"""Every reader and every output: made traces in JSON and packets, packed and damaged, artefacts beside them,
and capture stores made of them, damaged too.

    python -m tests.fuzz.invariants [SECONDS] [SEED]

Asked of each: a documented exit code and one line for what is refused; no error that was not foreseen, in a
packet either; nothing for the terminal to obey, on the screen or in a page; damage that gzip, zip or zstd
find themselves is said by `info` and `doctor`; a file that is written is bounded by the text that was read;
processor time is bounded; no file is written but where it was asked for.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.events import every_phase
from tests.fuzz.input_files import (
    MAX_SECONDS,
    FuzzResult,
    _is_control,
    laid_out,
    mutate_bytes,
    mutate_json,
    problem_of,
    source_lines_in,
)
from tests.packets import PacketMaker
from tests.packings import PACKINGS, damaged, outside_error, packing_of
from tests.store.test_damaged_store import (
    absurd_manifest,
    absurd_name,
    extend,
    files_in,
    flip,
    link_file,
    link_folder,
    swap,
    truncate,
)
from tracelane.core.demo.trace import write_demo
from tracelane.core.read.packed import open_packed
from tracelane.core.tables.registry import ANALYSES
from tracelane.tui.cli.main import main

LAYOUTS = ("object", "array", "lines", "new", "classic")
ENDINGS = ("html", "pftrace", "speedscope.json", "folded", "sqlite", "json", "json.gz")
TEXTS = ("html", "speedscope.json", "folded")
"""Those of them that are text of our own; JSON is the trace's own events, byte by byte."""
FORMS = ("json", "csv", "md")
STORE_DAMAGES = (flip, truncate, extend, swap, link_file, link_folder, absurd_name, absurd_manifest)
MAX_TIMES, MAX_BASE = 64, 4 << 20
"""A file that is written takes at most so many times the text that was read, and so many bytes."""


class Sandbox:
    """A folder with one input at a time, and commands that read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "in"
        self.out = folder / "out"
        self.demo = write_demo(folder / "demo")[0]
        for one in (self.input, self.out, folder / "config", folder / "cache"):
            one.mkdir(exist_ok=True)
        self._sound = set((folder / "demo").rglob("*"))

    def clear(self) -> None:
        for path in (self.input, self.out, self.folder / "index"):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()

    def stray(self) -> list[str]:
        """Return the files that lie where nothing was to be written."""
        known = {self.input, self.out, *(self.folder / name for name in ("demo", "config", "cache", "index"))}
        strays = [path for path in self.folder.iterdir() if path not in known]
        return [str(path) for path in (*strays, *({*(self.folder / "demo").rglob("*")} - self._sound))]


def new_input(choose: random.Random) -> tuple[str, bytes, str, int]:
    """Return the name of an input, its bytes, how it is packed, and how many bytes of text it holds."""
    if choose.random() < 0.35:
        name, data = "t.pftrace", PacketMaker(choose).file(choose.choice((3, 20, 80)))
    else:
        events = every_phase(choose.randrange(1000), choose.choice((5, 40, 200)))
        name = "t.json"
        if choose.random() < 0.3:
            odd = mutate_json({"traceEvents": events}, choose)
            data = json.dumps(odd).encode("utf-8", "surrogatepass")
        else:
            data = laid_out(events, choose.choice(LAYOUTS))
        if choose.random() < 0.4:
            data = mutate_bytes(data, choose)
        data = choose.choice((b"", b"", b"", b"\xef\xbb\xbf")) + data
    if choose.random() < 0.25:
        return name, damaged(data, choose) if len(data) > 60 else data, "", len(data)
    kind, pack = PACKINGS[choose.choice(list(PACKINGS))]
    packed = pack(data)
    return f"{name}.{kind}", damaged(packed, choose) if choose.random() < 0.7 else packed, kind, len(data)


def said_by(arguments: list[str]) -> tuple[int, str]:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(arguments)
    return code, out.getvalue() + errors.getvalue()


def text_size(path: Path, kind: str, known: int) -> int:
    """Return how much text a file holds: damage may unpack to more than was packed."""
    packing = packing_of(kind)
    if not packing:
        return max(known, path.stat().st_size)
    try:
        reader = open_packed(path, packing)
    except Exception:  # what the reader refuses the commands refuse, too
        return known
    with contextlib.closing(reader):
        while reader.read(1 << 20):
            pass
        return max(known, reader.offset)


def wrongs(sandbox: Sandbox, choose: random.Random, result: FuzzResult) -> list[str]:
    """Make an input, run commands on it, and return what is wrong with how they went."""
    sandbox.clear()
    name, data, kind, size = new_input(choose)
    path = sandbox.input / name
    path.write_bytes(data)
    index = ["--index-dir", str(sandbox.folder / "index")]
    wrong: list[str] = []

    def run(*arguments: str) -> None:
        result.commands += 1
        if problem := problem_of([*arguments, *index]):
            wrong.append(f"{' '.join(arguments)}: {problem}")

    run("info", str(path), "--json", "--force")
    code, words = said_by(["info", str(path), *index])
    is_read = code == 0
    if "packet that cannot be read" in words.replace("cannot be read (RecursionError)", ""):
        wrong.append(f"info {path}: an error nobody foresaw in a packet")
    error = outside_error(kind, data) if kind else ""
    if error and is_read:
        for command in ("info", "doctor"):
            code, words = said_by([command, str(path), *index])
            if code == 0 and "copy the file again" not in words and "left out" not in words:
                wrong.append(f"{command} {path}: says nothing of {error}")
    if not is_read:
        return [*wrong, *sandbox.stray()]
    run("view", str(path), "--width", "100", "--height", "30")
    for analysis in choose.sample(ANALYSES, 3):
        run(analysis.name.replace("_", "-"), str(path), "--format", choose.choice(FORMS))
    if choose.random() < 0.2:
        store = sandbox.out / "store"
        run("collect", str(sandbox.input), "--out", str(store), *choose.choice(((), ("--with-index",))))
        if choose.random() < 0.7 and files_in(store):
            choose.choice(STORE_DAMAGES)(store, choose)
        for command in ("ranks", "findings", "view"):
            run(command, str(store))
    if choose.random() < 0.3:
        artefact = sandbox.input / "art_dynamo_graph_break_reason_0.txt"
        artefact.write_bytes(mutate_bytes(b'reason: "a"\n' + b"1" * choose.choice((3, 5000)), choose))
        run("source", str(path), "--artefacts", str(sandbox.input))
    most = MAX_TIMES * text_size(path, kind, size) + MAX_BASE
    for ending in choose.sample(ENDINGS, 3):
        target = sandbox.out / f"x.{ending}"
        run("export", str(path), "-o", str(target))
        if target.exists() and target.stat().st_size > most:
            wrong.append(f"export {path} {ending}: {target.stat().st_size:,} bytes, more than {most:,}")
        if target.exists() and ending in TEXTS:
            text = target.read_text(encoding="utf-8")
            if foreign := [one for one in text if _is_control(one)]:
                wrong.append(f"export {path} {ending}: has {foreign[:5]!r}")
        if target.exists() and ending == "pftrace":
            run("info", str(target), "--json")
    return [*wrong, *sandbox.stray()]


def fuzz_invariants(seconds: float, seed: int, folder: Path, most: int | None = None) -> FuzzResult:
    """Try inputs for so many seconds, or so many inputs at most; each is known by seed and number."""
    result = FuzzResult()
    deadline = time.monotonic() + seconds
    before = os.getcwd()
    with source_lines_in(folder):
        sandbox = Sandbox(folder)
        os.chdir(sandbox.out)
        try:
            while time.monotonic() < deadline and (most is None or result.inputs < most):
                number = result.inputs
                result.inputs += 1
                began = time.process_time()
                for wrong in wrongs(sandbox, random.Random(f"{seed} {number}"), result):
                    result.note(f"seed {seed}, input {number}: {wrong}")
                if (took := time.process_time() - began) > 2 * MAX_SECONDS:
                    result.note(f"seed {seed}, input {number}: took {took:.0f} s of processor time")
        finally:
            os.chdir(before)
    return result


if __name__ == "__main__":
    fuzz_seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    fuzz_seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as scratch:
        outcome = fuzz_invariants(fuzz_seconds, fuzz_seed, Path(scratch))
    counts = f"{outcome.inputs} inputs, {outcome.commands} commands, {len(outcome.wrong)} wrong"
    print(f"seed {fuzz_seed}: {counts}")
    sys.exit(bool(outcome.wrong))
