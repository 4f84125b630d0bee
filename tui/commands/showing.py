"""Commands of panels, lanes, marks, logs, files and of the viewer itself."""

from __future__ import annotations

from typing import Final

from tracelane.core.export.forms import FORMS
from tracelane.core.tables.analysis import Tab, TablePanel
from tracelane.core.tables.registry import PANELS, TABS

from .command import Command, CommandTask


def _tab_command(tab: Tab) -> Command:
    return Command(f"panel-{tab.name}", tab.title, (tab.key,), tab.help, words=tab.words)


def _panel_command(tab: Tab, panel: TablePanel) -> Command:
    title = f"{tab.title.partition(',')[0]}: {panel.title}"
    return Command(f"panel-{panel.name}", title, (), panel.help, words=f"{tab.words} {panel.words}")


ONE_PANEL: Final = "One panel of a tab"
"""The task of commands that each show one panel: their tabs' keys show them, too."""
_BY_TAB: Final = {tab.name: tab for tab in TABS}


SHOWING: Final = (
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
            *map(_tab_command, TABS),
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
                        "picture FILE",
                        "Write the screen to FILE.svg, or the lanes without colours to FILE.txt",
                    ),
                    ("marks FILE", "Write all marks to a file, to share them"),
                    (
                        "table FILE",
                        f"Write the table of the panel, as sorted, to FILE.{', FILE.'.join(FORMS)}",
                    ),
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
            Command(
                "back",
                "Undo: previous view",
                ("u",),
                "Go back to the view before",
                words="history",
            ),
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
    CommandTask(
        ONE_PANEL,
        tuple(
            _panel_command(_BY_TAB[row.tab], panel)
            for row, panel in PANELS.values()
            if panel.name not in _BY_TAB  # the tab's own command shows it
        ),
    ),
)
