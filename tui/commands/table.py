"""The one table of commands: bindings, footer, help, palette, what is typed after the colon,
and the key table of docs/keys.md come from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tracelane.core.export.forms import FORMS
from tracelane.core.tables.registry import PANELS, TABS

FocusedPart: TypeAlias = Literal["lanes", "table", "flame", "text"]
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
    "backspace": "Backspace",
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
    help: str
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


def tasks_of(text: str, of_tabs: Sequence[Command]) -> tuple[CommandTask, ...]:
    """Read commands: below the name of each task a line `id | keys | title | help` for every command, and in
    lines moved to the right what else there is of it; `(tabs)` stands for those of tabs.
    """
    tasks = []
    for block in text.split("\n\n"):
        task, *lines = block.strip().split("\n")
        commands: list[Command] = []
        for line in lines:
            if line == "(tabs)":
                commands += of_tabs
            elif line.startswith(" "):
                commands[-1] = _with_more(commands[-1], line.split(" | "))
            else:
                name, keys, title, *help = re.split(r" ?\| ", line)
                commands.append(Command(name, title, tuple(keys.split()), "".join(help)))
        tasks.append(CommandTask(task, tuple(commands)))
    return tuple(tasks)


def _with_more(entry: Command, parts: Sequence[str]) -> Command:
    """Return a command with `footer: zoom`, `words: closer`, `form TIME: what it does`, `only typed` …"""
    more: dict[str, Any] = {}
    for part in parts:
        name, _, value = part.strip().partition(": ")
        if name.startswith("form "):
            more["forms"] = (*more.get("forms", entry.forms), (name.removeprefix("form "), value))
        else:
            more[_FLAGS.get(name, name)] = value or True
    return replace(entry, **more)


_FLAGS: Final = {"only typed": "is_typed", "of the selection": "is_of_selection"}


TASKS: Final = """\
Move in time
zoom-in | w + | Zoom in | Show two thirds of the time, around the cursor
    footer: zoom | words: closer magnify enlarge
zoom-out | s - | Zoom out | Show half as much time again, around the cursor
    words: farther
zoom-in-far | W | Zoom in ×10 | Show a tenth of the time, around the cursor
zoom-out-far | S | Zoom out ×10 | Show ten times the time, around the cursor
pan-left | a | Pan left | Move the view 30 % towards the start
    words: scroll earlier
pan-right | d | Pan right | Move the view 30 % towards the end
    words: scroll later
page-left | | Page left | Move the view by its whole width towards the start
page-right | | Page right | Move the view by its whole width towards the end
trace-start | home | Start of the trace | Move the view to the start, zoom kept
trace-end | end | End of the trace | Move the view to the end, zoom kept
previous-step | < | Previous step | Go to the previous step, zoom kept
    words: iteration
next-step | > | Next step | Go to the next step, zoom kept
    words: iteration
go-to | g | Go to a time or step | Enter a time (+12.5ms, @µs, 09:28:06.1), step:4 or 4, mark:NAME or #slice
    typed: goto | words: jump seek
    form TIME: Go to a time, step, mark or slice number, as with g
focus | f | Zoom to it | Fit the last chosen range or slice; again: fit all
    footer: focus | of the selection | words: fit selection
reset | 0 | Reset the view | Show the first view; again: with stray events
    words: whole all home

Select and follow
previous | left | Previous slice
    help: Select the previous slice on the row; with nothing selected, move the cursor
    of the selection
next | right | Next slice | Select the next slice on the row; with nothing selected, move the cursor
    of the selection
up | up | Enclosing slice | Select the enclosing slice, then the lane above
    of the selection | words: parent caller
down | down | Child slice | Select the child at the cursor, then the lane below
    of the selection | words: callee
lane-up | shift+up | Lane above | Move to the lane above
    words: thread track
lane-down | shift+down | Lane below | Move to the lane below
    words: thread track
details | enter | Select, details | Select the slice at the cursor, show its details; again: zoom to it
    footer: details | of the selection | words: arguments args info power
launch | b | Back to the launch | Select what launched the selection
    of the selection | words: flow arrow launcher cause previous
kernel | o | On to the kernel | Select what the selection launched; a list if several
    of the selection | words: flow arrow launched next
flows | | Flows in view | Draw all flows in view as arrows; again: the selection's
    words: arrows links
critical | | Critical path | Draw the critical path of the step or range above the lanes; again: remove it
    words: longest bottleneck blame
next-segment | shift+right | Next on the critical path
    help: Select the next visible segment, or zoom in to it; first: find the path
    words: segment
previous-segment | shift+left | Previous on the critical path | Select the previous visible segment
    words: segment
source | | Source | Show the source file of the slice or of a frame around it
    of the selection | words: code file line

Find
search | / | Search | Mark matches while you type: nccl cat:kernel dur>1ms lane:… -word
    footer: search | words: find grep query
    form FILTER: Mark matches, as with /
next-hit | n | Next hit | Select the next match, in order of time
previous-hit | N | Previous hit | Select the previous match, in order of time
hits | z | List the hits | List the hits of the search, or what the filter leaves
same-name | * | All of this name
    help: Search for all slices with the selected one's name; in a call tree: its callers and callees
    of the selection
same-value | | All of this value
    help: Pick the selection's name or an argument and search for the same; * in the details too
filter | | Filter | Draw only matching slices; alone: all again
    only typed | words: only hide slices
    form FILTER: Draw only matching slices, as with /; alone: all again
longest | K | Longest kernel
    help: Select the longest device work of the range, else of all; again: the next longest
    of the selection | words: slowest kernel top maximum

Ranges, gaps, comparing
range | v | Range | Start a range at the cursor; moves extend it; again: end it
    words: select area region
range-selection | r | Selection or step → range | Use the last visited slice or step as the range
    of the selection | words: area region
next-gap | i | Next gap | Select the next visible gap in the lane's work, with its cause
    of the selection | words: idle wait bubble why
longest-gap | I | Longest gap | Select the longest gap in the lane's work, or in the range, with its cause
    words: idle wait bubble why
compare | c | Compare A with B | Enter two steps or ranges (3 4): tables get Δ columns; empty: stop comparing
    words: diff difference delta baseline versus
    form A B: Compare B with A: step numbers, mark:NAME, range, all; alone: stop
baseline | | Use as baseline | Compare tables with the range, else the step (Δ columns); again: stop
    words: compare diff
steps-by-name | | Use this name as step
    help: Use all slices with the selected one's name as steps; again: as found
    words: iteration
steps | | Steps by a name | Use the slices of a name as steps
    only typed | words: iteration
    form NAME: Use the slices of this name as steps, whatever its numbers; alone: as found

Tables and panels
panel-details | 1 | Details | Show the selection's details in the panel
    words: arguments args info power
panel-findings | 2 | Findings
    help: Show what costs time, with evidence; again: what was read, repaired or unreadable
    words: problems issues advice read report
(tabs)
panel-query | 4 | Query | Show the rows of the last query; again: saved queries
    words: sql database select
sql | | Query in SQL | List the rows of an SQL query; those with an id lead to their slice
    only typed | words: query database select
    form SELECT …: List the rows of a query over slices, kernels, launches, steps … (docs/sql.md)
sql-lane | | Query's rows as a lane | Draw how many rows of the query (ts, dur) run at once; again: remove it
    words: sql counter
panel-back | T | Previous panel of the tab | Show the tab's previous panel, such as the previous grouping
    words: grouping
maximise | Z | Maximise the panel | Give the panel the whole screen; again: back
other-pane | tab | Lanes ↔ panel | Move the arrows between lanes and panel
legend | | Legend | Show what the colours and marks mean; again: back
    words: colors

Lanes
fold | space | Fold or open | Fold or open the lane or process
    footer: fold | of the selection
preset | L | Lanes: which, in which order
    help: Everything, devices first; devices; devices and the threads that launch; as in the file
    footer: lanes | words: order device host
python-frames | | Python frames | Leave Python frames out; again: show them
    words: stack python hide
fold-process | | Fold the process | Fold or open the whole process of the lane
expand | e | Open in full | Open the lane to its full depth; again: back
    of the selection
pin | p | Pin the lane | Keep the lane at the top; again: release it
    of the selection | words: thread track
hide | | Hide the lane | Hide this lane or process
    words: thread track
    form REGEX: Hide the lanes whose title matches, or their rank's
hide-alike | | Hide lanes alike | Hide all lanes of this name, digits aside
    words: thread track
hidden | | What is hidden | List what is hidden; Enter shows it again
    words: show unhide thread track
show-all | | Show all lanes | Show everything that was hidden
    words: unhide
only | | Only lanes whose title matches | Show only some lanes; alone: all again
    only typed | words: filter thread track
    form REGEX: Show only lanes whose title matches, or their rank's; alone: all again
quiet | | Quiet threads | Fold the quiet threads, or show them
    words: lanes
page-up | pageup | Lanes: page up | Scroll the lanes one screen up
page-down | pagedown | Lanes: page down | Scroll the lanes one screen down
memory-lanes | | Memory lanes | Hide the lanes of allocated memory; again: show
queue-lanes | | Queue length | Draw how many launches wait or run, per stream
    words: depth counter
colour | | Colour by | Choose what colours mean: category, name, arg:KEY
    only typed | words: color
    form by category|name|arg:KEY: Choose what colours mean: an argument's values too; alone: categories

Marks
mark | m | Mark | Mark the range, else the cursor
    words: note bookmark
    form TEXT: Mark it with a text
mark-text | | Mark with a text | Mark the range, else the cursor, with a text
    words: note bookmark
marks | | List the marks | List the marks; Enter goes there
    words: notes bookmarks
    form FILE: Add the marks of a file that :save marks wrote
marks-import | | Marks from a file | Add the marks of a file that :save marks wrote
unmark | | Remove a mark | Remove the mark nearest to the cursor, if in view

Logs and clocks
smi | | Add a log's lanes | Show an aiu-smi log's metrics below its device
    words: telemetry power temperature utilisation csv
    form FILE: Add the lanes of an aiu-smi log, or of another with a header and times
    form FILE SECONDS: The same, with the log's clock ahead by this time
smi-offset | | The log's clock | Set how many seconds the log's clock is ahead
    only typed | words: telemetry power
    form S: Set how many seconds the log's clock is ahead; alone: as proposed
log-earlier | | Log earlier | Move a log by its sampling interval, earlier
log-later | | Log later | Move a log by its sampling interval, later
device-clock | | Estimate the device's clock
    help: Shift devices so that no work begins before its launch; again: as recorded
device-offset | | The device's clock | Add seconds to the device's times
    only typed
    form S: Add S seconds to the device's times; auto: as estimated; alone: as stamped
rank-clocks | | Ranks: aligned or as stamped
    help: Switch off the alignment of ranks by their collectives; again: on
rank-groups | | Ranks: by host, TP, PP or DP | Choose how to group the ranks of a capture store
    words: tensor pipeline data parallel node group
ruler | | Ruler: other time | Change the ruler: relative, as in the file, wall clock
    words: axis wall clock
    form relative|file|wall: Choose the ruler's time

Copy and save
copy | y | Copy | Copy the selected slice, arguments included, as JSON; in a table: the table as Markdown
    of the selection | words: clipboard yank
copy-table | | Copy the table | Copy the table of the panel, as sorted, as Markdown
    words: clipboard
copy-view | | Copy the view | Copy the command line that shows this view
    words: clipboard share link
save | | Save to a file | Write the picture, the panel's table, the slices or the marks to a file
    only typed | words: export screenshot svg csv json
    form picture FILE: Write the screen to FILE.svg, or the lanes without colours to FILE.txt
    form marks FILE: Write all marks to a file, to share them
    form table FILE: Write the table of the panel, as sorted, to (forms)
    form slices FILE: Write the slices that range, :only and :filter leave to FILE.csv or FILE.json
cut | | Cut the range out | Write the range as a trace of its own
    only typed | words: export extract crop
    form FILE: Write the range as a trace of its own, FILE.json or FILE.json.gz

Viewer
back | u | Undo: previous view | Go back to the view before
    words: history
forward | | Redo: next view | Go forward again after going back
    words: history
help | ? | Help | Show all commands and keys; type to filter
    footer: help | words: keys
palette | ctrl+p | Command palette | Find any command by its name
    words: commands
command-line | : | Command line | Type a command, such as only REGEX or goto TIME
messages | | Messages | List all messages since the trace was opened
    words: log notes errors warnings
captures | | Captures | List the captures of this folder; Enter opens another
reload | | Reload | Read the trace again if a file of it has changed
theme | | Dark or light | Change between the dark and the light theme
    words: colours colors
    form NAME: Choose a theme; a wrong name lists them
redraw | ctrl+l | Redraw | Repaint the screen after output of another program
suspend | ctrl+z | Suspend | Suspend the viewer; fg in the shell resumes it
stop-indexing | ctrl+c | Stop indexing | While a trace is being indexed: ask, then quit
close | escape | Close | Close what is on top, then the message, search, range, selection, comparison
close-or-quit | q | Close or quit | Close what is on top, then quit
    footer: quit
quit | | Quit | Quit at once
    words: exit leave
"""
"""By task, in the order of the help: id, keys, title and help of each command; `tasks_of` reads it."""
ONE_PANEL: Final = "One panel of a tab"
"""The task of commands that each show one panel: their tabs' keys show them, too."""


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


GROUPS: Final = (
    *tasks_of(
        TASKS.replace("(forms)", f"FILE.{', FILE.'.join(FORMS)}"),
        [Command(f"panel-{tab.name}", tab.title, (tab.key,), tab.help, words=tab.words) for tab in TABS],
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
    ("drag", "Take a stretch of time as the range; f zooms to it"),
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


def commands_table() -> str:
    """Return all commands as a Markdown table, for docs/keys.md."""
    lines = ["| keys | command | what it does |", "|---|---|---|"]
    for group in GROUPS:
        lines.append(f"| | **{group.task}** | |")
        for entry in group.commands:
            keys = " ".join(_code(key_text(key)) for key in entry.keys) or "palette"
            lines.append(f"| {keys} | {entry.title} | {entry.help} |")
    lines.append("| | **Mouse** | |")
    lines.extend(f"| {name} | | {text} |" for name, text in MOUSE)
    lines.append("| | **Command line** | |")
    lines.extend(f"| {_code(':' + name.replace('|', '/'))} | | {text} |" for name, text in LINES)
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"
