"""Commands that move in time, select and follow, search, and speak of ranges and gaps."""

from __future__ import annotations

from typing import Final

from .command import Command, CommandTask

MOVING: Final = (
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
            Command(
                "page-left",
                "Page left",
                (),
                "Move the view by its whole width towards the start",
            ),
            Command(
                "page-right",
                "Page right",
                (),
                "Move the view by its whole width towards the end",
            ),
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
                forms=(("TIME", "Go to a time, step, mark or slice number, as with g"),),
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
                ("left",),
                "Select the previous slice on the row; with nothing selected, move the cursor",
                is_of_selection=True,
            ),
            Command(
                "next",
                "Next slice",
                ("right",),
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
                ("b",),
                "Select what launched the selection",
                words="flow arrow launcher cause previous",
                is_of_selection=True,
            ),
            Command(
                "kernel",
                "On to the kernel",
                ("o",),
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
                forms=(("FILTER", "Mark matches, as with /"),),
                words="find grep query",
            ),
            Command("next-hit", "Next hit", ("n",), "Select the next match, in order of time"),
            Command(
                "previous-hit",
                "Previous hit",
                ("N",),
                "Select the previous match, in order of time",
            ),
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
                "Pick the selection's name or an argument and search for the same; * in the details too",
            ),
            Command(
                "filter",
                "Filter",
                (),
                "Draw only matching slices; alone: all again",
                forms=(("FILTER", "Draw only matching slices, as with /; alone: all again"),),
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
)
