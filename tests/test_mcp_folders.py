"""The server for agents answers from its folders alone, and from the files as they are now."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import ROOT
from tests.events import complete
from tests.mcp_server import mcp_module
from tests.opens import counted_opens
from tests.tui.small_file import small_file
from tracelane.core.tables.analysis import Option
from tracelane.core.tables.registry import ANALYSES

MCP = mcp_module()
SECRET = "s3cr3t"
HIDDEN = "hidden-name"
LOG = f"""~~~~ Ideal/Total Cycles ~~~~
{SECRET}-opCatConv_fp16                 12544
====== Perf Summary End ======
"""
CODE = f"""# Topologically Sorted Source Nodes: [{SECRET}], Original ATen: [aten.mm]
    extern_kernels.mm(buf0, arg1, out=buf1)  # async_compile
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with something for each option that takes a path."""
    folder = tmp_path / "outside"
    folder.mkdir()
    small_file(folder)
    (folder / "ideal.log").write_text(LOG, encoding="utf-8")
    (folder / f"output_code{HIDDEN}.py").write_text(CODE, encoding="utf-8")
    (folder / f"{HIDDEN}_provenance.json").write_text(json.dumps({SECRET: 1}), encoding="utf-8")
    return folder


@pytest.fixture
def inside(tmp_path: Path, outside: Path) -> Path:
    """The folder of the server, with links in it that lead out."""
    folder = tmp_path / "inside"
    folder.mkdir()
    small_file(folder)
    (folder / "out").symlink_to(outside)
    (folder / "out.log").symlink_to(outside / "ideal.log")
    (folder / "torch_compile_debug").symlink_to(outside)
    (folder / "output_code_link.py").symlink_to(outside / f"output_code{HIDDEN}.py")
    return folder


def options() -> list[Any]:
    own = [(row.name, option) for row in ANALYSES for option in row.options]
    part = [("kernels", Option(name, "")) for name in ("where", "step", "lanes", "table", "begin", "no")]
    return [pytest.param(*one, id=f"{one[0]}-{one[1].name}") for one in (*own, *part)]


def paths(outside: Path) -> Iterator[str]:
    """Yield the outside folder and its files in all ways in which a path may be written."""
    for name in ("", "/ideal.log", "/small.json", f"/output_code{HIDDEN}.py"):
        yield f"{outside}{name}"
        yield f"../outside{name}"
        yield f"./x/../../outside{name}"
        yield f"out{name}"
        yield f"file://{outside}{name}"
        yield f"file:{outside}{name}"
        yield f"local://{outside}{name}"
        yield f"{os.path.relpath(outside, Path.home())}{name}"
        yield f"~/{os.path.relpath(outside, Path.home())}{name}"
    yield "out.log"
    yield "output_code_link.py"
    yield f"{outside}/*"
    yield "*/small.json"
    yield "http://127.0.0.1:9/small.json"


def values(option: Option, path: str) -> Iterator[Any]:
    """Yield an option's values that may name a path: bare, and behind each word of what help says."""
    for form in {"", *(re.split("[A-Z]", part)[0] for part in option.metavar.split("|"))}:
        for behind in ("", "@550") if "@" in option.metavar else ("",):
            yield f"{form}{path}{behind}"
            yield [f"{form}{path}{behind}"]
    yield {f"ideal:{path}": 1, path: path}


@pytest.mark.parametrize(("analysis", "option"), options())
def test_no_option_reads_outside(
    analysis: str, option: Option, inside: Path, outside: Path, tmp_path: Path
) -> None:
    """Whatever option is given a path outside, in whatever form: nothing there is opened or answered."""
    server = MCP.Folder([inside])
    server.explain("small.json")
    with counted_opens(tmp_path / "hook") as opened:
        for path in paths(outside):
            for value in values(option, path):
                try:
                    answer = server.table("small.json", analysis, {option.name: value})
                except Exception as error:
                    answer = str(error)
                assert SECRET not in answer and HIDDEN not in answer.replace(repr(value), "").replace(
                    path, ""
                )
    assert not [path for path in opened if path.is_relative_to(outside)]


def test_each_option_that_takes_a_path_says_so() -> None:
    """What help calls a path, file, folder or trace is declared as one, so that the server can check it."""
    for row in ANALYSES:
        for option in row.options:
            is_named = re.search("PATH|FILE|DIR|FOLDER|TRACE|WHERE", option.metavar) is not None
            assert is_named == bool(option.path or option.is_side), f"{row.name} --{option.name}"


def test_links_beside_a_trace_are_not_followed_out(inside: Path) -> None:
    """Neither `source` nor `compile` nor `explain` reads what links beside the trace lead to; it is said."""
    server = MCP.Folder([inside])
    answers = [server.table("small.json", name) for name in ("source", "compile")]
    answers += [server.explain("small.json", "compile"), server.explain("small.json")]
    assert not any(SECRET in answer or HIDDEN in answer for answer in answers)
    assert "links that lead elsewhere" in answers[0]


def test_what_lies_inside_is_read(inside: Path, outside: Path) -> None:
    """Relative and absolute paths below the folders are taken, of files and folders."""
    shutil.copytree(outside, inside / "logs")
    server = MCP.Folder([inside])
    for path in ("logs", f"{inside}/logs", "./out/../logs", f"logs/output_code{HIDDEN}.py"):
        if path == "./out/../logs":
            with pytest.raises(ValueError, match="does not lie below"):
                server.table("small.json", "source", {"artefacts": path})
        else:
            assert SECRET in server.table("small.json", "source", {"artefacts": path})
    rows = json.loads(server.table("small.json", "kernels", {"column": ["ideal:logs/ideal.log@550"]}))
    assert "PT share is for cores of 550 MHz" in rows["notes"]


def ranks(folder: Path) -> None:
    folder.mkdir()
    for rank in range(2):
        events = [complete(0, 5 + rank, "mm", "kernel")]
        whole = {"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 2}}
        (folder / f"rank{rank}.json").write_text(json.dumps(whole), encoding="utf-8")


@pytest.mark.parametrize("name", ["ranks", "ranks/*.json", "ranks/rank[01].json", "."])
def test_every_member_of_a_folder_is_checked(name: str, inside: Path, outside: Path) -> None:
    """A folder or pattern of ranks of which one is a link that leads out is refused, and not listed."""
    (inside / "small.json").unlink()
    (inside / "out").rename(inside / ".out")  # else "." is refused for that one
    (inside / "torch_compile_debug").unlink()
    ranks(inside / "ranks")
    server = MCP.Folder([inside])
    assert len(server.traces()) == 2 and "rows" in json.loads(server.table(name, "kernels"))
    (inside / "ranks" / "rank1.json").unlink()
    (inside / "ranks" / "rank1.json").symlink_to(outside / "small.json")
    with pytest.raises(ValueError, match=r"rank1\.json is a link that does not lie below"):
        server.table(name, "kernels")
    assert len(server.traces()) == 1
    (inside / ".out").rename(inside / "out")
    with pytest.raises(ValueError, match="/out is a link") as caught:
        server.table(".", "kernels")
    assert "small" not in str(caught.value)


def test_a_trace_written_anew_is_answered_anew(inside: Path) -> None:
    """What is asked after a file has changed is answered from it, also of a folder, and of a new member."""
    path = inside / "ranks" / "rank0.json"
    ranks(inside / "ranks")
    server = MCP.Folder([inside])

    def total(trace: str) -> int:
        return sum(row["total_ns"] for row in json.loads(server.table(trace, "kernels"))["rows"])

    assert total("ranks") == 11_000 and total("ranks/rank0.json") == 5_000
    path.write_text(path.read_text(encoding="utf-8").replace('"dur": 5', '"dur": 35'), encoding="utf-8")
    assert total("ranks") == 41_000 and total("ranks/rank0.json") == 35_000
    (inside / "ranks" / "rank1.json").unlink()
    assert total("ranks") == 35_000


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("http://127.0.0.1:9/t.json", "URLs are not read"),
        ("s3://bucket/t.json", "URLs are not read"),
        ("file:///etc/passwd", "URLs are not read"),
        ("~nobody-of-that-name/x", "is no path"),
        ("a\0b", "is no path"),
        ("loop", "is no path|no such file"),
        ("pipe.json", "is no file"),
        ("-", "no such file"),
        ("x" * 5000, "is no path|no such file|too long"),
        ("/dev/stdin", "does not lie below"),
        ("/proc/self/environ", "does not lie below"),
    ],
)
def test_what_is_no_trace_of_the_folder_is_refused_at_once(path: str, message: str, inside: Path) -> None:
    """URLs, pipes, devices, loops of links and impossible names are refused in a line, without a wait."""
    os.mkfifo(inside / "pipe.json")
    (inside / "loop").symlink_to(inside / "loop")
    with pytest.raises(Exception, match=re.compile(message, re.IGNORECASE)) as caught:
        MCP.Folder([inside]).table(path, "kernels")
    assert "\n" not in str(caught.value)


def test_the_readme_says_what_is_read() -> None:
    """The README of the package says that paths are checked, links included."""
    assert "links" in (ROOT / "packages" / "mcp" / "README.md").read_text(encoding="utf-8")
