"""Packs tracelane and what it needs, as wheels with an installer, for machines without a network.

    python bundle/make.py [--platform s390x] [--python 3.12 …] [--out dist]

Wheels of pure Python fit every machine. Of the compiled ones (orjson, numpy, ijson, isal, zstandard) those
of the platform and the Python versions asked for are taken; where there is no wheel of them numpy and orjson
are left to the image, ijson is built without its compiled part, isal and zstandard are left out. On IBM Z and
Power numpy always is the image's: torch brings it there.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
INSTALLER = Path(__file__).with_name("install.sh")
COMPILED = ("numpy", "orjson", "isal", "ijson")
PURE_TOO = {"ijson": {"IJSON_BUILD_YAJL2C": "0"}}
"""What works without its compiled part as well, more slowly, and what to say to build it so."""
ZSTD = "zstandard"
"""What the extra `zstd` installs for Pythons before this minor version, which bring it themselves."""
ZSTD_INCLUDED = 14
FROM_IMAGE = ("s390x", "ppc64le")
"""Machines whose torch images bring numpy, for which there are no wheels."""
WHEEL = "TRACELANE_WHEEL"
"""The variable by which hatch_hook.py knows what a wheel is for."""
GLIBC = 28
"""Wheels for glibc 2.N are taken where no other is asked for: that of RHEL 8 and later."""
OLDEST_GLIBC = 17


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a bundle and tell what is in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", default=platform.machine(), help="s390x, or manylinux_2_28_s390x")
    parser.add_argument("--python", action="append", metavar="3.N", help="versions to pack for; this one")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(arguments)
    pythons = options.python or [f"{sys.version_info.major}.{sys.version_info.minor}"]
    try:
        machine, tags = tags_of(options.platform)
        folder = Bundle(machine, tags, pythons).write(options.out)
    except BundleError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    archive = pack(folder, folder.parent)
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, install with `sh {folder.name}/install.sh DIR`")
    return 0


def pack(folder: Path, out: Path) -> Path:
    """Pack a folder into a .tar.gz that holds nothing of this machine: the same files give the same bytes."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    archive = out / f"{folder.name}.tar.gz"
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", encoding="utf-8") as files,
    ):
        files.add(folder, folder.name, filter=plain)  # its entries in order of their names
    return archive


class BundleError(Exception):
    """What went wrong, in a sentence."""


def tags_of(platform_name: str) -> tuple[str, list[str]]:
    """Return the machine of a platform and the tags of wheels that run there, the newest first."""
    match = re.fullmatch(r"(?:manylinux_2_(\d+)_)?([a-z0-9]+(?:_64)?)", platform_name)
    if match is None:
        raise BundleError(f"{platform_name!r} is no platform: write s390x, or manylinux_2_28_s390x")
    machine = match[2]
    newest = int(match[1] or GLIBC)
    if newest < OLDEST_GLIBC:
        raise BundleError(f"{platform_name}: there are no wheels for a glibc older than 2.{OLDEST_GLIBC}")
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, OLDEST_GLIBC - 1, -1)]
    return machine, [*tags, f"manylinux2014_{machine}"]


class Bundle:
    """The wheels for one kind of machine and some versions of Python."""

    def __init__(self, machine: str, tags: Sequence[str], pythons: Sequence[str]) -> None:
        self.machine, self.tags, self.pythons = machine, tuple(tags), tuple(pythons)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.version = str(project["version"])
        needed = [*project["dependencies"], *project["optional-dependencies"]["zstd"]]
        self.needed = {need.name: need for need in map(Requirement, needed) if self._holds(need)}
        pins = [
            line
            for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
            if line[:1] not in ("", "#")
        ]
        self.pins = {pin.name: pin for pin in map(Requirement, pins) if self._holds(pin)}
        self.left_out: list[str] = []
        self.extras = ""

    def write(self, out: Path) -> Path:
        """Write the folder anew and return it."""
        folder = out / f"tracelane-{self.version}-{self.machine}"
        shutil.rmtree(folder, ignore_errors=True)
        wheels = folder / "wheels"
        wheels.mkdir(parents=True)
        self._fetch_pure(wheels)
        _build_own(self.machine, wheels)
        for name in COMPILED:
            if name in self.needed:
                self._fetch_compiled(name, wheels)
        self._fetch_zstd(wheels)
        text = INSTALLER.read_text(encoding="utf-8")
        for name, value in (
            ("VERSION", self.version),
            ("MACHINE", self.machine),
            ("PYTHONS", " ".join(self.pythons)),
            ("LEFT_OUT", " ".join(self.left_out)),
            ("EXTRAS", self.extras),
        ):
            text = text.replace(f"@{name}@", value)
        (folder / INSTALLER.name).write_text(text, encoding="utf-8")
        (folder / INSTALLER.name).chmod(0o755)
        names = sorted(path.name for path in wheels.iterdir())
        print("\n".join(f"  {name}" for name in names))
        if self.left_out:
            print(f"left to the image of {self.machine}: {', '.join(self.left_out)}")
        return folder

    def _holds(self, need: Requirement) -> bool:
        """Tell whether a requirement is one on the machine."""
        about = {"platform_machine": self.machine, "sys_platform": "linux", "platform_system": "Linux"}
        about["python_version"] = min(self.pythons, key=_minor)
        return need.marker is None or need.marker.evaluate(about)

    def _pinned(self, name: str) -> str:
        return f"{name}{self.pins[name].specifier}" if name in self.pins else str(self.needed[name])

    def _fetch_pure(self, wheels: Path) -> None:
        """Fetch what is pure Python, with all that it needs in turn."""
        with tempfile.TemporaryDirectory() as scratch:
            pins = Path(scratch) / "pins.txt"
            pins.write_text(
                "".join(f"{name}{pin.specifier}\n" for name, pin in self.pins.items()), encoding="utf-8"
            )
            names = [self._pinned(name) for name in self.needed if name not in (*COMPILED, ZSTD)]
            pip("download", "--only-binary=:all:", "--dest", str(wheels), "--constraint", str(pins), *names)
        compiled = [path.name for path in wheels.iterdir() if not path.name.endswith("-none-any.whl")]
        if compiled:
            raise BundleError(
                f"{', '.join(compiled)} is no pure Python: name it among the compiled ones here"
            )

    def _fetch_compiled(self, name: str, wheels: Path) -> None:
        """Fetch a package for each version of Python; leave it out where one has no wheel."""
        if name == "numpy" and self.machine in FROM_IMAGE:
            self.left_out.append(name)
            return
        missing = [version for version in self.pythons if not self._fetched(name, version, wheels)]
        if missing:
            for wheel in wheels.glob(f"{name.replace('-', '_')}-*.whl"):
                wheel.unlink()
            if name in PURE_TOO:
                build = ["--no-deps", "--no-binary", name, "--no-cache-dir", "--wheel-dir", str(wheels)]
                pip("wheel", *build, self._pinned(name), environment=PURE_TOO[name])
            else:
                self.left_out.append(name)

    def _fetch_zstd(self, wheels: Path) -> None:
        """Fetch what reads zstd for the Pythons that need a package for it, for all of them or none."""
        versions = [version for version in self.pythons if _minor(version) < ZSTD_INCLUDED]
        if all(self._fetched(ZSTD, version, wheels) for version in versions):
            self.extras = "[zstd]"
            return
        for wheel in wheels.glob(f"{ZSTD}-*.whl"):
            wheel.unlink()

    def _fetched(self, name: str, version: str, wheels: Path) -> bool:
        where = [part for tag in self.tags for part in ("--platform", tag)]
        kind = ["--only-binary=:all:", "--implementation", "cp", "--python-version", version, *where]
        try:
            pip("download", "--no-deps", "--dest", str(wheels), *kind, self._pinned(name))
        except BundleError as error:
            if "o matching distribution" not in str(error):
                raise
            return False
        return True


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _build_own(machine: str, wheels: Path) -> None:
    """Build tracelane's wheel for a machine; the one without a native core where that cannot be compiled."""
    try:
        build_wheel(machine, wheels)
    except BundleError as error:
        reason = str(error).splitlines()[-1]
        print(f"tracelane is packed without its native core, it reads more slowly there: {reason}")
        build_wheel("any", wheels)


def build_wheel(machine: str, wheels: Path) -> None:
    """Build the wheel of tracelane for a machine of native_build.py's PLATFORMS, or for `any`."""
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
    pip("wheel", *options, str(ROOT), environment={WHEEL: machine})


def pip(*arguments: str, environment: dict[str, str] | None = None) -> None:
    """Run pip; BundleError with what it says where it fails."""
    command = [sys.executable, "-m", "pip", arguments[0], "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, *arguments[1:]],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise BundleError(done.stderr.strip() or f"pip {arguments[0]} failed")


if __name__ == "__main__":
    sys.exit(main())
