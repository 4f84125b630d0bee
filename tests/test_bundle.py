"""`make bundle`: wheels and an installer that need no network; `make wheels`: libraries of other machines."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.make import INSTALLER, Bundle, BundleError, main, tags_of
from bundle.native_build import COMPILERS, PLATFORMS, compile_for
from tests.corpus import later

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
BASE = Path(sys.base_prefix) / "bin" / f"python{HERE}"


def installed(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the installer where nothing but the bundle can be reached."""
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "/nowhere"}
    unreachable["PIP_NO_COMPILE"] = "1"  # byte-code of all packages takes longer to make than it saves here
    return subprocess.run(
        ["sh", str(folder / INSTALLER.name), *map(str, arguments)],
        env={**os.environ, **unreachable},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def zstd_frame(text: bytes) -> bytes:
    """Return a zstd file that holds a text of fewer than 256 bytes as it is."""
    header = b"\x28\xb5\x2f\xfd" + b"\x20" + bytes([len(text)])
    return header + (len(text) << 3 | 1).to_bytes(3, "little") + text


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def empty_bundle(folder: Path, machine: str, pythons: str, left_out: str = "") -> Path:
    text = INSTALLER.read_text(encoding="utf-8")
    for name, value in (
        ("MACHINE", machine),
        ("PYTHONS", pythons),
        ("LEFT_OUT", left_out),
        ("VERSION", "1"),
        ("EXTRAS", ""),
    ):
        text = text.replace(f"@{name}@", value)
    (folder / "wheels").mkdir()
    (folder / INSTALLER.name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "machine", "first", "count"),
    [
        ("s390x", "s390x", "manylinux_2_28_s390x", 13),
        ("x86_64", "x86_64", "manylinux_2_28_x86_64", 13),
        ("manylinux_2_34_ppc64le", "ppc64le", "manylinux_2_34_ppc64le", 19),
        ("manylinux_2_17_aarch64", "aarch64", "manylinux_2_17_aarch64", 2),
    ],
)
def test_platforms(platform: str, machine: str, first: str, count: int) -> None:
    """A platform is a machine and the oldest glibc there: wheels for it and for older ones run."""
    machine_of_tags, tags = tags_of(platform)
    assert (machine_of_tags, tags[0], tags[-1], len(tags)) == (
        machine,
        first,
        f"manylinux2014_{machine}",
        count,
    )


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["", "win-amd64", "manylinux_2_5_x86_64"])
def test_no_platforms(platform: str) -> None:
    """What is no platform, or one without wheels, is refused."""
    with pytest.raises(BundleError):
        tags_of(platform)


@pytest.mark.slow
def test_versions_of_each_machine() -> None:
    """On IBM Z and Power orjson is the last with wheels there, numpy not pinned, and no isal."""
    power, intel = Bundle("ppc64le", (), (HERE,)), Bundle("x86_64", (), (HERE,))
    assert str(power.pins["orjson"]).split(";")[0].strip() == "orjson==3.11.9" and "numpy" not in power.pins
    assert "numpy" in intel.pins and intel.pins["orjson"].specifier != power.pins["orjson"].specifier
    everywhere = {"numpy", "orjson", "ijson", "textual", "rich", "click"}
    assert set(power.needed) | {"isal"} == set(intel.needed) >= everywhere
    assert "isal" not in power.needed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "pythons", "left_out", "said"),
    [
        ("vax", HERE, "", f"these wheels are for vax, this machine is {platform.machine()}"),
        (platform.machine(), "2.7", "", f"these wheels are for Python 2.7, {sys.executable} is {HERE}"),
        (platform.machine(), HERE, "no_such_package", "there is no no_such_package for"),
        later((platform.machine(), f"3.1 {HERE}", "", "pip could not install it")),
    ],
)
def test_what_cannot_be_installed(
    tmp_path: Path, machine: str, pythons: str, left_out: str, said: str
) -> None:
    """Another machine or Python, a package that the image lacks: one sentence, and no folder is left."""
    folder = empty_bundle(tmp_path, machine, pythons, left_out)
    done = installed(folder, "--python", sys.executable, tmp_path / "env")
    assert done.returncode == 1
    assert f"install.sh: {said}" in done.stderr
    assert not (tmp_path / "env").exists()


@pytest.mark.slow
def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    """A folder that is there already stays as it is."""
    folder = empty_bundle(tmp_path, platform.machine(), HERE)
    mine = tmp_path / "env" / "mine"
    mine.mkdir(parents=True)
    done = installed(folder, "--python", sys.executable, mine.parent)
    assert done.returncode == 1 and "is there already" in done.stderr
    assert mine.is_dir()


@pytest.mark.slow
@pytest.mark.corpus
def test_a_bundle_installs_and_runs(tmp_path: Path) -> None:
    """Packed here, it installs without an index and shows the demo; without a numpy of its own it takes the
    image's, in which nothing changes, and says so where there is none.
    """
    if main(["--python", HERE, "--out", str(tmp_path)]):
        pytest.skip("the wheels cannot be fetched here")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    done = installed(folder, "--python", BASE, tmp_path / "env")
    assert done.returncode == 0, done.stderr
    program = tmp_path / "env" / "bin" / "tracelane"
    has_compiler = any(map(shutil.which, COMPILERS)) or importlib.util.find_spec("ziglang") is not None
    assert f"native core {'yes' if has_compiler else 'no'}" in output_of(program, "--version")
    packed = tmp_path / "small.json.zst"
    packed.write_bytes(zstd_frame(b'[{"ph":"X","name":"of zstd","ts":1,"dur":2}]'))
    assert "1 slice" in output_of(program, "info", packed)
    demo = tmp_path / "demo"
    output_of(program, "demo", "--out", demo, "--no-open")
    picture = output_of(program, demo, "--index-dir", tmp_path / "index")
    assert "3,481 events" in picture and "rank 1" in picture

    for wheel in (folder / "wheels").glob("numpy-*"):
        wheel.unlink()
    installer = folder / INSTALLER.name
    installer.write_text(
        installer.read_text(encoding="utf-8").replace('left_out=""', 'left_out="numpy"'), encoding="utf-8"
    )
    without = installed(folder, "--python", BASE, tmp_path / "without")
    assert without.returncode == 1 and "use --system-site-packages" in without.stderr
    where = "import numpy; print(numpy.__version__, numpy.__file__)"
    try:
        image = output_of(BASE, "-c", where)
    except subprocess.CalledProcessError:
        pytest.skip("the Python here has no numpy of its own")
    done = installed(folder, "--system-site-packages", "--python", BASE, tmp_path / "within")
    assert done.returncode == 0, done.stderr
    assert output_of(tmp_path / "within" / "bin" / "python", "-c", where) == image
    assert "slices" in output_of(
        tmp_path / "within" / "bin" / "tracelane", "info", demo / "rank0.pt.trace.json"
    )


ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "s390x": 22, "ppc64le": 21}
MACH_O_ARM64 = bytes.fromhex("cffaedfe0c000001")


@pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed: `make wheels` does that"
)
@pytest.mark.slow
@pytest.mark.parametrize("machine", PLATFORMS)
def test_a_library_per_platform(machine: str, tmp_path: Path) -> None:
    """Machine and byte order are the platform's, its functions are exported, and no symbol of a newer glibc
    than the tag names is needed.
    """
    library = tmp_path / f"library{PLATFORMS[machine].suffix}"
    tag = compile_for(machine, library)
    data = library.read_bytes()
    assert b"tl_version\0" in data and b"tl_struct_sizes\0" in data
    if machine not in ELF_MACHINES:
        assert data.startswith(MACH_O_ARM64)
        return
    order = ">" if machine == "s390x" else "<"
    assert struct.unpack_from(f"{order}H", data, 18)[0] == ELF_MACHINES[machine]
    glibc = re.match(r"manylinux_2_(\d+)_", tag)
    assert glibc is not None
    needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", data)]
    assert all(minor <= int(glibc[1]) for minor in needed)
