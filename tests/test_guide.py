"""The guide of docs/guide.md: its commands print what stands there, its keys lead where it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from tests.tui.cli_process import tracelane_here
from tests.tui.driver import open_viewer, screen_text, wait_until_idle
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import open_trace

GUIDE = (Path(__file__).resolve().parent.parent / "docs" / "guide.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in GUIDE.split("\n## ")[1:]}
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
KEY_STEP = re.compile(r"^- ((?:`[^`]+` ?)+):(.*?)(?=^- |^\S|\Z)", re.MULTILINE | re.DOTALL)
SCREEN = re.compile(r"^ *```screen\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w])")
KEYS = {"Enter": "enter", "shift+↓": "shift+down", "→": "right"}
GAP = "…"
ROUNDED = {"498"}
"""What the guide says instead of a figure with its decimals."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo was written, as the guide begins."""
    folder = tmp_path_factory.mktemp("guide")
    write_demo(folder / "demo")
    return folder


def printed(command: str, folder: Path) -> str:
    """Return what a command of the guide prints, in a terminal of 100 columns."""
    name, *arguments = shlex.split(command)
    assert name == "tracelane", command
    with chdir(folder):
        answer = tracelane_here(*arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def same_spacing(text: str) -> list[str]:
    """Return the lines of a text with one blank wherever there are more, without empty lines."""
    return [line for each in text.splitlines() if (line := " ".join(each.split()))]


def assert_quoted(quoted: str, text: str) -> None:
    """Each quoted line stands in a text, in this order; one that ends with … is the begin of a line."""
    lines: Iterator[str] = iter(same_spacing(text))
    for line in same_spacing(quoted):
        if line == GAP:
            continue
        begin = line.removesuffix(GAP).rstrip()
        is_cut = line.endswith(GAP)
        assert any(each.startswith(begin) if is_cut else each == line for each in lines), line


@pytest.mark.slow
@pytest.mark.parametrize("title", [title for title, text in SECTIONS.items() if "```console" in text])
def test_commands_print_what_the_guide_quotes(
    title: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each quoted line is printed, and every number of the text around it was printed or shown."""
    monkeypatch.setenv("COLUMNS", "100")
    section = SECTIONS[title]
    known = " ".join(SCREEN.findall(section))
    for command, quoted in CONSOLE.findall(section):
        text = printed(command, folder)
        assert_quoted(quoted, text)
        known += command + text
    prose = re.sub(r"`[^`]*`", "", FENCED.sub("", section))
    numbers = set(NUMBER.findall(prose))
    assert numbers, "a section without a number says nothing of the trace"
    assert numbers - ROUNDED <= set(NUMBER.findall(re.sub(r"[+%-]", " ", known)))


@pytest.mark.slow
async def test_keys_lead_to_the_launch(folder: Path, tmp_path: Path) -> None:
    """Pressed one after the other, the keys show the quoted lines, from the steps to the launch."""
    trace = open_trace(folder / "demo" / "rank0.pt.trace.json", index_dir=tmp_path)
    steps = KEY_STEP.findall(SECTIONS["My step is slow"])
    assert sum("```screen" in text for _, text in steps) == 4
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        for keys, text in steps:
            for key in re.findall(r"`([^`]+)`", keys):
                await pilot.press(KEYS.get(key, key))
                await wait_until_idle(app, pilot)
            screen = " ".join(screen_text(app).split())
            for quoted in SCREEN.findall(text):
                for line in same_spacing(quoted):
                    assert line in screen, (keys, line)
