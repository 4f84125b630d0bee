"""Runs the tests of core and tui, or those named, on each Python with the lowest and the newest dependencies.

    python tests/matrix.py [--python 3.12 …] [--versions lowest|newest] [tests …]

Only versions that have wheels for that Python count. The environments are made by uv in build/matrix. A
Python that is not here and that uv cannot fetch is named as not run; that is no failure if one has run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
NAMED = ("numpy", "textual", "rich", "orjson", "ijson", "click", "isal", "zstandard")
"""Packages whose versions the result names."""
PROCESSES = "2"
TESTS = ["tests/core", "tests/tui"]
"""The viewer's too: it uses Textual's inside, which any release may change."""


class NotRunError(Exception):
    """Why there is no environment, in a sentence."""


def main() -> int:
    """Run what was asked for and say how each went; 1 where something failed or nothing ran."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=PYTHONS, help="these only")
    parser.add_argument("--versions", action="append", choices=RESOLUTIONS, help="these only")
    parser.add_argument("tests", nargs="*", default=TESTS)
    options = parser.parse_args()
    lines, codes = [], []
    for python in options.python or PYTHONS:
        for versions in options.versions or RESOLUTIONS:
            name = f"Python {python}, {versions} versions"
            print(f"== {name}", flush=True)
            try:
                folder = environment(python, versions)
            except NotRunError as error:
                lines.append(f"{name}: not run: {error}")
                continue
            command = [folder / "bin" / "python", "-m", "pytest", "-n", PROCESSES, "--dist", "loadfile"]
            codes.append(subprocess.run([*command, *options.tests], cwd=ROOT, check=False).returncode)
            lines.append(f"{name}: {'passed' if codes[-1] == 0 else 'FAILED'} with {installed(folder)}")
    print("\n".join(lines))
    return 1 if any(codes) or not codes else 0


def environment(python: str, versions: str) -> Path:
    """Return a new virtual environment with tracelane and what its tests need; NotRunError."""
    folder = ROOT / "build" / "matrix" / f"{python}-{versions}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    uv("venv", "--clear", "--python", python, str(folder))
    requirements = folder / "versions.txt"
    to = ["--python", str(folder / "bin" / "python"), "--only-binary", ":all:"]
    project = str(ROOT / "pyproject.toml")
    resolution = ["--resolution", RESOLUTIONS[versions], "--extra", "zstd", "--no-deps"]
    uv("pip", "compile", "--quiet", *to, *resolution, project, "--output-file", str(requirements))
    tests = tomllib.loads(Path(project).read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        "test"
    ]
    uv(
        "pip",
        "install",
        *to,
        "--requirements",
        str(requirements),
        *(each for each in tests if "zstandard" not in each),
    )
    uv("pip", "install", *to[:2], "--no-deps", "--reinstall-package", "tracelane", str(ROOT))
    return folder


def installed(folder: Path) -> str:
    """Return the versions of dependencies in an environment."""
    lines = uv("pip", "freeze", "--python", str(folder / "bin" / "python")).splitlines()
    versions = dict(line.split("==") for line in lines if "==" in line)
    return ", ".join(f"{name} {versions[name]}" for name in NAMED if name in versions)


def uv(*arguments: str) -> str:
    """Run uv and return what it prints; NotRunError with its last line where it fails."""
    own = Path(sys.executable).with_name("uv")
    command = [str(own) if own.exists() else "uv", *arguments]
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    try:
        done = subprocess.run(command, env=environ, capture_output=True, encoding="utf-8", check=False)
    except OSError as error:
        raise NotRunError(f"uv cannot be run ({error.strerror})") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise NotRunError(
            next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "uv failed")
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
