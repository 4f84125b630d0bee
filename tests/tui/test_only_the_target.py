"""Whatever a trace, its files and its folder are called or hold, only what was named is written."""

from __future__ import annotations

import json
import os
import platform
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.cli_commands import BUG, CODES
from tests.tui.small_file import events
from tracelane.core.demo.trace import demo_files, write_demo
from tracelane.core.python.exporting import WRITERS
from tracelane.tui.cli.main import main

HOSTILE = (
    "../../escaped",
    "/etc/escaped",
    "..\\..\\escaped",
    "a\nb",
    "\x1b]0;x\x07",
    "con",
    "-rf",
    "%2e%2e%2f",
)
FORMS = ("csv", "json", "md", "html", "parquet", "arrow", "txt")
COMMANDS: dict[str, tuple[str, ...]] = {
    **{f"cut to .{kind}": ("cut", "--from=+0ns", f"--out={{out}}.{kind}") for kind in ("json", "json.gz")},
    **{f"export {kind}": ("export", f"--out={{out}}{kind}") for kind in WRITERS},
    **{f"kernels to .{kind}": ("kernels", f"--out={{out}}.{kind}") for kind in FORMS},
    "slices": ("slices", "--out={out}.csv"),
    "sql": ("sql", "select * from slices", "--out={out}.csv"),
    "report": ("report", "--out={out}.md"),
    "report as a page": ("report", "--out={out}.html"),
    "bundle": ("report", "--bundle={out}.zip"),
    "summary": ("summary", "--json", "--out={out}.json"),
    "JUnit": ("check", "--max=kernels.calls=1", "--junit={out}.xml"),
    "collect": ("collect", "--out={out}.store"),
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace whose every name tries to lead outside, in a folder of such a name."""
    own = events()
    for number, event in enumerate(own):
        name = HOSTILE[number % len(HOSTILE)]
        event["args"] = {**event.get("args", {}), "name": name, "labels": name, name: name}
        if event["ph"] in "Xi":
            event["name"] = name
    keys = {
        "host_name": HOSTILE[0],
        "trace_name": HOSTILE[1],
        "distributedInfo": {"rank": 0, "world_size": 1},
    }
    folder = tmp_path / "in" / "..\\..\\up"
    folder.mkdir(parents=True)
    path = folder / "t%2e%2e%2fx\\..\\y.json"
    path.write_text(json.dumps({**keys, "traceEvents": own}), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, object]:
    """Return what lies in a folder: bytes of files, targets of links."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def names_of(argument: str) -> Iterator[str]:
    """Yield the names at which something is written on the way to a target, that a neighbour can guess."""
    yield argument
    path = Path(argument)
    yield str(path.with_name(f".{path.name}-{platform.node()}-{os.getpid()}.part"))


@pytest.mark.slow
@pytest.mark.parametrize("leads_to", ["a file", "nothing", "a folder"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_planted_link_is_not_followed(
    name: str, leads_to: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a link lies at the target, or at the name that a file has until it is whole, nothing is written
    to where it leads, and nothing but the target changes.
    """
    command, *options = COMMANDS[name]
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("mine", encoding="utf-8")
    ends = {"a file": outside / "file", "nothing": outside / "none", "a folder": outside / "folder"}
    line = [option.format(out=out / "x") for option in options]
    target = next(option.split("=", 1)[1] for option in line if str(out) in option)
    for path in names_of(target):
        os.symlink(ends[leads_to], path)
    before = contents(outside), contents(trace.parent)
    code = main([command, str(trace), *line, "--index-dir", str(tmp_path / "index")])
    said = capsys.readouterr()
    assert code in CODES and BUG not in said.err and "Traceback" not in said.err
    if not (command == "collect" and leads_to == "a folder"):  # a store's own folder may be a link
        assert (contents(outside), contents(trace.parent)) == before
    strays = {path.name for path in out.iterdir()} - {Path(one).name for one in names_of(target)}
    assert not strays


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_only_the_target_is_written(
    name: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No name of a trace becomes that of a file: the target is all that there is afterwards."""
    command, *options = COMMANDS[name]
    out = tmp_path / "out"
    out.mkdir()
    line = [option.format(out=out / "x") for option in options]
    before = {path for path in tmp_path.rglob("*") if path.name != "index"}
    code = main([command, str(trace), *line, "--index-dir", str(tmp_path / "index")])
    assert code in CODES, capsys.readouterr().err
    new = {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "index")} - before
    targets = [Path(option.split("=", 1)[1]) for option in line if str(out) in option]
    assert {path for path in new if not any(path.is_relative_to(target) for target in targets)} == set()


@pytest.mark.parametrize("suffix", [".csv", ".\\..\\escaped", ".\x1b[31m", "", ".." + "x" * 100])
def test_names_in_a_bundle_are_plain(suffix: str, tmp_path: Path) -> None:
    """The files of a bundle have names of letters, digits, dots and hyphens, whatever the logs are called."""
    trace, *_, written = write_demo(tmp_path)
    log = written.rename(tmp_path / f"smi{suffix}")
    out = tmp_path / "b.zip"
    options = [f"--bundle={out}", f"--smi={log}", "--index-dir", str(tmp_path / "index")]
    assert main(["report", str(trace), *options]) == 0
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
    assert len(names) > 2 and all(name.replace("-", "").replace(".", "").isalnum() for name in names)
    assert not any(name.startswith(".") for name in names)


def test_the_demo_follows_no_link(tmp_path: Path) -> None:
    """Links that lie where its files are to be are replaced, and the files are those of the demo."""
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    folder = tmp_path / "demo"
    folder.mkdir()
    for file in demo_files():
        os.symlink(mine, folder / file.name)
    assert main(["demo", "--out", str(folder), "--no-open"]) == 0
    assert mine.read_text(encoding="utf-8") == "mine"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        file.name: file.data for file in demo_files()
    }
