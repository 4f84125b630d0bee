"""Whatever a trace holds, no command and nothing that the viewer draws acts on the terminal."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import pytest

from tests.corpus import CASES, later, needs
from tests.tui.cli_process import on_terminal
from tests.tui.driver import open_viewer, press_keys, wait_until_idle
from tests.tui.hostile_traces import COLOUR, FILE_NAME, HOSTILE, write_log, write_ranks, write_small
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.terminal_judge import active_in, acts_of, assert_only_draws, colours_in
from tracelane.core.base.safe_text import safe_lines
from tracelane.core.trace import open_trace
from tracelane.tui.commands.table import GROUPS, Command
from tracelane.tui.panels.panel import GROUPS as PANELS
from tracelane.tui.panels.panel import MIN_NAME, TabGroup
from tracelane.tui.widgets.prompt import Prompt

FORMS = ("--format text", "--format csv", "--format md", "--format json")
COMMANDS: dict[str, Sequence[str]] = {
    "info": ("", "--json"),
    "index": ("", "--json --force"),
    "telemetry": ("", "--json"),
    "chain": ("--name .", "--name . --json --all", "--name (?i)kernel --all"),
    "range": FORMS,
    "slices": ("", "--format csv", "--format json"),
    "ops": (*FORMS, "--by step", "--group-by shape", "--group-by stack:3", "--group-by module --format md"),
    "steps": (*FORMS, "--groups", "--groups --format md"),
    "breakdown": FORMS,
    "kernels": (*FORMS, "--runs", "--by step"),
    "idle": (*FORMS, *(f"--recurring {form}" for form in FORMS)),
    "launches": FORMS,
    "sections": FORMS,
    "ranks": FORMS,
    "findings": FORMS,
    "memory": (*FORMS, "--first curve", "--first copies --format csv"),
    "compile": (*FORMS, "--first regions --format csv", "--first code --format csv", "--first steps"),
    "report": ("",),
    "summary": ("", "--json"),
    "check": ("--max kernels.calls=1", "--max kernels.calls=1 --json"),
    "view": ("", "--width 100 --height 30"),
}
PROGRAM = """
import json, sys
from tracelane.tui.cli.main import main
for line in json.load(open(sys.argv[1])):
    print("<<<", *(ascii(word) for word in line), flush=True)
    print("exit", main(line), flush=True)
"""
DRAWN = re.compile("\x1b\\[[0-9;]*m|\r\x1b\\[K")
"""Colours of a picture, and a line of progress that is written over."""
PATIENCE_S = 300.0


def printed(lines: Sequence[Sequence[str]], folder: Path) -> bytes:
    """Return what command lines print, one after the other, on a terminal that has no keyboard."""
    listed = folder / "lines.json"
    listed.write_text(json.dumps(lines), encoding="utf-8")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(listed)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color"},
        cwd=folder,
        start_new_session=True,  # no terminal to take keys from: the viewer prints a picture
    )
    os.close(theirs)
    seen = b""
    try:
        while True:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # EIO: nobody has it open any more
                break
            if not data:
                break
            seen += data
        assert process.wait(PATIENCE_S) == 0, seen[-2000:]
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return seen


def assert_harmless(data: bytes) -> None:
    """Fail where bytes do more than show text."""
    for part in data.split(b"<<< ")[1:]:
        name = part.split(b"\r\n")[0].decode()
        assert acts_of(part) == [], name
        text = DRAWN.sub("", part.decode()).replace("\r\n", "\n")
        assert not active_in(text), name
        assert COLOUR not in colours_in(part.decode()), name
        assert "Traceback" not in text and "should not have happened" not in text, text[-2000:]


def _lines(trace: str, commands: Sequence[str] = tuple(COMMANDS)) -> list[list[str]]:
    return [[command, trace, *how.split()] for command in commands for how in COMMANDS[command]]


def test_the_judge_sees_what_a_terminal_would_do() -> None:
    """Every kind of attack that the traces hold is seen by the judge where it is let through."""
    for attack in (
        "\x1b]0;t\x07",
        "\x9d0;t\x9c",
        "\x1b[?1049l",
        "\x1bc",
        "\x1b[38;5;199m",
        "\x1b[6n",
        "\x08",
    ):
        assert acts_of(attack.encode()), attack
    active = {character for character in HOSTILE if active_in(character)}
    assert {"\x1b", "\x07", "\x9b", "\x9d", "\x08", "\r"} <= active
    for text in (*active, HOSTILE):
        assert active_in(text) and not active_in(safe_lines(text)), text


@pytest.mark.slow
def test_every_command_on_small_traces(tmp_path: Path) -> None:
    """No command, in any format, lets a name, category, argument or id of a trace act on the terminal."""
    data = printed(_lines(str(write_small(tmp_path / "small.json"))), tmp_path)
    assert data.count(b"<<< ") == len(_lines("x")) and b"PWNED" in data
    assert_harmless(data)


@pytest.mark.corpus
@pytest.mark.slow
def test_ranks_and_logs(tmp_path: Path) -> None:
    """The same for several ranks together, for a log laid over them, and for a comparison."""
    first, second = map(str, write_ranks(tmp_path))
    log = str(write_log(tmp_path / "log.csv"))
    lines = [
        *(
            [command, first, second, *form.split()]
            for command in ("ranks", "info", "steps")
            for form in FORMS
        ),
        *(["diff", first, second, "--format", form] for form in ("text", "json", "md")),
        ["telemetry", first, "--smi", log],
        ["telemetry", first, "--smi", log, "--json"],
        ["telemetry", first, "--smi", log, "--by", "step"],
        ["report", first, "--smi", log],
        ["view", first, second, "--smi", log],
    ]
    assert_harmless(printed(lines, tmp_path))


@pytest.mark.slow
def test_messages(tmp_path: Path) -> None:
    """What is wrong is said harmlessly, whatever stands in arguments, file names and files."""
    trace = str(write_small(tmp_path / "small.json"))
    named = str(write_small(tmp_path / f"{FILE_NAME}.json"))
    (tmp_path / "broken.json").write_text('{"traceEvents":[{"ph":"X","name":"' + HOSTILE, encoding="utf-8")
    (tmp_path / "text.txt").write_text(HOSTILE, encoding="utf-8")
    options = (
        "--format",
        "--sort",
        "--step",
        "--from",
        "--where",
        "--lanes",
        "--step-name",
        "--rank",
        "--run",
    )
    missing = str(tmp_path / FILE_NAME / "x.json")
    lines = [
        *(
            ["kernels", trace, option, text.replace("\0", "")]
            for option in options
            for text in (HOSTILE, "(" + HOSTILE)
        ),
        *(["chain", trace, "--name", text] for text in (HOSTILE, "(" + HOSTILE)),
        *(["check", trace, "--max", text] for text in (HOSTILE, HOSTILE + "=1")),
        *([command, named] for command in ("info", "summary", "steps", "report", "index", "diff", "view")),
        *([command, missing] for command in ("info", "view")),
        *(
            [command, str(tmp_path / name)]
            for command in ("info", "view")
            for name in ("broken.json", "text.txt")
        ),
        ["diff", named, named],
        ["view", trace, "--" + HOSTILE],
        ["view", trace, "--tz", HOSTILE],
        ["view", trace, "--marks", missing],
        ["telemetry", trace, "--smi", missing],
        ["telemetry", trace, "--smi", str(tmp_path / "text.txt")],
        ["report", named, "-o", named + ".md"],
        ["report", named, "--bundle", named + ".zip"],
        ["report", named, "--bundle", named + ".zip"],
        ["cut", named, "--from", "+0ns", "--to", "+100us", "-o", named + ".cut.json"],
        ["demo", "--no-open", "--out", str(tmp_path / ("demo" + FILE_NAME))],
        ["cache", "list"],
        ["cache", "clear", "--older-than", HOSTILE],
        [HOSTILE],
        [],
    ]
    data = printed(lines, tmp_path)
    assert_harmless(data)
    report = Path(named + ".md").read_text(encoding="utf-8")
    assert "# Performance report" in report and not active_in(report)


KEYS = (
    ("details", "/aten\r"),
    ("n N walk", "\r"),
    ("duration", "y"),
    ("OSC 52", "yt"),
    ("Total ▼", ":copy-table\r"),
    ("rows of", "q"),
)
"""A slice is searched for, as Enter alone goes to what a finding offers once there is one.

Its details are copied; then a table is shown and copied.
"""


@pytest.mark.slow
def test_the_viewer(tmp_path: Path) -> None:
    """On a hostile trace the viewer sends no other kinds of sequences than on a harmless one; what it copies
    holds no active character.
    """
    kinds = []
    for evil in (False, True):
        trace = write_small(tmp_path / f"small-{evil}.json", evil)
        sent = on_terminal("view", str(trace), play=KEYS, cwd=tmp_path, size=(160, 50)).screen
        kinds.append({act for act, _ in acts_of(sent.encode())})
        assert COLOUR not in colours_in(sent)
        copies = [text.split(";") for text in re.findall("\x1b\\]([^\x07\x1b]*)(?:\x07|\x1b\\\\)", sent)]
        assert {code for code, *_ in copies} <= {"22", "52"}  # the shape of the pointer, the clipboard
        texts = [base64.b64decode(parts[2]).decode() for parts in copies if parts[0] == "52"]
        assert not any(map(active_in, texts)), texts
    assert len(texts) == 2 and "PWNED" in texts[1] and kinds[1] <= kinds[0]


async def test_what_the_viewer_saves(tmp_path: Path) -> None:
    """Tables, slices, marks and pictures that are saved hold no active character."""
    trace = open_trace(write_small(tmp_path / "small.json"), index_dir=tmp_path / "index")
    saved = [f"save table t.{form}" for form in ("csv", "json", "md")]
    saved += [
        "save slices s.csv",
        "save slices s.json",
        "save marks m.json",
        "save picture p.txt",
        "save picture p.svg",
    ]
    async with open_viewer(trace, (160, 50)) as (app, pilot):
        await press_keys(app, pilot, "t", "m")
        for line in saved:
            what, name = line.rsplit(" ", 1)
            app.post_message(Prompt.Answered("command-line", f"{what} {tmp_path / name}"))
            await pilot.pause()
            await wait_until_idle(app, pilot)
            await app.workers.wait_for_complete()
            await pilot.pause()
            text = (tmp_path / name).read_text(encoding="utf-8")
            assert text and not active_in(text.replace("\u00a0", " ")), name


@needs(CASES)
@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("gpu", tuple(COMMANDS)),
        *(later((name, tuple(COMMANDS)[turn::3])) for turn, name in enumerate(("aiu", "raw", "zalgo"))),
        later(("cnt", ("info", "telemetry", "view", "report"))),
        later(("mem", ("memory", "ops", "steps", "findings", "slices"))),
        later(("comp", ("compile", "chain"))),
        later(("ddp", ("ranks", "info", "steps"))),
    ],
)
def test_hostile_twins_of_real_traces(
    name: str, commands: Sequence[str], hostile_folder: Path, tmp_path: Path
) -> None:
    """No command, in any format, lets what stands in a real trace made hostile act on the terminal."""
    path = hostile_folder / (name if name == "ddp" else f"{name}.json")
    assert_harmless(printed(_lines(str(path), commands), tmp_path))


ENDING = ("suspend", "stop-indexing", "close-or-quit", "quit")
"""Commands after which there is no viewer to look at."""
ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D"}
OTHER_KEYS = {
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "enter": "\r",
} | {
    "space": " ",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
}
DOWN = "\x1b[B"
CLOSE = "\x1b\x1b\x1b"
"""Closes whatever is on top; the last one counts once no character follows it."""
ALL_PANELS = "All panels"
PANELS_BELOW = "All panels, none of them maximised"
LOGS = "Logs and clocks"
TOGETHER = 4
"""So many groups of commands are walked one after the other in one viewer: it takes a second to start."""
WALKS: dict[str, list[Command]] = {
    ", ".join(group.task for group in GROUPS[at : at + TOGETHER]): [
        command for group in GROUPS[at : at + TOGETHER] for command in group.commands
    ]
    for at in range(0, len(GROUPS), TOGETHER)
} | {LOGS: [command for group in GROUPS if group.task == LOGS for command in group.commands]}
PARTS = (ALL_PANELS, *(part for part in WALKS if part != LOGS))
SIZE = (120, 40)
QUIET_S = 0.04
PASTED = HOSTILE.replace("\0", "").replace("\x1b[201~", "")
WORDS = "PWNED"
"""Stands in every name of a hostile trace; as a file it is one that is written, or not there."""


def typed(key: str) -> str:
    """Return what a terminal sends for a key."""
    modifier, _, plain = key.rpartition("+")
    if modifier == "ctrl":
        return chr(ord(plain) & 31)
    if plain in ARROWS:
        return f"\x1b[1;2{ARROWS[plain]}" if modifier == "shift" else f"\x1b[{ARROWS[plain]}"
    return OTHER_KEYS.get(key, key)


class Walk:
    """A walk through the viewer, on a terminal of its own."""

    def __init__(self, line: SlowLine) -> None:
        self.line = line
        self.sent: list[bytes] = []
        self.seen = ""  # all screens

    def press(self, keys: str) -> None:
        """Press keys, and look at what comes of it."""
        self.line.type(keys)
        self.line.wait_for_quiet(QUIET_S)
        assert not self.line.has_ended(), (keys, self.line.screen.text)
        self.sent.append(self.line.received)
        self.line.forget_received()
        self.seen += self.line.screen.text

    def command(self, command: Command) -> None:
        """Give a command, with a slice selected; paste into what it asks, and choose from what it lists."""
        self.press(CLOSE)
        self.line.type("0K")
        self.press(typed(command.keys[0]) if command.keys else f":{command.typed_name}\r")
        self.press(f"\x1b[200~{PASTED}\x1b[201~{DOWN}\r")
        for form, _ in command.forms:
            first, *others = form.split()
            self.press(CLOSE)
            self.press(f":{command.typed_name} {f'{first} {WORDS}' if others else WORDS}\r")

    def panels(self, groups: Iterable[TabGroup], is_maximised: bool) -> None:
        """Show panels, choose a row of each and copy it; give it the whole screen if that is asked for."""
        for name, _ in chain.from_iterable(group.panels for group in groups):
            self.press(CLOSE)
            self.press(f":{name}\r")
            self.press(f"\t{DOWN}{DOWN}\ry")
            if is_maximised:
                self.press(CLOSE)
                self.press("Z")
                self.line.type("Z")


def walk(trace: Path, folder: Path, part: str, *options: str, panels: Iterable[TabGroup] = PANELS) -> bytes:
    """Go through panels, or a group of commands, and return all that the viewer sent."""
    folders = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), str(folder))
    folders["ESCDELAY"] = "5"
    command = tracelane_command("view", str(trace), *options)
    with SlowLine(command, SIZE, environ=folders, cwd=folder) as line:
        line.wait_for("details")
        tour = Walk(line)
        if part in (ALL_PANELS, PANELS_BELOW):
            line.type(f"/{WORDS}\r")
            tour.panels(panels, is_maximised=part == ALL_PANELS)
        for entry in WALKS.get(part, ()):
            if entry.id not in ENDING:
                tour.command(entry)
        tour.press(CLOSE)
        line.type("q")
        assert line.wait_for_end() == 0
        assert "should not have happened" not in tour.seen and "Error:" not in tour.seen
        return b"".join((*tour.sent, line.received))


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("part", PARTS)
def test_a_small_trace(part: str, tmp_path: Path) -> None:
    """Every panel and command on a trace whose every text is hostile; what is saved or copied is harmless."""
    data = walk(write_small(tmp_path / "small.json"), tmp_path, part)
    assert b"PWNED" in data
    assert_only_draws(data)
    if part == ALL_PANELS:
        titles = [title[: MIN_NAME // 2] for group in PANELS for _, title in group.panels]
        assert not [title for title in titles if title.encode() not in data]
    for path in tmp_path.glob(f"{WORDS}*"):
        assert not active_in(path.read_text(encoding="utf-8").replace("\u00a0", " ")), path


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("part", [LOGS, ALL_PANELS])
def test_ranks_with_a_log(part: str, tmp_path: Path) -> None:
    """The same for a folder of ranks with a hostile log laid over them."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    write_ranks(folder)
    log = write_log(tmp_path / "log.csv")
    data = walk(folder, tmp_path, part, "--smi", str(log), "--smi-offset", "0")
    assert b"PWNED" in data
    assert_only_draws(data)


OWN_PANELS = {"aiu": "panel-time", "mem": "panel-memory", "comp": "panel-compile", "ddp": "panel-ranks"}
"""Which group of panels such a trace fills as no other does."""
TWINS = ("gpu", *OWN_PANELS, "raw", "zalgo", "cnt")
EACH_OF = 3


def panels_of(twin: str) -> list[TabGroup]:
    """Return all groups of panels for the first twin; for another its own, and one of so many in turn."""
    turn = TWINS.index(twin)
    return [
        group
        for at, group in enumerate(PANELS)
        if turn == 0 or group.command == OWN_PANELS.get(twin) or at % EACH_OF == turn % EACH_OF
    ]


@needs(CASES)
@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("name", TWINS)
def test_hostile_twins_of_real_traces_viewer(name: str, hostile_folder: Path, tmp_path: Path) -> None:
    """Every panel on a real trace made hostile, and on others those that they fill and some in turn."""
    path = hostile_folder / (name if name == "ddp" else f"{name}.json")
    data = walk(path, tmp_path, PANELS_BELOW, panels=panels_of(name))
    assert_only_draws(data)
