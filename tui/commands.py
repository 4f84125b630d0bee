"""The one table of commands: bindings, footer, help, palette and the README's key table come from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tracelane.core.tables.registry import TABS, Tab


@dataclass(frozen=True)
class Command:
    """One thing the viewer can do; `keys` as a person presses them, the first one is shown first."""

    id: str  # names the command in the config file's [keys], on the command line and in bindings
    title: str
    keys: tuple[str, ...]
    help: str
    group: str
    footer: str = ""  # what the footer calls it; empty: not there

    @property
    def shown_keys(self) -> str:
        """All keys, written for people."""
        return " ".join(key_text(key) for key in self.keys)


_MOVE, _SELECT, _RANGE = "Move", "Select", "Ranges, gaps, marks"
_LANES, _VIEW = "Lanes", "Panels and view"
GROUPS: Final = (_MOVE, _SELECT, _RANGE, _LANES, _VIEW)


def _panel(tab: Tab) -> Command:
    return Command(f"panel-{tab.name}", tab.title, (tab.key,), tab.help, _VIEW)


COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "zoom-in", "Zoom in", ("w", "+", "="), "Show two thirds of the time, about the cursor", _MOVE, "zoom"
    ),
    Command("zoom-out", "Zoom out", ("s", "-"), "Show half as much time again, about the cursor", _MOVE),
    Command("zoom-in-far", "Zoom in ×10", ("W",), "Show a tenth of the time, about the cursor", _MOVE),
    Command("zoom-out-far", "Zoom out ×10", ("S",), "Show ten times the time, about the cursor", _MOVE),
    Command("pan-left", "Pan left", ("a", "shift+left"), "Move the view 30 % towards the start", _MOVE),
    Command(
        "pan-right", "Pan right", ("d", "shift+right"), "Move the view 30 % towards the end", _MOVE, "pan"
    ),
    Command("page-left", "Page left", ("A",), "Move the view by its whole width towards the start", _MOVE),
    Command("page-right", "Page right", ("D",), "Move the view by its whole width towards the end", _MOVE),
    Command("trace-start", "Start of the trace", ("home",), "Move the view to the start, zoom kept", _MOVE),
    Command("trace-end", "End of the trace", ("end",), "Move the view to the end, zoom kept", _MOVE),
    Command("page-up", "Lanes: page up", ("pageup",), "Scroll the lanes one screen up", _MOVE),
    Command("page-down", "Lanes: page down", ("pagedown",), "Scroll the lanes one screen down", _MOVE),
    Command("previous-step", "Previous step", ("<",), "Go to the step before, zoom kept", _MOVE),
    Command("next-step", "Next step", (">",), "Go to the next step, zoom kept", _MOVE),
    Command(
        "go-to",
        "Go to a time",
        ("g",),
        "Ask for a time (+12.5ms, @µs, 09:28:06.1), step:4, mark:NAME or #slice",
        _MOVE,
        "go to",
    ),
    Command(
        "focus", "Zoom to the selection", ("f",), "Fit the selected slice; again: fit all", _MOVE, "focus"
    ),
    Command("reset", "Reset the view", ("0",), "Show the trace as at first; again: far outliers too", _MOVE),
    Command(
        "previous",
        "Previous slice",
        ("left", "h"),
        "Select the slice before on the row; with nothing selected, move the cursor",
        _SELECT,
    ),
    Command(
        "next",
        "Next slice",
        ("right", "l"),
        "Select the next slice on the row; with nothing selected, move the cursor",
        _SELECT,
    ),
    Command("up", "Enclosing slice", ("up", "k"), "Select the enclosing slice, then the lane above", _SELECT),
    Command(
        "down", "Child slice", ("down", "j"), "Select the child at the cursor, then the lane below", _SELECT
    ),
    Command("lane-up", "Lane above", ("K",), "Move to the lane above", _SELECT),
    Command("lane-down", "Lane below", ("J",), "Move to the lane below", _SELECT),
    Command(
        "details",
        "Select, details",
        ("enter",),
        "Select the slice at the cursor, show its details; again: zoom to it",
        _SELECT,
        "details",
    ),
    Command("launch", "Back to the launch", ("b", "["), "Select what launched the selection", _SELECT),
    Command(
        "kernel",
        "On to the kernel",
        ("o", "]"),
        "Select what the selection launched; a list if several",
        _SELECT,
    ),
    Command(
        "flows", "Flows in view", ("F",), "Draw all flows in view as arrows; again: the selection's", _SELECT
    ),
    Command(
        "source", "Source", ("V",), "Show the source file that the slice or a frame around it names", _SELECT
    ),
    Command("copy", "Copy as JSON", ("y",), "Copy the selected slice, arguments included, as JSON", _SELECT),
    Command(
        "range", "Range", ("v",), "Begin a range at the cursor; moves draw it out; again: end it", _RANGE
    ),
    Command("next-gap", "Next gap", ("i",), "Select the next gap on the row, a cell wide or more", _RANGE),
    Command("longest-gap", "Longest gap", ("I",), "Select the longest gap on the row, in the range", _RANGE),
    Command(
        "range-selection",
        "Selection → range",
        ("r",),
        "Take the selection's time as the range, else the step's at the cursor",
        _RANGE,
    ),
    Command(
        "baseline",
        "Baseline",
        ("c",),
        "Hold tables against the range, else the step: they grow Δ columns; again: drop it",
        _RANGE,
    ),
    Command(
        "search",
        "Search",
        ("/",),
        "Mark what matches: nccl cat:kernel dur>1ms lane:… -word",
        _SELECT,
    ),
    Command("next-hit", "Next hit", ("n",), "Select the next slice found, in order of time", _SELECT),
    Command(
        "previous-hit", "Previous hit", ("N",), "Select the slice found before, in order of time", _SELECT
    ),
    Command(
        "same-name", "All of this name", ("*",), "Search for all slices of the selected one's name", _SELECT
    ),
    Command(
        "same-value",
        "All of this value",
        (),
        "Pick the selection's name or an argument, search for all that have it; * in the details too",
        _SELECT,
    ),
    Command("hits", "List what was found", ("z",), "List what was found, or what a filter leaves", _SELECT),
    Command("mark", "Mark", ("m",), "Mark the range, else the cursor", _RANGE),
    Command("mark-text", "Mark with a text", ("M",), "Mark the range, else the cursor, with a text", _RANGE),
    Command("marks", "Marks", ("'",), "List the marks; Enter goes there", _RANGE),
    Command(
        "marks-import", "Marks from a file", (), "Add the marks of a file that :save marks wrote", _RANGE
    ),
    Command(
        "steps-by-name",
        "Use this name as step",
        (),
        "Take all slices of the selected one's name for steps; again: as found",
        _RANGE,
    ),
    Command("unmark", "Remove a mark", (), "Remove the mark nearest to the cursor, if in view", _RANGE),
    Command("fold", "Fold or open", ("space",), "Fold or open the lane or process", _LANES, "fold"),
    Command("fold-process", "Fold the process", ("P",), "Fold or open the whole process of the lane", _LANES),
    Command("expand", "Expand", ("e",), "Open the lane to its full depth; again: back", _LANES),
    Command("pin", "Pin", ("p",), "Keep the lane at the top; again: release it", _LANES),
    Command("hide", "Hide the lane", ("x",), "Hide this lane or process", _LANES),
    Command("hide-alike", "Hide lanes alike", ("X",), "Hide all lanes of this name, digits aside", _LANES),
    Command("smi", "Lay a log over the trace", (), "Show an aiu-smi log's metrics below its device", _LANES),
    Command(
        "memory-lanes", "Memory lanes", (), "Hide what allocators gave out over time; again: show", _LANES
    ),
    Command("queue-lanes", "Queue length", (), "Draw how many launches wait or run, per stream", _LANES),
    Command("log-earlier", "Log earlier", ("{",), "Move a log by its sampling interval, earlier", _LANES),
    Command("log-later", "Log later", ("}",), "Move a log by its sampling interval, later", _LANES),
    Command("hidden", "What is hidden", ("H",), "List what is hidden; Enter shows it again", _LANES),
    Command("back", "Previous view", ("u", "backspace"), "Go back to the view before", _VIEW),
    Command("forward", "Next view", ("U",), "Go forward again after going back", _VIEW),
    Command("copy-view", "Copy the view", (), "Copy the command line that shows this view", _VIEW),
    Command("panel-details", "Details", ("1",), "Show the selection's details in the panel", _VIEW),
    Command(
        "panel-findings",
        "Findings",
        ("2",),
        "Show what stands out, with evidence; again: what was read, repaired or unreadable",
        _VIEW,
    ),
    *map(_panel, TABS[:-1]),
    Command("captures", "Captures", (), "List the captures that lie together; Enter opens another", _VIEW),
    Command(
        "rank-clocks",
        "Ranks: aligned or as stamped",
        (),
        "Switch off what collectives corrected of the ranks' clocks; again: on",
        _VIEW,
    ),
    Command(
        "device-clock",
        "Estimate the device's clock",
        (),
        "Move devices so that no work begins before its launch; again: as the file has them",
        _VIEW,
    ),
    *map(_panel, TABS[-1:]),
    Command(
        "copy-table", "Copy the table", ("Y",), "Copy the table of the panel, as sorted, as Markdown", _VIEW
    ),
    Command("legend", "Legend", ("L",), "Show what the colours and marks mean; again: back", _VIEW),
    Command("maximise", "Maximise the panel", ("T",), "Give the panel the whole screen; again: back", _VIEW),
    Command("other-pane", "Lanes ↔ panel", ("tab",), "Move the arrows between lanes and panel", _VIEW),
    Command(
        "ruler", "Ruler: other time", ("Z",), "Change the ruler: relative, as in the file, wall clock", _VIEW
    ),
    Command("reload", "Reload", ("R",), "Read the trace again if a file of it has changed", _VIEW),
    Command("theme", "Dark or light", (), "Change between the dark and the light theme", _VIEW),
    Command("command-line", "Command line", (":",), "Type a command, such as only REGEX or goto TIME", _VIEW),
    Command("palette", "Command palette", ("ctrl+p",), "Find any command by its name", _VIEW),
    Command("help", "Help", ("?",), "Show all keys", _VIEW, "help"),
    Command("close", "Close", ("escape",), "Close what is on top, then drop range and selection", _VIEW),
    Command("close-or-quit", "Close or quit", ("q",), "Close what is on top, then quit", _VIEW, "quit"),
    Command("redraw", "Draw anew", ("ctrl+l",), "Mend a screen that something else wrote on", _VIEW),
    Command(
        "suspend", "Suspend", ("ctrl+z",), "Stop and give the terminal back; fg in the shell goes on", _VIEW
    ),
    Command(
        "stop-indexing", "Stop indexing", ("ctrl+c",), "While a trace is being indexed: ask, then quit", _VIEW
    ),
    Command("quit", "Quit", ("Q",), "Quit at once", _VIEW),
)

MOUSE: Final[tuple[tuple[str, str], ...]] = (
    ("click", "Select the slice, or the gap between two; on a title: fold or open"),
    ("double click", "Zoom to the slice"),
    ("wheel", "Scroll the lanes; over the ruler or with ctrl: zoom about the mouse"),
    ("shift+wheel", "Pan"),
    ("drag", "Take a stretch of time as the range; f zooms to it"),
    ("heading of a table", "Click: sort by this column; again: the other way"),
    ("minimap", "Click or drag: move the view there"),
)

LINES: Final[tuple[tuple[str, str], ...]] = (
    ("only REGEX", "Show only lanes whose title matches, or their rank's; alone: all again"),
    ("marks FILE", "Add the marks of a file that :save marks wrote"),
    ("steps NAME", "Take the slices of this name for steps, numbers in it aside; alone: as found"),
    ("copy view", "Copy the command line that shows this view"),
    ("goto TIME", "Go to a time, step, mark or slice number, as with g"),
    ("filter FILTER", "Draw only the slices that match, as with /; alone: all again"),
    ("hide REGEX", "Hide the lanes whose title matches, or their rank's"),
    ("show all", "Show everything that was hidden"),
    ("quiet", "Fold the quiet threads again, or show them"),
    ("ruler relative|file|wall", "Choose the ruler's time"),
    ("smi FILE", "Lay an aiu-smi log, or another with a header and times, over the trace"),
    ("smi-offset S", "Set by how many seconds the log's clock runs ahead; alone: as proposed"),
    (
        "colour by category|name|arg:KEY",
        "Choose what colours tell: an argument's values too; alone: categories",
    ),
    ("device-offset S", "Add S seconds to the device's times; auto: as estimated; alone: as stamped"),
    ("save picture FILE", "Write FILE.svg, the screen as it is seen, or FILE.txt, the lanes without colours"),
    ("cut FILE", "Write the range as a trace of its own, FILE.json or FILE.json.gz"),
    ("save marks FILE", "Write all marks to a file, for others who have the trace"),
    ("save table FILE", "Write the table of the panel, as sorted, to FILE.csv, FILE.json or FILE.md"),
    (
        "save slices FILE",
        "Write the slices (of the range, of what :only and :filter leave) to FILE.csv or FILE.json",
    ),
    ("theme NAME", "Choose a theme; a wrong name lists them"),
    ("<command>", "Any command by its name, such as zoom-in-far"),
)
"""What the command line understands beside the commands' own names."""

_KEY_TEXTS: Final = {
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "shift+left": "shift+←",
    "shift+right": "shift+→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "tab": "Tab",
    "backspace": "Backspace",
}


def key_text(key: str) -> str:
    """Return a key as it is written for people: `←` for "left", `w` for "w"."""
    return _KEY_TEXTS.get(key, key)


def command(command_id: str) -> Command:
    """Return a command by its id; KeyError if there is none."""
    return _BY_ID[command_id]


_BY_ID: Final = {entry.id: entry for entry in COMMANDS}


def commands_table() -> str:
    """Return all commands as a Markdown table, for the README."""
    lines = ["| keys | command | what it does |", "|---|---|---|"]
    for group in GROUPS:
        lines.append(f"| | **{group}** | |")
        for entry in COMMANDS:
            if entry.group == group:
                keys = " ".join(_code(key_text(key)) for key in entry.keys) or "palette"
                lines.append(f"| {keys} | {entry.title} | {entry.help} |")
    lines.append("| | **Mouse** | |")
    lines.extend(f"| {name} | | {text} |" for name, text in MOUSE)
    lines.append("| | **Command line** | |")
    lines.extend(f"| {_code(':' + name.replace('|', '/'))} | | {text} |" for name, text in LINES)
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"
