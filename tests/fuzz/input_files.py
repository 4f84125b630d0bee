"""Damaged traces, snapshots, logs, marks, limits and settings: each is read, or refused in one clear line.

    python -m tests.fuzz.input_files [SECONDS] [SEED]

Inputs are mutants of sound files: bytes are flipped, cut, repeated, or replaced by tokens of the format, and
values of JSON by values that are odd. For each the commands that read such a file run in this process; an
exit code of the documented ones, no traceback, no foreign byte for the terminal and a bounded processor time
is all that is asked. Of traces that are read, the terms of the event sum must add up, and the native scanner
and the plain one must make the same index of them, byte for byte.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.boundary_times import BOUNDARY_TEXTS
from tests.events import every_phase
from tests.forms import kineto_classic, kineto_new
from tests.reading import index_differences
from tests.snapshots import pickled, snapshot_of, training
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.tui.cli.main import main
from tracelane.tui.config import read_config

CODES = {0, 1, 2, 64}
TRACE = "t.json"
MAX_SECONDS = 20.0
"""Of processor time, for one command on one small file."""
TOKENS = (
    *(bytes([byte]) for byte in b'{}[]",:\\\n\r\t -.0e'),
    *(b'"ph"', b'"ts":', b'{"ph":"X",', b"]]}}", b"null", b"NaN", b"1e999", b"9" * 400, b"\\u12", b"\\ud800"),
    *(b"\x00" * 8, b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b]52;c;AAAA\x07", b"\xc2\x9b", b"[" * 300, b"{" * 300),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, 2**64, 10**400, -(10**30), 0.5, 1e308, -0.0),
    *(
        "",
        " ",
        "1",
        "1e5",
        "nan",
        "x" * 5000,
        "\x1b[2J",
        "\u202e",
        "\ud800",
        [],
        {},
        [[[]]],
        {"a": {"b": [1]}},
    ),
    *map(json.loads, BOUNDARY_TEXTS),
)


@dataclass
class FuzzResult:
    """What came of a run."""

    inputs: int = 0
    commands: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, wrong: str) -> None:
        """Keep and print what is wrong."""
        self.wrong.append(wrong)
        print(wrong, file=sys.stderr)


def mutate_bytes(data: bytes, choose: random.Random) -> bytes:
    """Return the data with one to six damages."""
    for _ in range(choose.randint(1, 6)):
        at = choose.randrange(len(data) + 1)
        end = min(len(data), at + choose.choice((0, 1, 4, 30, 400)))
        kind = choose.randrange(6)
        if kind == 0:
            data = data[:at] + choose.choice(TOKENS) + data[end:]
        elif kind == 1:
            data = data[:at] + choose.choice(TOKENS) + data[at:]
        elif kind == 2:
            data = data[:at] + data[end:]
        elif kind == 3:
            data = data[:end] + data[at:end] * choose.choice((1, 3, 50)) + data[end:]
        elif kind == 4 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << choose.randrange(8))]) + data[at + 1 :]
        elif choose.random() < 0.2:
            data = data[:at]
    return data


def mutate_json(value: Any, choose: random.Random) -> Any:
    """Return a JSON value of which some inner values are odd, gone, doubled, or under another key."""
    if isinstance(value, dict):
        result = {key: mutate_json(inner, choose) for key, inner in value.items()}
        if result and choose.random() < 0.02:
            del result[choose.choice(list(result))]
        if result and choose.random() < 0.02:
            result[choose.choice(list(result))] = choose.choice(ODD_VALUES)
        return result
    if isinstance(value, list):
        result_list = [mutate_json(inner, choose) for inner in value]
        if result_list and choose.random() < 0.05:
            result_list.insert(choose.randrange(len(result_list)), choose.choice([*ODD_VALUES, *result_list]))
        return result_list
    return choose.choice(ODD_VALUES) if choose.random() < 0.01 else value


class Inputs:
    """Sound files, and the commands that read each kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trace = small_file(folder)
        self.settings = folder / "config" / "tracelane" / "config.toml"
        self.settings.parent.mkdir(parents=True)
        demo = write_demo(folder / "demo")
        self.demo = demo[0]
        self.log = (folder / "demo" / "aiu-smi.log").read_bytes()[:20_000]
        self.kinds: tuple[Callable[[random.Random], Iterator[Sequence[str]]], ...] = (
            self.traces,
            self.traces,
            self.traces,
            self.snapshots,
            self.logs,
            self.settings_files,
        )

    def traces(self, choose: random.Random) -> Iterator[Sequence[str]]:
        """Write a damaged trace and yield commands that read it."""
        events = every_phase(choose.randrange(1000), choose.choice((5, 40, 200)))
        if choose.random() < 0.5:
            data = json.dumps(mutate_json({"traceEvents": events}, choose)).encode("utf-8", "surrogatepass")
        else:
            layout = choose.choice(("object", "array", "lines", "new", "classic"))
            data = laid_out(events, layout)
        if choose.random() < 0.7:
            data = mutate_bytes(data, choose)
        path = self.folder / TRACE
        path.write_bytes(data)
        index = ["--index-dir", str(self.folder / "index")]
        yield ["info", str(path), "--json", "--force", *index]
        commands = (
            ["view", str(path), "--width", "100", "--height", "30"],
            ["doctor", str(path), "--json"],
            ["slices", str(path), "--format", "csv"],
            ["steps", str(path)],
            ["ops", str(path), "--by", "step", "--format", "md"],
            ["kernels", str(path), "--json"],
            ["findings", str(path)],
            ["memory", str(path)],
            ["compile", str(path)],
            ["summary", str(path), "--json"],
            ["report", str(path)],
        )
        for command in choose.sample(commands, 3):
            yield [*command, *index]

    def snapshots(self, choose: random.Random) -> Iterator[Sequence[str]]:
        """Write a damaged snapshot of PyTorch's memory and yield commands that read it."""
        snapshot = mutate_json(snapshot_of(training(choose.randrange(1, 5))), choose)
        data = pickled(snapshot, choose.randrange(2, 6))
        if choose.random() < 0.7:
            data = mutate_bytes(data, choose)
        path = self.folder / "snapshot.pickle"
        path.write_bytes(data)
        index = ["--index-dir", str(self.folder / "index")]
        yield ["info", str(path), "--json", "--force", *index]
        first = choose.choice(("allocators", "peak", "kept", "steps", "stacks", "segments", "curve"))
        yield ["memory", str(path), "--first", first, *index]
        yield ["view", str(path), "--width", "100", "--height", "30", *index]

    def logs(self, choose: random.Random) -> Iterator[Sequence[str]]:
        """Write a damaged telemetry log and yield commands that lay it over a trace."""
        path = self.folder / "aiu-smi.log"
        path.write_bytes(mutate_bytes(self.log, choose))
        index = ["--index-dir", str(self.folder / "sound")]
        yield ["telemetry", str(self.demo), "--smi", str(path), "--json", *index]
        yield ["view", str(self.demo), "--smi", str(path), "--width", "100", *index]

    def settings_files(self, choose: random.Random) -> Iterator[Sequence[str]]:
        """Write damaged marks, limits and settings, and yield commands that read them."""
        marks = {
            "schema": 1,
            "traces": [str(self.trace)],
            "marks": [{"name": "a", "start_ns": 5, "end_ns": 9}],
        }
        (self.folder / "marks.json").write_bytes(mutate_bytes(json.dumps(marks).encode(), choose))
        limits = (
            b'[max]\n"kernels.calls" = 400\n"device.busy_ns" = "250ms"\n[min]\n"device.busy_share" = "80%"\n'
        )
        (self.folder / "limits.toml").write_bytes(mutate_bytes(limits, choose))
        settings = b'theme = "light"\neighths = true\n[cache]\nlimit = "20G"\n[keys]\nzoom-in = "z,ctrl+z"\n'
        self.settings.write_bytes(mutate_bytes(settings, choose))
        read_config(self.settings)
        yield ["cache", "list"]
        index = ["--index-dir", str(self.folder / "sound")]
        yield ["view", str(self.trace), "--marks", str(self.folder / "marks.json"), *index]
        yield ["check", str(self.trace), "--limits", str(self.folder / "limits.toml"), *index]
        self.settings.unlink()


def laid_out(events: list[Any], layout: str) -> bytes:
    """Return events in one of the layouts that profilers write."""
    if layout == "object":
        return json.dumps({"traceEvents": events}, separators=(",", ":")).encode()
    if layout == "array":
        return b"[\n" + b",\n".join(json.dumps(one).encode() for one in events) + b"\n]"
    if layout == "lines":
        return b"\n".join(json.dumps(one).encode() for one in events)
    return (kineto_new if layout == "new" else kineto_classic)(events)


def problem_of(arguments: Sequence[str]) -> str:
    """Run a command in this process; return what is wrong with how it went, "" for nothing."""
    out, errors = io.StringIO(), io.StringIO()
    begin = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main(list(arguments))
        except Exception as error:
            return f"raised {error!r}"
    seconds = time.process_time() - begin
    texts = (out.getvalue(), errors.getvalue())
    if code not in CODES:
        return f"exit code {code}: {texts[1][-300:]}"
    if any("should not have happened" in text or "Traceback" in text for text in texts):
        return texts[1][-300:]
    foreign = [character for text in texts for character in text if _is_control(character)]
    if foreign:
        return f"writes {foreign[:5]!r} to the terminal"
    if seconds > MAX_SECONDS:
        return f"took {seconds:.1f} s of processor time"
    if arguments[0] == "doctor" and code < 2 and '"event-sum"' in texts[0]:
        return "the terms of the event sum do not add up"
    return ""


def _is_control(character: str) -> bool:
    code = ord(character)
    return (code < 32 and character not in "\n\t\r") or 127 <= code < 160 or 0x202A <= code <= 0x202E


def fuzz_files(seconds: float, seed: int, folder: Path, most: int | None = None) -> FuzzResult:
    """Try inputs for so many seconds, or so many inputs at most; each is known by seed and number."""
    inputs, result = Inputs(folder), FuzzResult()
    deadline = time.monotonic() + seconds
    with source_lines_in(folder):
        run_inputs(inputs, result, deadline, seed, most)
    return result


@contextlib.contextmanager
def source_lines_in(folder: Path) -> Iterator[None]:
    """Have settings and cache lie in a folder."""
    before = dict(os.environ)
    os.environ.update(XDG_CONFIG_HOME=str(folder / "config"), XDG_CACHE_HOME=str(folder / "cache"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_inputs(inputs: Inputs, result: FuzzResult, deadline: float, seed: int, most: int | None) -> None:
    """Make one input after the other and note what is wrong with what commands make of it."""
    number = 0
    while time.monotonic() < deadline and (most is None or number < most):
        choose = random.Random(f"{seed} {number}")
        number += 1
        result.inputs += 1
        kind = choose.choice(inputs.kinds)
        for arguments in kind(choose):
            result.commands += 1
            if wrong := problem_of(arguments):
                result.note(f"seed {seed}, input {number - 1}: {' '.join(arguments)}: {wrong}")
        if kind == inputs.traces:
            for difference in index_differences(inputs.folder / TRACE, inputs.folder):
                result.note(f"seed {seed}, input {number - 1}: the readers differ in {difference}")
        shutil.rmtree(inputs.folder / "index", ignore_errors=True)


if __name__ == "__main__":
    fuzz_seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    fuzz_seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as name:
        outcome = fuzz_files(fuzz_seconds, fuzz_seed, Path(name))
    print(
        f"seed {fuzz_seed}: {outcome.inputs} inputs, {outcome.commands} commands, {len(outcome.wrong)} wrong"
    )
    sys.exit(bool(outcome.wrong))
