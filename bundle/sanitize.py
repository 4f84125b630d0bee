"""Runs the tests of the native core with its C code under AddressSanitizer and UndefinedBehaviorSanitizer.

What is given are arguments for pytest; without any the tests of scanner and builder run, in under a minute.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from native_build import COMMON_FLAGS, SOURCES, STEM, CompileError, compiler, local_suffix

ROOT = SOURCES.parent.parent
FLAGS = (
    *(flag for flag in COMMON_FLAGS if flag != "-O3"),
    *("-O1", "-g", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
RUNTIMES = ("libasan.so", "libclang_rt.asan-x86_64.so", "libclang_rt.asan-aarch64.so", "libclang_rt.asan.so")
"""The shared sanitizer of gcc, and clang's names for it: Python has none, so it is loaded before all else."""
TESTS = (
    "tests/core/native",
    "tests/core/test_scanner.py",
    "tests/core/test_time_limit.py",
    "-k",
    "not every_trace",
)
MUTANTS, FEW = "TRACELANE_MUTANTS", "400"
"""How many mutants of traces the scanner's tests try: fewer than by default, as all takes longer here."""
LIBRARY = "TRACELANE_NATIVE"
"""By this variable core/native/library.py takes another library than the one beside it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile with sanitizers and run the tests; a notice where there is no compiler that has them."""
    tests = list(sys.argv[1:] if arguments is None else arguments) or list(TESTS)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / f"{STEM}{local_suffix()}"
        try:
            command = compiler()
            runtime = _runtime(command)
            _compile(command, library)
        except CompileError as error:
            print(f"the native core is not tested with sanitizers: {error}")
            return 0
        environment = {
            **os.environ,
            LIBRARY: str(library),
            "LD_PRELOAD": runtime,
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            MUTANTS: os.environ.get(MUTANTS, FEW),
        }
        loaded = "import tracelane.core.native.library as l, sys; sys.exit(l.native_library().reason or None)"
        done = subprocess.run([sys.executable, "-c", loaded], env=environment, check=False)
        if done.returncode:
            return done.returncode
        pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
        return subprocess.run(pytest, cwd=ROOT, env=environment, check=False).returncode


def _compile(command: Sequence[str], library: Path) -> None:
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    done = subprocess.run(
        [*command, *FLAGS, *sources, "-o", str(library)], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise CompileError(f"{shlex.join(command)} has no sanitizers: {done.stderr.strip().splitlines()[-1]}")


def _runtime(command: Sequence[str]) -> str:
    """Return the path of the shared sanitizer that belongs to a compiler."""
    for name in RUNTIMES:
        done = subprocess.run(
            [*command, f"-print-file-name={name}"], capture_output=True, encoding="utf-8", check=False
        )
        path = Path(done.stdout.strip())
        if path.is_absolute() and path.exists():
            return str(path)
    raise CompileError(f"{shlex.join(command)} brings no shared sanitizer")


if __name__ == "__main__":
    sys.exit(main())
