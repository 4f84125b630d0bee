"""Packs a release: the sdist, a wheel per platform, bundles for machines without a network, and checksums.

    python bundle/release.py [--platform s390x …] [--python 3.12 …] [--out dist/release] [--once]

Everything is packed twice, into two folders, and compared: the same files must come out, byte by byte.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from make import ROOT, Bundle, BundleError, build_wheel, pack, tags_of
from native_build import PLATFORMS

SUMS = "SHA256SUMS"
ANY = "any"
NO_ADDRESS = (
    "`home` in pyproject.toml is empty: set it before publishing, or an index shows no links and pictures"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack, compare and list what was packed; 1 where packing failed or differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", action="append", help="bundles for it, as s390x; this machine without")
    parser.add_argument("--python", action="append", metavar="3.N", help="versions to bundle for; this one")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release")
    parser.add_argument("--once", action="store_true", help="pack once, without the comparison")
    parser.add_argument("--without-address", action="store_true", help="pack though `home` is empty: a trial")
    options = parser.parse_args(arguments)
    platforms = options.platform or [platform.machine()]
    pythons = options.python or [f"{sys.version_info.major}.{sys.version_info.minor}"]
    if not project_address() and not options.without_address:
        print(f"release: {NO_ADDRESS}", file=sys.stderr)
        return 1
    shutil.rmtree(options.out, ignore_errors=True)
    try:
        write_release(options.out, platforms, pythons)
        if not options.once:
            with tempfile.TemporaryDirectory() as folder:
                write_release(Path(folder), platforms, pythons)
                differing = differences(options.out, Path(folder))
            if differing:
                raise BundleError(f"packed twice, these differ: {', '.join(differing)}")
    except BundleError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print((options.out / SUMS).read_text(encoding="utf-8"), end="")
    print(f"{options.out}: {'packed once' if options.once else 'packed twice, the same bytes'}")
    return 0


def project_address() -> str:
    """Return where the project's repository can be found, "" as long as pyproject.toml does not say."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    return str(settings["metadata"]["hooks"]["custom"]["home"])


def write_release(out: Path, platforms: Sequence[str], pythons: Sequence[str]) -> None:
    """Write all files of a release, and their checksums, into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    build_sdist(out)
    for machine in (*PLATFORMS, ANY):
        build_wheel(machine, out)
    for name in platforms:
        machine, tags = tags_of(name)
        with tempfile.TemporaryDirectory() as folder:
            pack(Bundle(machine, tags, pythons).write(Path(folder)), out)
    sums = [f"{digest}  {name}\n" for name, digest in digests(out).items()]
    (out / SUMS).write_text("".join(sums), encoding="utf-8")


def build_sdist(out: Path) -> None:
    """Build the sdist of this checkout. Raises BundleError."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise BundleError(f"the sdist cannot be built: {done.stderr.strip()}")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each packed file by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != SUMS
    }


def differences(one: Path, other: Path) -> list[str]:
    """Return the names of files that are not the same in two folders."""
    first, second = digests(one), digests(other)
    return [name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)]


if __name__ == "__main__":
    sys.exit(main())
