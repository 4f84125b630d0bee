"""Compiles the native core (core/native/*.c) into one shared library without Python's API.

    python bundle/native_build.py [--platform s390x] [--out FILE] [--install-compiler]

For this machine with $CC, else cc, gcc or clang on the PATH, else with the `ziglang` package where it is
installed (with --install-compiler it is, by pip: 440 MB); for other platforms with that package.
Where there is no compiler, or it fails, a notice says so; tracelane works without the library, only slower.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "core" / "native"
STEM = "_tracelane.native"
COMMON_FLAGS = (
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-shared",
)
COMPILERS = ("cc", "gcc", "clang")
ZIG = "ziglang"
"""A package of the package index that holds a C compiler, with the headers of C libraries."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What a wheel is made for: the tag of the wheel, and how zig is told to compile for it."""

    tag: str
    zig_target: str
    flags: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """How a shared library ends there."""
        return ".dylib" if self.tag.startswith("macosx") else ".so"


PLATFORMS = {
    "x86_64": Platform("manylinux_2_17_x86_64.manylinux2014_x86_64", "x86_64-linux-gnu.2.17"),
    "aarch64": Platform("manylinux_2_17_aarch64.manylinux2014_aarch64", "aarch64-linux-gnu.2.17"),
    "s390x": Platform("manylinux_2_17_s390x.manylinux2014_s390x", "s390x-linux-gnu.2.17"),
    # The library of zig for Power has the long double of IBM only, and begins with glibc 2.19.
    "ppc64le": Platform("manylinux_2_19_ppc64le", "powerpc64le-linux-gnu.2.19", ("-mabi=ibmlongdouble",)),
    # Without a name of its own the library holds the path of the folder that it was compiled in.
    "arm64": Platform(
        "macosx_11_0_arm64", "aarch64-macos.11.0", ("-Wl,-install_name,@rpath/_tracelane.native.dylib",)
    ),
}
"""Machine, as `platform.machine()` names it there -> its platform; arm64 is a Mac, aarch64 Linux."""


class CompileError(Exception):
    """Why there is no library, in one line."""


def compile_here(out: Path) -> str:
    """Compile for this machine to `out` and return the tag of a wheel that holds it; CompileError where no
    compiler is there or it fails.
    """
    if os.name != "posix":
        raise CompileError(f"{sys.platform} is no platform that it is written for")
    _compile([*compiler(), *COMMON_FLAGS], out, is_for_here=True)
    machine = platform.machine()
    return f"macosx_11_0_{machine}" if sys.platform == "darwin" else f"{sys.platform}_{machine}"


def compiler() -> list[str]:
    """Return the command of this machine's C compiler, else of zig's; CompileError where there is none."""
    given = os.environ.get("CC")
    if given:
        return shlex.split(given)
    for name in COMPILERS:
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec(ZIG) is not None:
        return _zig()
    raise CompileError(f"no C compiler: neither $CC nor {', '.join(COMPILERS)} on the PATH, nor {ZIG} of pip")


def _zig() -> list[str]:
    return [sys.executable, "-m", ZIG, "cc", "-s"]


def install_compiler() -> None:
    """Install zig beside this Python where there is no compiler; where pip cannot, all stays as it is."""
    try:
        compiler()
    except CompileError:
        print(f"no C compiler on the PATH: pip installs {ZIG}, 440 MB", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ZIG]
        subprocess.run(pip, stderr=subprocess.DEVNULL, check=False)
        importlib.invalidate_caches()


def compile_for(machine: str, out: Path) -> str:
    """Compile for a platform to `out` with zig and return the tag of a wheel that holds it; without zig this
    machine's own compiler can serve.
    """
    target = PLATFORMS[machine]
    if importlib.util.find_spec(ZIG) is not None:
        zig = [*_zig(), "-target", target.zig_target]
        _compile([*zig, *COMMON_FLAGS, *target.flags], out, is_for_here=False)
        return target.tag
    if machine == platform.machine():
        return compile_here(out)
    raise CompileError(f"compiling for {machine} needs the package {ZIG}")


def _compile(command: Sequence[str], out: Path, is_for_here: bool) -> None:
    """Compile beside `out` and rename, so that nobody sees half a library; remove it after a failure."""
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    out.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        compiled = Path(folder) / out.name
        try:
            done = subprocess.run(
                [*command, *sources, "-o", str(compiled)],
                capture_output=True,
                encoding="utf-8",
                errors="replace",  # a compiler speaks the language and encoding of its user
                check=False,
            )
        except OSError as error:
            raise CompileError(f"{command[0]} cannot be run: {error.strerror}") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise CompileError(f"{command[0]} failed: {lines[0] if lines else f'exit {done.returncode}'}")
        if is_for_here:
            _try_to_load(compiled)
        compiled.replace(out)


def _try_to_load(library: Path) -> None:
    """Raise CompileError where this Python cannot load it: made for another machine or C library."""
    try:
        ctypes.CDLL(str(library)).tl_version()
    except (OSError, AttributeError) as error:
        raise CompileError(f"what was compiled cannot be loaded: {error}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, or say in a line why not; to be without a library is no failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", choices=PLATFORMS, help="compile for it with zig; this machine without")
    parser.add_argument("--out", type=Path, help="the library; beside its sources without")
    parser.add_argument("--install-compiler", action="store_true", help="by pip, where there is none")
    options = parser.parse_args(arguments)
    if options.install_compiler:
        install_compiler()
    suffix = PLATFORMS[options.platform].suffix if options.platform else local_suffix()
    out = options.out or SOURCES / f"{STEM}{suffix}"
    try:
        if options.platform:
            compile_for(options.platform, out)
        else:
            compile_here(out)
    except CompileError as error:
        print(f"the native core is not compiled, without it reading takes eight times as long: {error}")
    return 0


def local_suffix() -> str:
    """Return how a shared library ends on this machine."""
    return ".dylib" if sys.platform == "darwin" else ".so"


if __name__ == "__main__":
    sys.exit(main())
