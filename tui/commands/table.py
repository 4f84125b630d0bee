"""The one table of commands: bindings, footer, help, palette, what is typed after the colon,
and the key table of docs/keys.md come from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from tracelane.core.export.forms import FORMS
from tracelane.core.tables.registry import PANELS, TABS

FocusedPart: TypeAlias = Literal["lanes", "strip", "table", "flame", "text"]
"""What part of the screen has the arrows."""

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
    "shift+tab": "shift+Tab",
    "backspace": "Backspace",
    "comma": ",",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


def key_text(key: str) -> str:
    """Return a key as it is written for people: `←` for "left", `w` for "w"."""
    return _KEY_TEXTS.get(key, key)


@dataclass(frozen=True)
class Command:
    """One thing the viewer can do; `keys` as a person presses them, the first one is shown first."""

    id: str  # names the command in the config file's [keys], on the command line and in bindings
    title: str
    keys: tuple[str, ...]
    help: str  # names keys of commands as `with_keys` takes them: {search}
    footer: str = ""  # what the footer calls it; empty: not there
    forms: tuple[tuple[str, str], ...] = ()  # what may be typed after its name, and what that does
    is_typed: bool = False  # whether it does nothing without being typed
    typed: str = ""  # the name that is typed, where it is another than the id
    words: str = ""  # other words by which people look for it
    is_of_selection: bool = False  # whether it waits for a selection that is still being looked for

    @property
    def typed_name(self) -> str:
        return self.typed or self.id

    @property
    def keys_text(self) -> str:
        return " ".join(key_text(key) for key in self.keys)


class CommandTask(NamedTuple):
    """The commands of one task, in the order of the help."""

    task: str
    commands: tuple[Command, ...]


ONE_PANEL: Final = "One panel of a tab"
"""The task of commands that each show one panel: their tabs' keys show them, too."""


def _tab_commands() -> tuple[Command, ...]:
    return tuple(
        Command(f"panel-{tab.name}", tab.title, (tab.key,), tab.help, words=tab.words) for tab in TABS
    )


def _panel_commands() -> tuple[Command, ...]:
    tabs = {tab.name: tab for tab in TABS}
    commands = []
    for row, panel in PANELS.values():
        if panel.name not in tabs:  # the tab's own command shows it
            tab = tabs[row.tab]
            title = f"{tab.title.partition(',')[0]}: {panel.title}"
            words = f"{tab.words} {panel.words}"
            commands.append(Command(f"panel-{panel.name}", title, (), panel.help, words=words))
    return tuple(commands)


_FORMS_TEXT: Final = f"FILE.{', FILE.'.join(FORMS)}"
GROUPS: Final = (
    CommandTask(
        "Move in time",
        (
            Command(
                "zoom-in",
                "Zoom in",
                ("w", "+"),
                "Show two thirds of the time, around the cursor",
                footer="zoom",
                words="closer magnify enlarge",
            ),
            Command(
                "zoom-out",
                "Zoom out",
                ("s", "-"),
                "Show half as much time again, around the cursor",
                words="farther",
            ),
            Command("zoom-in-far", "Zoom in ×10", ("W",), "Show a tenth of the time, around the cursor"),
            Command("zoom-out-far", "Zoom out ×10", ("S",), "Show ten times the time, around the cursor"),
            Command(
                "pan-left", "Pan left", ("a",), "Move the view 30 % towards the start", words="scroll earlier"
            ),
            Command(
                "pan-right", "Pan right", ("d",), "Move the view 30 % towards the end", words="scroll later"
            ),
            Command("page-left", "Page left", (), "Move the view by its whole width towards the start"),
            Command("page-right", "Page right", (), "Move the view by its whole width towards the end"),
            Command("trace-start", "Start of the trace", ("home",), "Move the view to the start, zoom kept"),
            Command("trace-end", "End of the trace", ("end",), "Move the view to the end, zoom kept"),
            Command(
                "previous-step",
                "Previous step",
                ("<",),
                "Go to the previous step, zoom kept",
                words="iteration",
            ),
            Command("next-step", "Next step", (">",), "Go to the next step, zoom kept", words="iteration"),
            Command(
                "go-to",
                "Go to a time or step",
                ("g",),
                "Enter a time (+12.5ms, @µs, 09:28:06.1), step:4 or 4, mark:NAME or #slice",
                forms=(("TIME", "Go to a time, step, mark or slice number, as with {go-to}"),),
                typed="goto",
                words="jump seek",
            ),
            Command(
                "focus",
                "Zoom to it",
                ("f",),
                "Fit the last chosen range or slice; again: fit all",
                footer="focus",
                words="fit selection",
                is_of_selection=True,
            ),
            Command(
                "reset",
                "Reset the view",
                ("0",),
                "Show the first view; again: with stray events",
                words="whole all home",
            ),
        ),
    ),
    CommandTask(
        "Select and follow",
        (
            Command(
                "previous",
                "Previous slice",
                ("left", "comma"),
                "Select the previous slice on the row; with nothing selected, move the cursor",
                is_of_selection=True,
            ),
            Command(
                "next",
                "Next slice",
                ("right", "full_stop"),
                "Select the next slice on the row; with nothing selected, move the cursor",
                is_of_selection=True,
            ),
            Command(
                "up",
                "Enclosing slice",
                ("up",),
                "Select the enclosing slice, then the lane above",
                words="parent caller",
                is_of_selection=True,
            ),
            Command(
                "down",
                "Child slice",
                ("down",),
                "Select the child at the cursor, then the lane below",
                words="callee",
                is_of_selection=True,
            ),
            Command("lane-up", "Lane above", ("shift+up",), "Move to the lane above", words="thread track"),
            Command(
                "lane-down", "Lane below", ("shift+down",), "Move to the lane below", words="thread track"
            ),
            Command(
                "details",
                "Select, details",
                ("enter",),
                "Select the slice at the cursor, show its details; again: zoom to it",
                footer="details",
                words="arguments args info power",
                is_of_selection=True,
            ),
            Command(
                "launch",
                "Back to the launch",
                ("b", "left_square_bracket"),
                "Select what launched the selection",
                words="flow arrow launcher cause previous",
                is_of_selection=True,
            ),
            Command(
                "kernel",
                "On to the kernel",
                ("o", "right_square_bracket"),
                "Select what the selection launched; a list if several",
                words="flow arrow launched next",
                is_of_selection=True,
            ),
            Command(
                "flows",
                "Flows in view",
                (),
                "Draw all flows in view as arrows; again: the selection's",
                words="arrows links",
            ),
            Command(
                "critical",
                "Critical path",
                (),
                "Draw the critical path of the step or range above the lanes; again: remove it",
                words="longest bottleneck blame",
            ),
            Command(
                "next-segment",
                "Next on the critical path",
                ("shift+right",),
                "Select the next visible segment, or zoom in to it; first: find the path",
                words="segment",
            ),
            Command(
                "previous-segment",
                "Previous on the critical path",
                ("shift+left",),
                "Select the previous visible segment",
                words="segment",
            ),
            Command(
                "source",
                "Source",
                (),
                "Show the source file of the slice or of a frame around it",
                words="code file line",
                is_of_selection=True,
            ),
        ),
    ),
    CommandTask(
        "Find",
        (
            Command(
                "search",
                "Search",
                ("/",),
                "Mark matches while you type: nccl cat:kernel dur>1ms lane:… -word",
                footer="search",
                forms=(("FILTER", "Mark matches, as with {search}"),),
                words="find grep query",
            ),
            Command("next-hit", "Next hit", ("n",), "Select the next match, in order of time"),
            Command("previous-hit", "Previous hit", ("N",), "Select the previous match, in order of time"),
            Command(
                "hits", "List the hits", ("z",), "List the hits of the search, or what the filter leaves"
            ),
            Command(
                "same-name",
                "All of this name",
                ("*",),
                "Search for all slices with the selected one's name; in a call tree: its callers and callees",
                is_of_selection=True,
            ),
            Command(
                "same-value",
                "All of this value",
                (),
                "Pick the selection's name or an argument and search for the same; "
                "{same-name} in the details too",
            ),
            Command(
                "filter",
                "Filter",
                (),
                "Draw only matching slices; alone: all again",
                forms=(("FILTER", "Draw only matching slices, as with {search}; alone: all again"),),
                is_typed=True,
                words="only hide slices",
            ),
            Command(
                "longest",
                "Longest kernel",
                ("K",),
                "Select the longest device work of the range, else of all; again: the next longest",
                words="slowest kernel top maximum",
                is_of_selection=True,
            ),
        ),
    ),
    CommandTask(
        "Ranges, gaps, comparing",
        (
            Command(
                "range",
                "Range",
                ("v",),
                "Start a range at the cursor; moves extend it; again: end it",
                words="select area region",
            ),
            Command(
                "range-selection",
                "Selection or step → range",
                ("r",),
                "Use the last visited slice or step as the range",
                words="area region",
                is_of_selection=True,
            ),
            Command(
                "next-gap",
                "Next gap",
                ("i",),
                "Select the next visible gap in the lane's work, with its cause",
                words="idle wait bubble why",
                is_of_selection=True,
            ),
            Command(
                "longest-gap",
                "Longest gap",
                ("I",),
                "Select the longest gap in the lane's work, or in the range, with its cause",
                words="idle wait bubble why",
            ),
            Command(
                "compare",
                "Compare A with B",
                ("c",),
                "Enter two steps or ranges (3 4): tables get Δ columns; empty: stop comparing",
                forms=(("A B", "Compare B with A: step numbers, mark:NAME, range, all; alone: stop"),),
                words="diff difference delta baseline versus",
            ),
            Command(
                "baseline",
                "Use as baseline",
                (),
                "Compare tables with the range, else the step (Δ columns); again: stop",
                words="compare diff",
            ),
            Command(
                "steps-by-name",
                "Use this name as step",
                (),
                "Use all slices with the selected one's name as steps; again: as found",
                words="iteration",
            ),
            Command(
                "steps",
                "Steps by a name",
                (),
                "Use the slices of a name as steps",
                forms=(
                    ("NAME", "Use the slices of this name as steps, whatever its numbers; alone: as found"),
                ),
                is_typed=True,
                words="iteration",
            ),
        ),
    ),
    CommandTask(
        "Tables and panels",
        (
            Command(
                "panel-details",
                "Details",
                ("1",),
                "Show the selection's details in the panel",
                words="arguments args info power",
            ),
            Command(
                "panel-findings",
                "Findings",
                ("2",),
                "Show what costs time, with evidence; again: what was read, repaired or unreadable",
                words="problems issues advice read report",
            ),
            *_tab_commands(),
            Command(
                "panel-query",
                "Query",
                ("4",),
                "Show the rows of the last query; again: saved queries",
                words="sql database select",
            ),
            Command(
                "sql",
                "Query in SQL",
                (),
                "List the rows of an SQL query; those with an id lead to their slice",
                forms=(
                    (
                        "SELECT …",
                        "List the rows of a query over slices, kernels, launches, steps … (docs/sql.md)",
                    ),
                ),
                is_typed=True,
                words="query database select",
            ),
            Command(
                "sql-lane",
                "Query's rows as a lane",
                (),
                "Draw how many rows of the query (ts, dur) run at once; again: remove it",
                words="sql counter",
            ),
            Command(
                "panel-back",
                "Previous panel of the tab",
                ("T",),
                "Show the tab's previous panel, such as the previous grouping",
                words="grouping",
            ),
            Command("maximise", "Maximise the panel", ("Z",), "Give the panel the whole screen; again: back"),
            Command("other-pane", "Lanes ↔ panel", ("tab",), "Move the arrows between lanes and panel"),
            Command(
                "verdict",
                "Verdict's bar, minimap",
                ("shift+tab",),
                "Move the arrows to the bar of what devices did; again: to the minimap, to the lanes",
                words="states busy idle waits why strip",
            ),
            Command(
                "minimap",
                "Minimap",
                (),
                "Move the arrows to the minimap: each part of the time, or step, leads there",
                words="overview steps strip",
            ),
            Command(
                "legend", "Legend", (), "Show what the colours and marks mean; again: back", words="colors"
            ),
        ),
    ),
    CommandTask(
        "Lanes",
        (
            Command(
                "fold",
                "Fold or open",
                ("space",),
                "Fold or open the lane or process",
                footer="fold",
                is_of_selection=True,
            ),
            Command(
                "sort-ranks",
                "Ranks, latest first",
                ("l",),
                "Order many ranks by how long the others wait for them; again: by number",
                words="lateness straggler slowest sort map",
            ),
            Command(
                "preset",
                "Lanes: which, in which order",
                ("L",),
                "Everything, devices first; devices; devices and the threads that launch; as in the file",
                footer="lanes",
                words="order device host",
            ),
            Command(
                "python-frames",
                "Python frames",
                (),
                "Leave Python frames out; again: show them",
                words="stack python hide",
            ),
            Command("fold-process", "Fold the process", (), "Fold or open the whole process of the lane"),
            Command(
                "expand",
                "Open in full",
                ("e",),
                "Open the lane to its full depth; again: back",
                is_of_selection=True,
            ),
            Command(
                "pin",
                "Pin the lane",
                ("p",),
                "Keep the lane at the top; again: release it",
                words="thread track",
                is_of_selection=True,
            ),
            Command(
                "hide",
                "Hide the lane",
                (),
                "Hide this lane or process",
                forms=(("REGEX", "Hide the lanes whose title matches, or their rank's"),),
                words="thread track",
            ),
            Command(
                "hide-alike",
                "Hide lanes alike",
                (),
                "Hide all lanes of this name, digits aside",
                words="thread track",
            ),
            Command(
                "hidden",
                "What is hidden",
                (),
                "List what is hidden; Enter shows it again",
                words="show unhide thread track",
            ),
            Command("show-all", "Show all lanes", (), "Show everything that was hidden", words="unhide"),
            Command(
                "only",
                "Only lanes whose title matches",
                (),
                "Show only some lanes; alone: all again",
                forms=(("REGEX", "Show only lanes whose title matches, or their rank's; alone: all again"),),
                is_typed=True,
                words="filter thread track",
            ),
            Command("quiet", "Quiet threads", (), "Fold the quiet threads, or show them", words="lanes"),
            Command("page-up", "Lanes: page up", ("pageup",), "Scroll the lanes one screen up"),
            Command("page-down", "Lanes: page down", ("pagedown",), "Scroll the lanes one screen down"),
            Command("memory-lanes", "Memory lanes", (), "Hide the lanes of allocated memory; again: show"),
            Command(
                "queue-lanes",
                "Queue length",
                (),
                "Draw how many launches wait or run, per stream",
                words="depth counter",
            ),
            Command(
                "colour",
                "Colour by",
                (),
                "Choose what colours mean: category, name, arg:KEY",
                forms=(
                    (
                        "by category|name|arg:KEY",
                        "Choose what colours mean: an argument's values too; alone: categories",
                    ),
                ),
                is_typed=True,
                words="color",
            ),
        ),
    ),
    CommandTask(
        "Marks",
        (
            Command(
                "mark",
                "Mark",
                ("m",),
                "Mark the range, else the cursor",
                forms=(("TEXT", "Mark it with a text"),),
                words="note bookmark",
            ),
            Command(
                "mark-text",
                "Mark with a text",
                (),
                "Mark the range, else the cursor, with a text",
                words="note bookmark",
            ),
            Command(
                "marks",
                "List the marks",
                (),
                "List the marks; Enter goes there",
                forms=(("FILE", "Add the marks of a file that :save marks wrote"),),
                words="notes bookmarks",
            ),
            Command(
                "marks-import", "Marks from a file", (), "Add the marks of a file that :save marks wrote"
            ),
            Command("unmark", "Remove a mark", (), "Remove the mark nearest to the cursor, if in view"),
        ),
    ),
    CommandTask(
        "Logs and clocks",
        (
            Command(
                "smi",
                "Add a log's lanes",
                (),
                "Show an aiu-smi log's metrics below its device",
                forms=(
                    ("FILE", "Add the lanes of an aiu-smi log, or of another with a header and times"),
                    ("FILE SECONDS", "The same, with the log's clock ahead by this time"),
                    ("none", "Remove the lanes of all logs"),
                ),
                words="telemetry power temperature utilisation csv",
            ),
            Command(
                "smi-offset",
                "The log's clock",
                (),
                "Set how many seconds the log's clock is ahead",
                forms=(("S", "Set how many seconds the log's clock is ahead; alone: as proposed"),),
                is_typed=True,
                words="telemetry power",
            ),
            Command("log-earlier", "Log earlier", (), "Move a log by its sampling interval, earlier"),
            Command("log-later", "Log later", (), "Move a log by its sampling interval, later"),
            Command(
                "device-clock",
                "Estimate the device's clock",
                (),
                "Shift devices so that no work begins before its launch; again: as recorded",
            ),
            Command(
                "device-offset",
                "The device's clock",
                (),
                "Add seconds to the device's times",
                forms=(("S", "Add S seconds to the device's times; auto: as estimated; alone: as stamped"),),
                is_typed=True,
            ),
            Command(
                "rank-clocks",
                "Ranks: aligned or as stamped",
                (),
                "Switch off the alignment of ranks by their collectives; again: on",
            ),
            Command(
                "rank-groups",
                "Ranks: by host, TP, PP or DP",
                (),
                "Choose how to group the ranks of a capture store",
                words="tensor pipeline data parallel node group",
            ),
            Command(
                "ruler",
                "Ruler: other time",
                (),
                "Change the ruler: relative, as in the file, wall clock",
                forms=(("relative|file|wall", "Choose the ruler's time"),),
                words="axis wall clock",
            ),
        ),
    ),
    CommandTask(
        "Copy and save",
        (
            Command(
                "copy",
                "Copy",
                ("y",),
                "Copy the selected slice, arguments included, as JSON; in a table: the table as Markdown",
                words="clipboard yank",
                is_of_selection=True,
            ),
            Command(
                "copy-table",
                "Copy the table",
                (),
                "Copy the table of the panel, as sorted, as Markdown",
                words="clipboard",
            ),
            Command(
                "copy-view",
                "Copy the view",
                (),
                "Copy the command line that shows this view",
                words="clipboard share link",
            ),
            Command(
                "save",
                "Save to a file",
                (),
                "Write the picture, the panel's table, the slices or the marks to a file",
                forms=(
                    (
                        "FILE",
                        "Write the screen to FILE.svg or FILE.html, the lanes without colours to FILE.txt, "
                        "the panel's table to another ending",
                    ),
                    ("picture FILE", "Write the picture, also where the ending is a table's"),
                    ("marks FILE", "Write all marks to a file, to share them"),
                    ("table FILE", "Write the table of the panel, as sorted, to " + _FORMS_TEXT),
                    (
                        "slices FILE",
                        "Write the slices that range, :only and :filter leave to FILE.csv or FILE.json",
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
                forms=(("FILE", "Write the range as a trace of its own, FILE.json or FILE.json.gz"),),
                is_typed=True,
                words="export extract crop",
            ),
        ),
    ),
    CommandTask(
        "Viewer",
        (
            Command("back", "Undo: previous view", ("u",), "Go back to the view before", words="history"),
            Command("forward", "Redo: next view", (), "Go forward again after going back", words="history"),
            Command(
                "help",
                "Help",
                ("?",),
                "Show all commands and keys; type to filter",
                footer="help",
                words="keys",
            ),
            Command(
                "palette", "Command palette", ("ctrl+p",), "Find any command by its name", words="commands"
            ),
            Command(
                "command-line", "Command line", (":",), "Type a command, such as only REGEX or goto TIME"
            ),
            Command(
                "messages",
                "Messages",
                (),
                "List all messages since the trace was opened",
                words="log notes errors warnings",
            ),
            Command(
                "against",
                "Against another run",
                (),
                "Show another run below this one, step by step; of two the first alone again",
                forms=(("FILE", "Show this run below, with the changes"),),
                words="compare diff baseline before after",
            ),
            Command("captures", "Captures", (), "List the captures of this folder; Enter opens another"),
            Command("reload", "Reload", (), "Read the trace again if a file of it has changed"),
            Command(
                "theme",
                "Dark or light",
                (),
                "Change between the dark and the light theme",
                forms=(("NAME", "Choose a theme; a wrong name lists them"),),
                words="colours colors",
            ),
            Command("redraw", "Redraw", ("ctrl+l",), "Repaint the screen after output of another program"),
            Command("suspend", "Suspend", ("ctrl+z",), "Suspend the viewer; fg in the shell resumes it"),
            Command(
                "stop-indexing",
                "Stop indexing",
                ("ctrl+c",),
                "While a trace is being indexed: ask, then quit",
            ),
            Command(
                "close",
                "Close",
                ("escape",),
                "Close what is on top, then the message, search, range, selection, comparison",
            ),
            Command(
                "close-or-quit", "Close or quit", ("q",), "Close what is on top, then quit", footer="quit"
            ),
            Command("quit", "Quit", (), "Quit at once", words="exit leave"),
        ),
    ),
    CommandTask(ONE_PANEL, _panel_commands()),
)
"""By task, in the order of the help."""
COMMANDS: Final[tuple[Command, ...]] = tuple(entry for group in GROUPS for entry in group.commands)

OTHER_NAMES: Final[dict[str, str]] = {
    "goto": "go-to",
    "q": "quit",
    "show": "show-all",
    "show all": "show-all",
    "copy view": "copy-view",
}
"""Other names of commands, on the command line and in the config file's [keys]."""

MOUSE: Final[tuple[tuple[str, str], ...]] = (
    ("click", "Select the slice, or the gap between two; on a title: fold or open"),
    ("over a slice", "Show its name and duration in the message line"),
    ("double click", "Zoom to the slice"),
    ("wheel", "Scroll the lanes; over the ruler or with ctrl: zoom around the mouse"),
    ("shift+wheel", "Pan"),
    ("drag", "Take a stretch of time as the range; {focus} zooms to it"),
    ("heading of a table", "Click: sort by this column; again: the other way"),
    ("minimap", "Click: move the view there; drag: set the range"),
)

LINES: Final[tuple[tuple[str, str], ...]] = (
    *((f"{entry.typed_name} {form}", text) for entry in COMMANDS for form, text in entry.forms),
    ("<command>", "Any command by its name, such as zoom-in-far"),
)
"""What the command line understands."""


def command(command_id: str) -> Command:
    """Return a command by its id; KeyError if there is none."""
    return _BY_ID[command_id]


_BY_ID: Final = {entry.id: entry for entry in COMMANDS}


def keys_of(entry: Command, remapped: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of a command, the user's where there are some."""
    own = remapped.get(entry.id)
    if own is None:
        return entry.keys
    return tuple(key.strip() for key in own.split(",") if key.strip())


NAMED: Final = re.compile(r"\{(" + "|".join(re.escape(entry.id) for entry in COMMANDS) + r")\}")
"""A command as texts name it: `{search}`."""


def with_keys(text: str, remapped: Mapping[str, str]) -> str:
    """Return a text with the first key of each command that it names, or what is typed for one without."""

    def key(match: re.Match[str]) -> str:
        entry = command(match[1])
        keys = keys_of(entry, remapped)
        return key_text(keys[0]) if keys else f":{entry.typed_name}"

    return NAMED.sub(key, text)


def commands_table() -> str:
    """Return all commands as a Markdown table, for docs/keys.md."""
    lines = ["| keys | name | command | what it does |", "|---|---|---|---|"]
    for group in GROUPS:
        lines.append(f"| | | **{group.task}** | |")
        for entry in group.commands:
            keys = " ".join(_code(key_text(key)) for key in entry.keys) or "palette"
            lines.append(f"| {keys} | {_code(entry.id)} | {entry.title} | {with_keys(entry.help, {})} |")
    lines.append("| | | **Mouse** | |")
    lines.extend(f"| {name} | | | {with_keys(text, {})} |" for name, text in MOUSE)
    lines.append("| | | **Command line** | |")
    lines.extend(
        f"| {_code(':' + name.replace('|', '/'))} | | | {with_keys(text, {})} |" for name, text in LINES
    )
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"
