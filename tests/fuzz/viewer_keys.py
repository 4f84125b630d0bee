"""Random keys, pastes, mouse and sizes: the viewer must neither fail, nor grow, nor stand still.

    python -m tests.fuzz.viewer_keys [SECONDS] [SEED] [TRACE]

It runs on a pseudo-terminal with `--log`, where errors and pauses are written down. Memory is what is private
to the process; what is in use after WARM_UP_S and WARM_UP_INPUTS, at the latest half way, counts as needed.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.tui.slow_line import SlowLine, tracelane_command
from tracelane.core.demo.trace import write_demo
from tracelane.tui.commands.table import COMMANDS

WARM_UP_S = 60.0
WARM_UP_INPUTS = 1500
"""So many come in that time on a machine that has nothing else to do."""
LOOK_EVERY_S = 2.0
LOOK_EVERY_INPUTS = 40
QUIET_S = 0.05
ESCAPE_S = 0.15
"""After so long Esc is a key by itself; a character that follows at once would belong to it."""
KEYS_PER_S = 30
MAX_WORK_S = 60.0
"""Of processor time between two rests: what takes longer never ends."""
MAX_GROWTH_MIB = 20.0
MAX_PAUSE_S = 0.5
PAUSE = re.compile(r"stopped for [0-9.]+ s, the processor worked ([0-9.]+) s")
KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)
"""One key, as a terminal sends it."""
QUITTING = ("close-or-quit", "quit")
KEYS = (
    *(key for entry in COMMANDS if entry.id not in QUITTING for key in entry.keys if len(key) == 1),
    *"ADJ[]FVYMXHZ{}'RU=",  # no keys
    *("\r", "\r\r", "\x1b", "\x7f", "\t", " ", "\x0c"),
    *(f"\x1b[{end}" for end in ("A", "B", "C", "D", "H", "F", "5~", "6~", "1;2C", "1;2D")),
)
LISTS = ("\x10", "?", "\x10zoom\r\r", "?zoom\r", "\x10\x1b[5~", "\x10dark\r")
"""The palette and the help can quit, so they are closed before anything else is typed."""
LINES = (
    "only stream",
    "only",
    "hide python",
    "show all",
    "filter dur>1us",
    "filter",
    "colour by name",
    "colour by category",
    "goto 50%",
    "ruler wall",
    "theme light",
    "theme dark",
    "steps nosuch",
    "sql id, name, ts, dur from kernels",
    "sql select nosuch",
    "sql-lane",
    "nosuch",
    "only (a+)+$",
    "save picture NUMBER.svg",
    "save picture NUMBER.txt",
)
PASTES = ("aten::mm", "x" * 5000, "\x07\x1b]0;title\x07", "🙂 ünï\u202e", "line\nline\r\n", "")
SIZES = ((120, 40), (80, 24), (200, 50), (8, 3), (1, 1), (40, 12), (300, 80))


@dataclass(frozen=True)
class Endurance:
    """What a run of the viewer came to."""

    seconds: float
    sent: Counter[str]  # how many keys, pastes, mouse actions and resizes
    growth_mib: float
    longest_pause_s: float  # of processor time: what other programs take is not the viewer's
    errors: str  # what the log tells of them


def endure(
    trace: Path, seconds: float, seed: int, warm_up_s: float = WARM_UP_S, most_inputs: int = 0
) -> Endurance:
    """Run the viewer under random input; raises EOFError where it ends by itself.

    With `most_inputs` it lasts for so many inputs, however long they take.
    """
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "viewer.log"
        environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), folder)
        command = tracelane_command("view", str(trace), "--log", str(log))
        with SlowLine(command, SIZES[0], environ=environment, cwd=Path(folder)) as line:
            line.wait_for("details")
            line.run(1.0)
            began = looked = time.monotonic()
            inputs, low, high = 0, 0.0, 0.0
            sent: Counter[str] = Counter()
            while (share := inputs / most_inputs if most_inputs else (looked - began) / seconds) < 1:
                now = time.monotonic()
                inputs += 1
                send(line, choose, sent)
                line.run(choose.uniform(0, 2 / KEYS_PER_S))
                if inputs % LOOK_EVERY_INPUTS == 0 if most_inputs else now - looked > LOOK_EVERY_S:
                    if line.has_ended():
                        raise EOFError(f"ended with {line.code} after {now - began:.0f} s: {_tail(log)}")
                    _rest(line, QUIET_S)  # on a loaded machine input would pile up, and be counted
                    looked = time.monotonic()
                    memory = private_mib(line.pid)
                    warm = now - began > warm_up_s and inputs > WARM_UP_INPUTS
                    if not warm and share < 1 / 2:
                        low = max(low, memory)
                    high = max(high, memory)
                    line.forget_received()
            text = log.read_text(encoding="utf-8")
        pauses = [float(pause) for pause in PAUSE.findall(text)]
    errors = "\n".join(each for each in text.splitlines() if " error: " in each or each[20:22] == "  ")
    return Endurance(time.monotonic() - began, sent, high - low, max(pauses, default=0.0), errors)


def send(line: SlowLine, choose: random.Random, sent: Counter[str]) -> None:
    """Do one thing that a person, or a cat, could do, and count it."""
    kind = choose.random()
    columns, lines = line.size
    if kind < 0.72:
        keys = "".join(choose.choice(KEYS) for _ in range(choose.choice((1, 1, 1, 2, 5))))
        line.type(keys)
        sent["keys"] += len(KEY.findall(keys))
    elif kind < 0.75:
        keys = choose.choice(LISTS)
        line.type(keys)
        _close_all(line)
        sent["keys"] += 2 + len(KEY.findall(keys))
    elif kind < 0.82:
        _close_all(line)
        command = f":{choose.choice(LINES)}\r".replace("NUMBER", str(sent.total()))
        line.type(command)
        sent["keys"] += 2 + len(command)
    elif kind < 0.86:
        line.type(f"\x1b[200~{choose.choice(PASTES)}\x1b[201~")
        sent["pastes"] += 1
    elif kind < 0.98:
        button = choose.choice((0, 0, 2, 32, 35, 35, 64, 65, 68, 80, 81))
        x, y = choose.randint(1, columns), choose.randint(1, lines)
        line.type(f"\x1b[<{button};{x};{y}M\x1b[<{button & 3};{min(columns, x + 5)};{y}m")
        sent["mouse actions"] += 1
    else:
        line.resize(*choose.choice(SIZES))
        sent["resizes"] += 1


def _rest(line: SlowLine, seconds: float) -> None:
    """Wait until all input is dealt with, however long others have the processor; TimeoutError where the
    viewer works on and on.
    """
    worked = processor_s(line.pid)
    while True:
        try:
            return line.wait_for_quiet(seconds)
        except TimeoutError:
            if processor_s(line.pid) - worked > MAX_WORK_S:
                raise


def _close_all(line: SlowLine) -> None:
    """Close what is on top; each Esc is read before the next key, or it would belong to that."""
    for _ in range(2):
        _rest(line, QUIET_S)
        line.type("\x1b")
        _rest(line, ESCAPE_S)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8").splitlines()[-20:])


def private_mib(pid: int) -> float:
    """Return the memory that only this process has."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return int(text.partition("Private_Dirty:")[2].split()[0]) / 1024


def processor_s(pid: int) -> float:
    """Return how long a process has worked."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    """Run for so many seconds with a seed; 1 where the viewer failed, grew or stood still."""
    seconds = float(arguments[0]) if arguments else 600.0
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(arguments[2]) if len(arguments) > 2 else write_demo(Path(folder))[0]
        run = endure(trace.absolute(), seconds, seed)
    counts = ", ".join(f"{count:,} {what}" for what, count in run.sent.most_common())
    print(
        f"{counts} in {run.seconds:.0f} s, seed {seed}: memory grew by {run.growth_mib:.1f} MiB, "
        f"the longest pause was {run.longest_pause_s:.2f} s"
    )
    if run.errors:
        print(run.errors)
    return int(bool(run.errors) or run.growth_mib > MAX_GROWTH_MIB or run.longest_pause_s > MAX_PAUSE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
