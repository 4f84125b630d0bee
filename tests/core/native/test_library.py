"""The native library is loaded only where it belongs to the Python files; else its absence has a reason."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.native_build import SOURCES, ZIG, CompileError, compile_here, compiler, install_compiler
from tracelane.core.native.library import load_library
from tracelane.core.native.structs import STRUCTS, VERSION


def _compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, **replaced: str) -> Path:
    """Compile the sources with some of their text replaced; skip where there is no compiler."""
    sources = folder / "sources"
    sources.mkdir()
    for source in SOURCES.glob("*.[ch]"):
        text = source.read_text(encoding="utf-8")
        for pattern, replacement in replaced.items():
            text = re.sub(pattern, replacement, text)
        (sources / source.name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("bundle.native_build.SOURCES", sources)
    library = folder / "library.so"
    try:
        compile_here(library)
    except CompileError as error:
        pytest.skip(str(error))
    return library


def test_zig_compiles_where_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler is $CC, else one on the PATH, else zig where it is installed; pip is asked for it where
    there is none, and may fail.
    """
    commands: list[list[str]] = []
    monkeypatch.setattr("bundle.native_build.subprocess.run", lambda command, **_: commands.append(command))
    monkeypatch.setattr("bundle.native_build.ZIG", "no_such_package")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "my-cc -g")
    install_compiler()
    assert compiler() == ["my-cc", "-g"] and not commands
    monkeypatch.delenv("CC")
    with pytest.raises(CompileError, match="nor no_such_package of pip"):
        compiler()
    install_compiler()
    assert [command[1:4] for command in commands] == [["-m", "pip", "install"]]
    (tmp_path / "no_such_package.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert compiler() == [sys.executable, "-m", "no_such_package", "cc", "-s"]
    (tmp_path / "gcc").touch(mode=0o755)
    install_compiler()
    assert compiler() == ["gcc"] and len(commands) == 1
    assert ZIG == "ziglang"


@pytest.mark.slow
def test_a_library_of_these_sources_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled from the sources has the version and the structures of structs.py."""
    native = load_library(_compiled(tmp_path, monkeypatch))
    assert native.reason == "" and native.functions is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        ({r"TL_VERSION \d+": "TL_VERSION 999"}, f"version 999, where {VERSION} is needed"),
        ({r"STRUCT_SIZES\[\] = \{": "STRUCT_SIZES[] = {7, "}, "its structures have other sizes"),
        ({"tl_struct_sizes": "tl_other"}, "cannot be loaded"),
    ],
)
def test_a_library_of_other_sources_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: dict[str, str], reason: str
) -> None:
    """Another version, another size of a structure or a missing function: not loaded, with the reason."""
    native = load_library(_compiled(tmp_path, monkeypatch, **replaced))
    assert native.functions is None and native.reason.startswith(reason)


def test_what_is_no_library(tmp_path: Path) -> None:
    """A missing file, one that is no library, and one older than a source beside it are told apart."""
    path = tmp_path / "library.so"
    assert load_library(path).reason == "not compiled"
    path.write_bytes(b"no library")
    assert load_library(path).reason.startswith("cannot be loaded: ")
    (tmp_path / "scan.c").touch()
    os.utime(path, (0, 0))
    assert load_library(path).reason.startswith("older than scan.c")
    assert all(load_library(path).functions is None for _ in range(2))


def test_structures_are_listed_once() -> None:
    """Python lists each structure as version.c does: as many as there are."""
    text = (SOURCES / "version.c").read_text(encoding="utf-8")
    match = re.search(r"STRUCT_SIZES\[\] = \{(.*?)\}", text, re.DOTALL)
    assert match is not None and match[1].count("sizeof") == len(STRUCTS)


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler", "true"])
def test_without_a_working_compiler(tmp_path: Path, compiler: str) -> None:
    """A compiler that fails, is not there or makes nothing: a notice and no library, not even an old one."""
    library = tmp_path / "library.so"
    library.write_bytes(b"of an earlier time")
    done = subprocess.run(
        [sys.executable, str(SOURCES.parent.parent / "bundle" / "native_build.py"), "--out", str(library)],
        env={**os.environ, "CC": compiler},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("the native core is not compiled")
    assert not library.exists()
