"""The one table of commands: bindings, footer, help, palette, what is typed after the colon,
and the key table of docs/keys.md come from it.
"""

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
    forms: tuple[tuple[str, str], ...] = ()  # what may be typed after its name, and what that does
    is_typed: bool = False  # whether it does nothing without being typed
    typed: str = ""  # the name that is typed, where it is another than the id
    words: str = ""  # other words by which people look for it

    @property
    def typed_name(self) -> str:
        """The name that is typed on the command line."""
        return self.typed or self.id

    @property
    def shown_keys(self) -> str:
        """All keys, written for people."""
        return " ".join(key_text(key) for key in self.keys)


_TIME, _FOLLOW, _FIND = "Move in time", "Select and follow", "Find"
_RANGE, _TABLES, _LANES = "Ranges, gaps, comparing", "Tables and panels", "Lanes"
_MARKS, _CLOCKS, _SAVE, _VIEWER = "Marks", "Logs and clocks", "Copy and save", "Viewer"
GROUPS: Final = (_TIME, _FOLLOW, _FIND, _RANGE, _TABLES, _LANES, _MARKS, _CLOCKS, _SAVE, _VIEWER)
"""By task, in the order of the help."""


def _panel(tab: Tab) -> Command:
    return Command(f"panel-{tab.name}", tab.title, (tab.key,), tab.help, _TABLES)


COMMANDS: Final[tuple[Command, ...]] = (
    # -- move in time
    Command(
        "zoom-in",
        "Zoom in",
        ("w", "+"),
        "Show two thirds of the time, about the cursor",
        _TIME,
        "zoom",
        words="closer magnify enlarge",
    ),
    Command(
        "zoom-out",
        "Zoom out",
        ("s", "-"),
        "Show half as much time again, about the cursor",
        _TIME,
        words="farther",
    ),
    Command("zoom-in-far", "Zoom in ×10", ("W",), "Show a tenth of the time, about the cursor", _TIME),
    Command("zoom-out-far", "Zoom out ×10", ("S",), "Show ten times the time, about the cursor", _TIME),
    Command(
        "pan-left", "Pan left", ("a",), "Move the view 30 % towards the start", _TIME, words="scroll earlier"
    ),
    Command(
        "pan-right",
        "Pan right",
        ("d",),
        "Move the view 30 % towards the end",
        _TIME,
        words="scroll later",
    ),
    Command(
        "page-left",
        "Page left",
        ("shift+left",),
        "Move the view by its whole width towards the start",
        _TIME,
    ),
    Command(
        "page-right",
        "Page right",
        ("shift+right",),
        "Move the view by its whole width towards the end",
        _TIME,
    ),
    Command("trace-start", "Start of the trace", ("home",), "Move the view to the start, zoom kept", _TIME),
    Command("trace-end", "End of the trace", ("end",), "Move the view to the end, zoom kept", _TIME),
    Command(
        "previous-step",
        "Previous step",
        ("<",),
        "Go to the step before, zoom kept",
        _TIME,
        words="iteration",
    ),
    Command("next-step", "Next step", (">",), "Go to the next step, zoom kept", _TIME, words="iteration"),
    Command(
        "go-to",
        "Go to a time or step",
        ("g",),
        "Ask for a time (+12.5ms, @µs, 09:28:06.1), step:4 or 4, mark:NAME or #slice",
        _TIME,
        forms=(("TIME", "Go to a time, step, mark or slice number, as with g"),),
        typed="goto",
        words="jump seek",
    ),
    Command(
        "focus",
        "Zoom to it",
        ("f",),
        "Fit the range or slice that was chosen last; again: fit all",
        _TIME,
        "focus",
        words="fit selection",
    ),
    Command(
        "reset",
        "Reset the view",
        ("0",),
        "Show the trace as at first; again: far outliers too",
        _TIME,
        words="whole all home",
    ),
    # -- select and follow
    Command(
        "previous",
        "Previous slice",
        ("left", "h"),
        "Select the slice before on the row; with nothing selected, move the cursor",
        _FOLLOW,
    ),
    Command(
        "next",
        "Next slice",
        ("right", "l"),
        "Select the next slice on the row; with nothing selected, move the cursor",
        _FOLLOW,
    ),
    Command(
        "up",
        "Enclosing slice",
        ("up", "k"),
        "Select the enclosing slice, then the lane above",
        _FOLLOW,
        words="parent caller",
    ),
    Command(
        "down",
        "Child slice",
        ("down", "j"),
        "Select the child at the cursor, then the lane below",
        _FOLLOW,
        words="callee",
    ),
    Command("lane-up", "Lane above", ("shift+up",), "Move to the lane above", _FOLLOW, words="thread track"),
    Command(
        "lane-down", "Lane below", ("shift+down",), "Move to the lane below", _FOLLOW, words="thread track"
    ),
    Command(
        "details",
        "Select, details",
        ("enter",),
        "Select the slice at the cursor, show its details; again: zoom to it",
        _FOLLOW,
        "details",
        words="arguments args info power",
    ),
    Command(
        "launch",
        "Back to the launch",
        ("b",),
        "Select what launched the selection",
        _FOLLOW,
        words="flow arrow launcher cause previous",
    ),
    Command(
        "kernel",
        "On to the kernel",
        ("o",),
        "Select what the selection launched; a list if several",
        _FOLLOW,
        words="flow arrow launched next",
    ),
    Command(
        "flows",
        "Flows in view",
        (),
        "Draw all flows in view as arrows; again: the selection's",
        _FOLLOW,
        words="arrows links",
    ),
    Command(
        "source",
        "Source",
        (),
        "Show the source file that the slice or a frame around it names",
        _FOLLOW,
        words="code file line",
    ),
    # -- find
    Command(
        "search",
        "Search",
        ("/",),
        "Mark what matches as it is typed: nccl cat:kernel dur>1ms lane:… -word",
        _FIND,
        "search",
        forms=(("FILTER", "Mark what matches, as with /"),),
        words="find grep query",
    ),
    Command("next-hit", "Next hit", ("n",), "Select the next slice that matches, in order of time", _FIND),
    Command(
        "previous-hit",
        "Previous hit",
        ("N",),
        "Select the slice before that matches, in order of time",
        _FIND,
    ),
    Command("hits", "List the hits", ("z",), "List what a search found, or what a filter leaves", _FIND),
    Command(
        "same-name", "All of this name", ("*",), "Search for all slices of the selected one's name", _FIND
    ),
    Command(
        "same-value",
        "All of this value",
        (),
        "Pick the selection's name or an argument, search for all that have it; * in the details too",
        _FIND,
    ),
    Command(
        "filter",
        "Filter",
        (),
        "Draw only the slices that match; alone: all again",
        _FIND,
        forms=(("FILTER", "Draw only the slices that match, as with /; alone: all again"),),
        is_typed=True,
        words="only hide slices",
    ),
    Command(
        "longest",
        "Longest kernel",
        ("K",),
        "Select the longest device work of the range, else of all; again: the next longest",
        _FIND,
        words="slowest kernel top maximum",
    ),
    # -- ranges, gaps, comparing
    Command(
        "range",
        "Range",
        ("v",),
        "Begin a range at the cursor; moves draw it out; again: end it",
        _RANGE,
        words="select area region",
    ),
    Command(
        "range-selection",
        "Selection or step → range",
        ("r",),
        "Take the slice or step that was gone to last as the range",
        _RANGE,
        words="area region",
    ),
    Command(
        "next-gap",
        "Next gap",
        ("i",),
        "Select the next gap on the row, a cell wide or more",
        _RANGE,
        words="idle wait bubble why",
    ),
    Command(
        "longest-gap",
        "Longest gap",
        ("I",),
        "Select the longest gap on the row, in the range",
        _RANGE,
        words="idle wait bubble why",
    ),
    Command(
        "compare",
        "Compare A with B",
        ("c",),
        "Ask for two steps or ranges (3 4): tables grow Δ columns; empty: stop comparing",
        _RANGE,
        forms=(("A B", "Compare B with A: step numbers, mark:NAME, range, all; alone: stop"),),
        words="diff difference delta baseline versus",
    ),
    Command(
        "baseline",
        "Use as baseline",
        (),
        "Hold tables against the range, else the step: they grow Δ columns; again: drop it",
        _RANGE,
        words="compare diff",
    ),
    Command(
        "steps-by-name",
        "Use this name as step",
        (),
        "Take all slices of the selected one's name for steps; again: as found",
        _RANGE,
        words="iteration",
    ),
    Command(
        "steps",
        "Steps by a name",
        (),
        "Take the slices of a name for steps",
        _RANGE,
        forms=(("NAME", "Take the slices of this name for steps, numbers in it aside; alone: as found"),),
        is_typed=True,
        words="iteration",
    ),
    # -- tables and panels
    Command(
        "panel-details",
        "Details",
        ("1",),
        "Show the selection's details in the panel",
        _TABLES,
        words="arguments args info power",
    ),
    Command(
        "panel-findings",
        "Findings",
        ("2",),
        "Show what stands out, with evidence; again: what was read, repaired or unreadable",
        _TABLES,
        words="problems issues advice read report",
    ),
    *map(_panel, TABS),
    Command(
        "panel-ops",
        "Table by op",
        ("3",),
        "Show PyTorch's table of ops of the range, or all; again: by shape, module",
        _TABLES,
        words="operators key_averages",
    ),
    Command(
        "panel-kernels",
        "Table by kernel",
        ("4",),
        "Show the device work of the range, or all, by kernel",
        _TABLES,
        words="gpu device work",
    ),
    Command(
        "maximise", "Maximise the panel", ("T",), "Give the panel the whole screen; again: back", _TABLES
    ),
    Command("other-pane", "Lanes ↔ panel", ("tab",), "Move the arrows between lanes and panel", _TABLES),
    Command(
        "legend", "Legend", (), "Show what the colours and marks mean; again: back", _TABLES, words="colors"
    ),
    # -- lanes
    Command("fold", "Fold or open", ("space",), "Fold or open the lane or process", _LANES, "fold"),
    Command(
        "preset",
        "Lanes: which, in which order",
        ("L",),
        "Everything, devices first; devices; devices and the threads that launch; as in the file",
        _LANES,
        "lanes",
        words="order device host",
    ),
    Command(
        "python-frames",
        "Python frames",
        ("P",),
        "Leave Python frames out; again: show them",
        _LANES,
        words="stack python hide",
    ),
    Command("fold-process", "Fold the process", (), "Fold or open the whole process of the lane", _LANES),
    Command("expand", "Open in full", ("e",), "Open the lane to its full depth; again: back", _LANES),
    Command(
        "pin",
        "Pin the lane",
        ("p",),
        "Keep the lane at the top; again: release it",
        _LANES,
        words="thread track",
    ),
    Command(
        "hide",
        "Hide the lane",
        ("x",),
        "Hide this lane or process",
        _LANES,
        forms=(("REGEX", "Hide the lanes whose title matches, or their rank's"),),
        words="thread track",
    ),
    Command(
        "hide-alike",
        "Hide lanes alike",
        (),
        "Hide all lanes of this name, digits aside",
        _LANES,
        words="thread track",
    ),
    Command(
        "hidden",
        "What is hidden",
        (),
        "List what is hidden; Enter shows it again",
        _LANES,
        words="show unhide thread track",
    ),
    Command("show-all", "Show all lanes", (), "Show everything that was hidden", _LANES, words="unhide"),
    Command(
        "only",
        "Only lanes whose title matches",
        (),
        "Show only some lanes; alone: all again",
        _LANES,
        forms=(("REGEX", "Show only lanes whose title matches, or their rank's; alone: all again"),),
        is_typed=True,
        words="filter thread track",
    ),
    Command("quiet", "Quiet threads", (), "Fold the quiet threads, or show them", _LANES, words="lanes"),
    Command("page-up", "Lanes: page up", ("pageup",), "Scroll the lanes one screen up", _LANES),
    Command("page-down", "Lanes: page down", ("pagedown",), "Scroll the lanes one screen down", _LANES),
    Command(
        "memory-lanes", "Memory lanes", (), "Hide what allocators gave out over time; again: show", _LANES
    ),
    Command(
        "queue-lanes",
        "Queue length",
        (),
        "Draw how many launches wait or run, per stream",
        _LANES,
        words="depth counter",
    ),
    Command(
        "colour",
        "Colour by",
        (),
        "Choose what colours tell: category, name, arg:KEY",
        _LANES,
        forms=(
            (
                "by category|name|arg:KEY",
                "Choose what colours tell: an argument's values too; alone: categories",
            ),
        ),
        is_typed=True,
        words="color",
    ),
    # -- marks
    Command(
        "mark",
        "Mark",
        ("m",),
        "Mark the range, else the cursor",
        _MARKS,
        forms=(("TEXT", "Mark it with a text"),),
        words="note bookmark",
    ),
    Command(
        "mark-text",
        "Mark with a text",
        (),
        "Mark the range, else the cursor, with a text",
        _MARKS,
        words="note bookmark",
    ),
    Command(
        "marks",
        "List the marks",
        ("'",),
        "List the marks; Enter goes there",
        _MARKS,
        forms=(("FILE", "Add the marks of a file that :save marks wrote"),),
        words="notes bookmarks",
    ),
    Command(
        "marks-import", "Marks from a file", (), "Add the marks of a file that :save marks wrote", _MARKS
    ),
    Command("unmark", "Remove a mark", (), "Remove the mark nearest to the cursor, if in view", _MARKS),
    # -- logs and clocks
    Command(
        "smi",
        "Lay a log over the trace",
        (),
        "Show an aiu-smi log's metrics below its device",
        _CLOCKS,
        forms=(("FILE", "Lay an aiu-smi log, or another with a header and times, over the trace"),),
        words="telemetry power temperature utilisation csv",
    ),
    Command(
        "smi-offset",
        "The log's clock",
        (),
        "Set by how many seconds the log's clock runs ahead",
        _CLOCKS,
        forms=(("S", "Set by how many seconds the log's clock runs ahead; alone: as proposed"),),
        is_typed=True,
        words="telemetry power",
    ),
    Command("log-earlier", "Log earlier", (), "Move a log by its sampling interval, earlier", _CLOCKS),
    Command("log-later", "Log later", (), "Move a log by its sampling interval, later", _CLOCKS),
    Command(
        "device-clock",
        "Estimate the device's clock",
        (),
        "Move devices so that no work begins before its launch; again: as the file has them",
        _CLOCKS,
    ),
    Command(
        "device-offset",
        "The device's clock",
        (),
        "Add seconds to the device's times",
        _CLOCKS,
        forms=(("S", "Add S seconds to the device's times; auto: as estimated; alone: as stamped"),),
        is_typed=True,
    ),
    Command(
        "rank-clocks",
        "Ranks: aligned or as stamped",
        (),
        "Switch off what collectives corrected of the ranks' clocks; again: on",
        _CLOCKS,
    ),
    Command(
        "ruler",
        "Ruler: other time",
        (),
        "Change the ruler: relative, as in the file, wall clock",
        _CLOCKS,
        forms=(("relative|file|wall", "Choose the ruler's time"),),
        words="axis wall clock",
    ),
    # -- copy and save
    Command(
        "copy",
        "Copy",
        ("y",),
        "Copy the selected slice, arguments included, as JSON; in a table: the table as Markdown",
        _SAVE,
        words="clipboard yank",
    ),
    Command(
        "copy-table",
        "Copy the table",
        (),
        "Copy the table of the panel, as sorted, as Markdown",
        _SAVE,
        words="clipboard",
    ),
    Command(
        "copy-view",
        "Copy the view",
        (),
        "Copy the command line that shows this view",
        _SAVE,
        words="clipboard share link",
    ),
    Command(
        "save",
        "Save to a file",
        (),
        "Write the picture, the panel's table, the slices or the marks to a file",
        _SAVE,
        forms=(
            (
                "picture FILE",
                "Write FILE.svg, the screen as it is seen, or FILE.txt, the lanes without colours",
            ),
            ("marks FILE", "Write all marks to a file, for others who have the trace"),
            ("table FILE", "Write the table of the panel, as sorted, to FILE.csv, FILE.json or FILE.md"),
            (
                "slices FILE",
                "Write the slices (of the range, of what :only and :filter leave) to FILE.csv or FILE.json",
            ),
        ),
        is_typed=True,
        words="export screenshot svg csv json",
    ),
    Command(
        "cut",
        "Cut the range out",
        (),
        "Write the range as a trace of its own",
        _SAVE,
        forms=(("FILE", "Write the range as a trace of its own, FILE.json or FILE.json.gz"),),
        is_typed=True,
        words="export extract crop",
    ),
    # -- viewer
    Command(
        "back",
        "Undo: previous view",
        ("u", "backspace"),
        "Go back to the view before",
        _VIEWER,
        words="history",
    ),
    Command(
        "forward", "Redo: next view", ("U",), "Go forward again after going back", _VIEWER, words="history"
    ),
    Command(
        "help", "Help", ("?",), "Show all commands and keys; type to filter", _VIEWER, "help", words="keys"
    ),
    Command(
        "palette", "Command palette", ("ctrl+p",), "Find any command by its name", _VIEWER, words="commands"
    ),
    Command(
        "command-line", "Command line", (":",), "Type a command, such as only REGEX or goto TIME", _VIEWER
    ),
    Command(
        "messages",
        "Messages",
        (),
        "List what was said since the trace was opened",
        _VIEWER,
        words="log notes errors warnings",
    ),
    Command("captures", "Captures", (), "List the captures that lie together; Enter opens another", _VIEWER),
    Command("reload", "Reload", ("R",), "Read the trace again if a file of it has changed", _VIEWER),
    Command(
        "theme",
        "Dark or light",
        (),
        "Change between the dark and the light theme",
        _VIEWER,
        forms=(("NAME", "Choose a theme; a wrong name lists them"),),
        words="colours colors",
    ),
    Command("redraw", "Draw anew", ("ctrl+l",), "Mend a screen that something else wrote on", _VIEWER),
    Command(
        "suspend", "Suspend", ("ctrl+z",), "Stop and give the terminal back; fg in the shell goes on", _VIEWER
    ),
    Command(
        "stop-indexing",
        "Stop indexing",
        ("ctrl+c",),
        "While a trace is being indexed: ask, then quit",
        _VIEWER,
    ),
    Command(
        "close",
        "Close",
        ("escape",),
        "Close what is on top; then drop message, search, range, selection, comparison in this order",
        _VIEWER,
    ),
    Command("close-or-quit", "Close or quit", ("q",), "Close what is on top, then quit", _VIEWER, "quit"),
    Command("quit", "Quit", ("Q",), "Quit at once", _VIEWER, words="exit leave"),
)

OTHER_NAMES: Final[dict[str, str]] = {
    "goto": "go-to",
    "q": "quit",
    "show": "show-all",
    "show all": "show-all",
    "copy view": "copy-view",
}
"""Other names of commands, on the command line and in the config file's [keys]."""
FORMER_KEYS: Final[dict[str, str]] = {
    "A": "page-left",
    "D": "page-right",
    "J": "lane-down",
    "left_square_bracket": "launch",
    "right_square_bracket": "kernel",
    "F": "flows",
    "V": "source",
    "Y": "copy-table",
    "M": "mark-text",
    "X": "hide-alike",
    "H": "hidden",
    "Z": "ruler",
    "left_curly_bracket": "log-earlier",
    "right_curly_bracket": "log-later",
}
"""Keys that commands had once, as Textual calls them: pressing one says where the command is now."""

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
    *((f"{entry.typed_name} {form}", text) for entry in COMMANDS for form, text in entry.forms),
    ("<command>", "Any command by its name, such as zoom-in-far"),
)
"""What the command line understands."""

_KEY_TEXTS: Final = {
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "shift+left": "shift+←",
    "shift+right": "shift+→",
    "shift+up": "shift+↑",
    "shift+down": "shift+↓",
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
    """Return all commands as a Markdown table, for docs/keys.md."""
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
