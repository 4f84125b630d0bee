"""What is installed is what lies in the repository, and core stays free of the terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.corpus import later

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
FRONT = ("src/tracelane/__init__.py", "src/tracelane/__main__.py", "src/tracelane/py.typed")
PARTS = ("core", "tui", *FRONT, "bundle", "pyproject.toml", "README.md", "LICENSE")
"""What a wheel is made of."""
DAY = "2026-02-03T12:00:00Z"


def _tracked() -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", *PARTS], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        pytest.skip("not a git checkout")
    return {name for name in done.stdout.split("\0") if name}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git knows, without the links of src/, as a checkout on a system without symlinks; its
    commit is of a day of its own.
    """
    copy = tmp_path_factory.mktemp("checkout")
    for name in sorted(_tracked()):
        if not (ROOT / name).is_file():
            pytest.skip(f"{name} is tracked but not in the working tree")
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    author = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "all", "--date", DAY]):
        subprocess.run(
            ["git", "-C", copy, *arguments], check=True, env={**os.environ, "GIT_COMMITTER_DATE": DAY}
        )
    (copy / "core" / "native" / "_tracelane.native.so").write_bytes(b"of another build")
    return copy


def _wheel(checkout: Path, out: Path, **environment: str) -> zipfile.ZipFile:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    built = subprocess.run(
        [*pip, "--no-build-isolation", "--wheel-dir", str(out), str(checkout)],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = out.glob("*.whl")
    return zipfile.ZipFile(wheel)


COMPILER = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), "")


@pytest.fixture(scope="module")
def native_wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this checkout, with its library where there is a compiler."""
    return _wheel(checkout, tmp_path_factory.mktemp("wheel"), CC=COMPILER)


@pytest.mark.parametrize(
    ("environment", "has_library"),
    [
        pytest.param(
            {"CC": COMPILER}, True, marks=pytest.mark.skipif(not COMPILER, reason="no C compiler here")
        ),
        ({"CC": "", "PATH": "/nowhere"}, False),
        later(({"CC": "false"}, False)),
        later(({"TRACELANE_WHEEL": "any"}, False)),
    ],
    ids=["compiler", "none", "failing", "any"],
)
def test_wheel_holds_exactly_the_two_packages(
    checkout: Path,
    native_wheel: zipfile.ZipFile,
    tmp_path: Path,
    environment: dict[str, str],
    has_library: bool,
) -> None:
    """The wheel's files are those of core and tui, the C sources aside, and the library where it could be
    compiled: then it is one for this platform and every Python 3, else one for all.
    """
    wheel = native_wheel if has_library else _wheel(checkout, tmp_path, **environment)
    names = set(wheel.namelist())
    files = {name.removeprefix("tracelane/") for name in names if name.startswith("tracelane/")}
    sources = {name for name in _tracked() if name.startswith(("core/", "tui/"))}
    sources |= {name.removeprefix("src/tracelane/") for name in FRONT}
    library = {name for name in files if "_tracelane.native" in name}
    assert files - library - {"COMMIT"} == {name for name in sources if not name.endswith((".c", ".h"))}
    assert len(library) == has_library
    assert all(name.startswith(("tracelane/", "tracelane-")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tag = Path(str(wheel.filename)).stem.split("-", 2)[2]
    assert tag.startswith("py3-none-") and (tag == "py3-none-any") != has_library


@pytest.fixture(scope="module")
def bin_folder(native_wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment into which the wheel was installed; other packages are those of here."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--no-index", str(native_wheel.filename)], check=True
    )
    packages = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python.parent


def _run(bin_folder: Path, folder: Path, *command: str, **more: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")
    }
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), **more}
    program, *arguments = command
    done = subprocess.run(
        [bin_folder / program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


USE = """import tracelane
t: tracelane.OpenedTrace = tracelane.open(tracelane.demo("demo"))
reveal_type(t.kernels(by="short", where="nccl", begin=3))
t.findings(baseline=t, table="rules")
t.kernels(by="nonsense")
t.idle(limit="x")
t.ranks(wher="")
t.nothing()
tracelane.check(t, most={"kernels.calls": 1}).rows(), tracelane.diff(t, t)["metrics"]
tracelane.cut(t, "cut.json", step=4), tracelane.export(t, "t.folded"), tracelane.TracelaneError
"""


@pytest.mark.corpus
def test_type_checkers_see_what_is_installed(bin_folder: Path, tmp_path: Path) -> None:
    """Of the installed wheel mypy knows methods and options in a user's script, and refuses others."""
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    checker = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    environment = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    result = subprocess.run(
        [*checker, "--python-executable", str(bin_folder / "python"), "use.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    lines = [line for line in result.stdout.splitlines() if line.startswith("use.py:")]
    assert lines and 'Revealed type is "tracelane.core.tables.frame.table.Table"' in lines[0], result.stdout
    errors = [line.split(":")[1] for line in lines if " error: " in line]
    assert errors == ["5", "6", "7", "8"], result.stdout


def _commit_of(checkout: Path) -> str:
    git = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, capture_output=True, encoding="utf-8", check=True).stdout.strip()


def test_a_wheel_of_the_sdist_names_the_commit(checkout: Path, tmp_path: Path) -> None:
    """Also what is packed from the sdist, where there is no git, says which commit it is of."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=checkout, capture_output=True, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    wheel = _wheel(
        tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path / "wheels", TRACELANE_WHEEL="any"
    )
    assert wheel.read("tracelane/COMMIT").decode() == f"{_commit_of(checkout)} of {DAY[:10]}\n"


def test_an_installed_tracelane_runs(checkout: Path, bin_folder: Path, tmp_path: Path) -> None:
    """Of the installed wheel the compiled core, the command, `python -m`, completion, demo and Python all
    work.
    """
    where = _run(bin_folder, tmp_path, "python", "-c", "import tracelane; print(tracelane.__file__)")
    assert Path(where.strip()).is_relative_to(bin_folder.parent)
    version = _run(bin_folder, tmp_path, "tracelane", "--version")
    assert f"native core {'yes' if COMPILER else 'no'}" in version
    assert version == _run(bin_folder, tmp_path, "python", "-m", "tracelane", "--version")
    assert f"\n  commit {_commit_of(checkout)} of {DAY[:10]}\n" in version
    for shell in ("bash", "zsh", "fish"):
        assert "_TRACELANE_COMPLETE" in _run(bin_folder, tmp_path, "tracelane", "completion", shell)
    completed = {"_TRACELANE_COMPLETE": "bash_complete", "COMP_WORDS": "tracelane kern", "COMP_CWORD": "1"}
    assert _run(bin_folder, tmp_path, "tracelane", **completed).split() == ["plain,kernels"]
    _run(bin_folder, tmp_path, "tracelane", "demo", "--no-open", "--out", "demo")
    printed = json.loads(_run(bin_folder, tmp_path, "tracelane", "kernels", "demo", "--json"))
    program = "import tracelane; print(len(tracelane.open('demo').kernels()))"
    rows = _run(bin_folder, tmp_path, "python", "-c", program)
    assert int(rows) == len(printed["tables"]["kernels"]["rows"]) > 0


def test_core_runs_without_the_terminal() -> None:
    """Every module of core imports, and none brings in textual, rich or the viewer."""
    program = """
import importlib, pkgutil, sys
import tracelane.core as core
for module in pkgutil.walk_packages(core.__path__, "tracelane.core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(sorted(name for name in sys.modules if name.split(".")[0] in ("textual", "rich")
             or name.startswith("tracelane.tui")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
