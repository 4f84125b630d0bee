"""Wheels for other platforms hold a library for that machine, made for the glibc that their tag names."""

from __future__ import annotations

import importlib.util
import re
import struct
from pathlib import Path

import pytest

from bundle.native_build import PLATFORMS, compile_for

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed: `make wheels` does that"
)
ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "s390x": 22, "ppc64le": 21}
MACH_O_ARM64 = bytes.fromhex("cffaedfe0c000001")


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
