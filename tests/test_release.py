"""What is released: an sdist with all that the tests need, the same bytes every time, links that lead on."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from bundle.hatch_readme import addresses, index_text
from bundle.make import pack
from bundle.release import build_sdist, digests
from bundle.release import main as release_main

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
VERSION = PROJECT["version"]
HOME = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]
LINKS_OF_SRC = {"src/tracelane/core", "src/tracelane/tui"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build_sdist(folder)
    return next(folder.glob("*.tar.gz"))


@pytest.mark.slow
def test_the_sdist_holds_what_git_knows(sdist: Path) -> None:
    """Tests, docs, benchmarks and tools are in it, nothing that was built, and the metadata."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout")
    with tarfile.open(sdist, encoding="utf-8") as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    present = {name for name in tracked.stdout.split("\0") if name and (ROOT / name).is_file()}
    assert present - names - LINKS_OF_SRC == set()
    assert not {name for name in names if "_tracelane.native." in name}
    assert "PKG-INFO" in names


@pytest.mark.slow
def test_the_sdist_is_the_same_every_time(sdist: Path, tmp_path: Path) -> None:
    """Built again it has the same bytes."""
    build_sdist(tmp_path)
    assert digests(tmp_path) == digests(sdist.parent)


def test_metadata(sdist: Path) -> None:
    """They name version, addresses, status and Pythons; the README in them has no relative links."""
    with tarfile.open(sdist, encoding="utf-8") as files:
        member = next(each for each in files if each.name.endswith("/PKG-INFO"))
        stream = files.extractfile(member)
        assert stream is not None
        text = stream.read().decode()
    head, _, readme = text.partition("\n\n")
    for line in (f"Version: {VERSION}", "Description-Content-Type: text/markdown"):
        assert line in head.splitlines()
    urls = re.findall(r"^Project-URL: (.*)$", head, re.MULTILINE)
    assert urls == [f"{name}, {url}" for name, url in addresses(HOME).items()]
    assert "Classifier: Development Status :: " in head and "Python :: 3.14" in head
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert not [target for target in targets if target.endswith(".svg")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[x](docs/a.md#b)", "[x](HOME/blob/v1.2/docs/a.md#b)"),
        ("![x](screenshots/a.svg)", "![x](HOME/raw/v1.2/screenshots/a.png)"),
        ("![x](a.gif)", "![x](HOME/raw/v1.2/a.gif)"),
        ("[x](https://a.b/c) [y](#z)", "[x](https://a.b/c) [y](#z)"),
    ],
)
def test_links_for_an_index(before: str, after: str) -> None:
    """Relative links name the file of the version, SVG pictures the PNG beside them, all others stay."""
    assert index_text(before, "HOME", "1.2") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[docs/a.md](docs/a.md)", "docs/a.md"),
        ("[keys](docs/keys.md) ![x](a.svg)", "keys (docs/keys.md) "),
        ("[x](https://a.b/c)", "[x](https://a.b/c)"),
    ],
)
def test_without_an_address_links_are_words(before: str, after: str) -> None:
    """As long as the project has no address an index shows no link that leads nowhere, and no URLs."""
    assert index_text(before, "", "1.2") == after and addresses("") == {}


def test_addresses_are_those_of_the_project() -> None:
    """All URLs of the metadata lie at the address that pyproject.toml names; no file names another one."""
    assert all(
        url.startswith("https://f.org/o/tracelane") for url in addresses("https://f.org/o/tracelane").values()
    )
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, tracked.stdout.split("\0")):
        path = ROOT / name
        if path.suffix in (".md", ".toml", ".yml", ".ipynb") and path.is_file():
            assert not re.search(r"https?://[\w.-]+/tracelane/", path.read_text(encoding="utf-8")), name


def test_pictures_of_the_readme_are_there_as_png() -> None:
    """Each SVG that the README shows has its PNG beside it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\.svg\)", readme)
    assert targets
    for target in targets:
        assert (ROOT / f"{target}.png").read_bytes().startswith(b"\x89PNG")


def test_a_bundle_is_packed_without_this_machine(tmp_path: Path) -> None:
    """Owner, times, the umask and the order of files change nothing in the archive."""
    for name, files, mode in (("one", "ab", 0o644), ("two", "ba", 0o600)):
        folder = tmp_path / name / "bundle"
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).write_text(file, encoding="utf-8")
            (folder / file).chmod(mode)
        (folder / "install.sh").write_text("", encoding="utf-8")
        (folder / "install.sh").chmod(0o755)
        pack(folder, tmp_path / name)
    archives = [(tmp_path / name / "bundle.tar.gz").read_bytes() for name in ("one", "two")]
    assert archives[0] == archives[1]
    with tarfile.open(tmp_path / "one" / "bundle.tar.gz", encoding="utf-8") as archive:
        assert archive.getmember("bundle/install.sh").mode == 0o755


def test_the_version_has_its_changes() -> None:
    """The changelog's first heading is this version: in development, or with the day of its release."""
    headings = re.findall(r"^## (.+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    number, _, is_development = VERSION.partition(".dev")
    first, *released = headings
    assert first == f"{number} (in development)" if is_development else first.startswith(f"{number} (2")
    assert released and all(re.fullmatch(r"\d+\.\d+\.\d+ \(20\d\d-\d\d-\d\d\)", one) for one in released)


def test_a_release_names_its_commit() -> None:
    """Below the heading of each release stands a commit; where a clone has it, it has that version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\d\S+) \(20.*\)\n\nCommit (\w+)\b", text, re.MULTILINE)
    assert len(releases) == len(re.findall(r"^## \d\S+ \(20", text, re.MULTILINE)) > 0
    for version, commit in releases:
        show = ["git", "-C", str(ROOT), "show", f"{commit}:pyproject.toml"]
        printed = subprocess.run(show, capture_output=True, encoding="utf-8", check=False)
        assert printed.returncode or f'version = "{version}"' in printed.stdout


def test_a_release_needs_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the project's address nothing is packed: an index would show no links and no pictures."""
    if HOME:
        pytest.skip("there is an address")
    assert release_main(["--once", "--out", str(tmp_path / "out")]) == 1
    assert "`home` in pyproject.toml is empty" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_forge_runs_what_ci_runs() -> None:
    """The workflow calls .ci/run and the matrix, the weekly one every emulated machine that make knows."""
    ci, weekly = (
        (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        for name in ("ci", "weekly")
    )
    assert "bash .ci/run" in ci and "tests/matrix.py" in ci
    machines = re.findall(
        r"test-(s390x|ppc64le|aarch64)(?= )", (ROOT / "Makefile").read_text(encoding="utf-8")
    )
    assert machines and all(machine in weekly for machine in machines)


def test_what_the_matrix_runs_is_what_is_declared() -> None:
    """The Pythons of the matrix are those that the metadata name."""
    done = subprocess.run(
        [sys.executable, "tests/matrix.py", "--help"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    named = re.findall(r"3\.\d+", " ".join(PROJECT["classifiers"]))
    assert named and all(version in done.stdout for version in named)
