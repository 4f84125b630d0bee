"""Where tables go and how wide they are: files, pipes, terminals of a known width, pages of HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.events import complete, write_events
from tracelane.tui.cli.main import main

LONG = "a_kernel_whose_name_is_long_" * 3


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace whose one kernel has a long name with markup in it."""
    events = [complete(1, 5, f"{LONG}<b>", pid=0, tid=7, cat="kernel", args={"stream": 7})]
    return str(write_events(tmp_path / "t.json", events))


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def test_out_writes_what_would_be_printed(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """-o writes the same bytes to a file and prints nothing; a file that is there is not touched."""
    out = tmp_path / "k.json"
    printed = run(capsys, "kernels", trace, "--json")
    assert run(capsys, "kernels", trace, "--json", "-o", str(out)) == ""
    assert out.read_text() == printed
    run(capsys, "kernels", trace, "--json", "-o", str(out), code=64)
    assert out.read_text() == printed


def test_a_failure_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a command fails nothing is left of its file; a verdict is no failure."""
    out = tmp_path / "x.txt"
    run(capsys, "kernels", str(tmp_path / "none.json"), "-o", str(out), code=2)
    assert not out.exists()
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": null, "dur": 1, "pid": 1, "tid": 1}, '
                   '{"ph": "X", "name": "b", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}')  # fmt: skip
    run(capsys, "doctor", str(bad), "-o", str(out), code=1)
    assert out.read_text()


def test_nothing_is_cut_in_a_pipe(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are whole in a pipe; with COLUMNS=80 no line is wider, and the total is still there."""
    assert LONG in run(capsys, "kernels", trace)
    assert LONG in run(capsys, "slices", trace)
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(capsys, "kernels", trace).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:1] == ["Name"] and {"Count", "Total", "Share"} <= set(lines[1].split())


class Texts(HTMLParser):
    """Collects the texts of cells, and all tags."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.texts.append(data)


@pytest.mark.parametrize("command", ["kernels", "slices", "breakdown"])
def test_html_is_a_page_of_its_own(trace: str, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """HTML is one page that loads nothing, in which names of the trace are text."""
    page = run(capsys, command, trace, "--format", "html")
    parsed = Texts(page)
    assert page.startswith("<!DOCTYPE html>") and {"html", "table", "td"} <= parsed.tags
    assert not {"script", "img", "link"} & parsed.tags and "<b>" not in "".join(page.split("<div><b>")[2:])
    if command == "slices":
        assert f"{LONG}<b>" in parsed.texts


@pytest.mark.parametrize(
    ("text", "is_right"),
    [("30", True), ("30us", True), ("0.03ms", True), ("3e4ns", True), ("30 parsecs", False)],
)
def test_times_take_units(trace: str, capsys: pytest.CaptureFixture[str], text: str, is_right: bool) -> None:
    """A time may say its unit; what is none is refused before the trace is read."""
    run(capsys, "idle", trace, "--kernel-wait", text, code=0 if is_right else 64)
