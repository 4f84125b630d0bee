"""The C core in one process under ASan and UBSan: scanned, built, inflated, and held against what it means.

    python -m tests.fuzz.native_core [SECONDS] [SEED]
    python -m tests.fuzz.native_core FILE…

Inputs are mutants of the texts in `corpus`, and of those that reached code which none before them had
reached; native_core.c makes and tries them, some 2,000 a second. Seconds are of processor time. An input that
breaks something is written to a file, which the second form tries again. Nothing but a C compiler that has
sanitizers is needed; where there is none, that is said.
"""

from __future__ import annotations

import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bundle.native_build import SOURCES, CompileError, compiler
from bundle.sanitize import FLAGS

FOLDER = Path(__file__).resolve().parent
HARNESS = FOLDER / "native_core.c"
CORPUS = FOLDER / "corpus"
EVERYTHING = 1 << 62
COVERAGE = "-fsanitize-coverage=trace-pc"
"""Has the harness told of every branch of the C core."""
OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=1:quarantine_size_mb=8",
    "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
}
_HEADER = struct.Struct("=QQ")  # of the mapped file: number and size of the input


@dataclass(frozen=True)
class NativeRun:
    """What came of a run: inputs, seconds of processor time, what was found and the input that shows it."""

    inputs: int
    seconds: float
    wrong: str = ""
    text: bytes = b""


def compile_harness(folder: Path, sources: Path = SOURCES, sound: Path | None = None) -> Path:
    """Compile the harness with the C core of `sources`; CompileError where no compiler has sanitizers. Where
    `sound` is a folder into which that of SOURCES was compiled, only files that differ from it are.
    """
    flags = [flag for flag in FLAGS if flag not in ("-shared", "-fvisibility=hidden")]
    command, program = compiler(), folder / "native_core"
    objects = []
    for source in (sources / "scan.c", sources / "build.c", sources / "inflate.c", HARNESS):
        if sound and (source == HARNESS or source.read_bytes() == (SOURCES / source.name).read_bytes()):
            objects.append(sound / f"{source.stem}.o")
            continue
        objects.append(folder / f"{source.stem}.o")
        own = ["-D_GNU_SOURCE"] if source == HARNESS else [COVERAGE]
        _compile([*command, *flags, *own, "-c", str(source), "-o", str(objects[-1])])
    _compile([*command, *flags, *map(str, objects), "-o", str(program)])
    return program


def _compile(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise CompileError(f"{shlex.join(command)}: {done.stderr.strip()}")


def fuzz_native(
    program: Path, folder: Path, seed: int, seconds: float = EVERYTHING, most: int = EVERYTHING
) -> NativeRun:
    """Try mutants until so much processor time has passed, so many were tried, or one breaks something."""
    current = folder / "current"
    arguments = (str(seed), str(seconds), str(most), str(current), "-")
    done = _run(program, "run", *arguments, *map(str, sorted(CORPUS.iterdir())))
    counts = re.match(r"(\d+) inputs, \d+ kept, ([\d.]+) s", done.stdout)
    if counts is not None and done.returncode == 0:
        return NativeRun(int(counts[1]), float(counts[2]))
    data = current.read_bytes()
    number, size = _HEADER.unpack_from(data)
    wrong = done.stderr or f"ended with {done.returncode}, perhaps as it takes too long"
    return NativeRun(number, 0.0, wrong, data[_HEADER.size : _HEADER.size + size])


def _run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env=os.environ | OPTIONS,
    )


def main(arguments: Sequence[str]) -> int:
    """Fuzz, or try files again; return 1 where something was found."""
    with tempfile.TemporaryDirectory() as name:
        try:
            program = compile_harness(Path(name))
        except CompileError as error:
            print(f"the native core is not fuzzed: {error}")
            return 0
        if arguments and Path(arguments[0]).is_file():
            again = _run(program, "one", *arguments)
            print(again.stderr, end="", file=sys.stderr)
            return int(again.returncode != 0)
        seconds = float(arguments[0]) if arguments else 600.0
        seed = int(arguments[1]) if len(arguments) > 1 else 1
        outcome = fuzz_native(program, Path(name), seed, seconds)
    if outcome.wrong:
        path = Path(tempfile.gettempdir()) / f"native_core-{seed}-{outcome.inputs}.txt"
        path.write_bytes(outcome.text)
        print(f"{outcome.wrong}\nseed {seed}, input {outcome.inputs}: {path}", file=sys.stderr)
        return 1
    print(f"seed {seed}: {outcome.inputs} inputs in {outcome.seconds:.0f} s of processor time, nothing wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
