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
                "Show two thirds of the time, about the cursor",
                footer="zoom",
                words="closer magnify enlarge",
            ),
            Command(
                "zoom-out",
                "Zoom out",
                ("s", "-"),
                "Show half as much time again, about the cursor",
                words="farther",
            ),
            Command("zoom-in-far", "Zoom in ×10", ("W",), "Show a tenth of the time, about the cursor"),
            Command("zoom-out-far", "Zoom out ×10", ("S",), "Show ten times the time, about the cursor"),
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
                "Go to the step before, zoom kept",
                words="iteration",
            ),
            Command("next-step", "Next step", (">",), "Go to the next step, zoom kept", words="iteration"),
            Command(
                "go-to",
                "Go to a time or step",
                ("g",),
                "Ask for a time (+12.5ms, @µs, 09:28:06.1), step:4 or 4, mark:NAME or #slice",
                forms=(("TIME", "Go to a time, step, mark or slice number, as with g"),),
                typed="goto",
                words="jump seek",
            ),
            Command(
                "focus",
                "Zoom to it",
                ("f",),
                "Fit the range or slice that was chosen last; again: fit all",
                footer="focus",
                words="fit selection",
                is_of_selection=True,
            ),
            Command(
                "reset",
                "Reset the view",
                ("0",),
                "Show the trace as at first; again: far outliers too",
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
                "Select the slice before on the row; with nothing selected, move the cursor",
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
                "source",
                "Source",
                (),
                "Show the source file that the slice or a frame around it names",
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
                "Mark what matches as it is typed: nccl cat:kernel dur>1ms lane:… -word",
                footer="search",
                forms=(("FILTER", "Mark what matches, as with /"),),
                words="find grep query",
            ),
            Command("next-hit", "Next hit", ("n",), "Select the next slice that matches, in order of time"),
            Command(
                "previous-hit",
                "Previous hit",
                ("N",),
                "Select the slice before that matches, in order of time",
            ),
            Command("hits", "List the hits", ("z",), "List what a search found, or what a filter leaves"),
            Command(
                "same-name",
                "All of this name",
                ("*",),
                "Search for all slices of the selected one's name",
                is_of_selection=True,
            ),
            Command(
                "same-value",
                "All of this value",
                (),
                "Pick the selection's name or an argument, search for all that have it; * in the details too",
            ),
            Command(
                "filter",
                "Filter",
                (),
                "Draw only the slices that match; alone: all again",
                forms=(("FILTER", "Draw only the slices that match, as with /; alone: all again"),),
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
                "Begin a range at the cursor; moves draw it out; again: end it",
                words="select area region",
            ),
            Command(
                "range-selection",
                "Selection or step → range",
                ("r",),
                "Take the slice or step that was gone to last as the range",
                words="area region",
                is_of_selection=True,
            ),
            Command(
                "next-gap",
                "Next gap",
                ("i",),
                "Select the next gap in the lane's work that is a cell wide, and say why",
                words="idle wait bubble why",
                is_of_selection=True,
            ),
            Command(
                "longest-gap",
                "Longest gap",
                ("I",),
                "Select the longest gap in the lane's work, of the range, and say why",
                words="idle wait bubble why",
            ),
            Command(
                "compare",
                "Compare A with B",
                ("c",),
                "Ask for two steps or ranges (3 4): tables grow Δ columns; empty: stop comparing",
                forms=(("A B", "Compare B with A: step numbers, mark:NAME, range, all; alone: stop"),),
                words="diff difference delta baseline versus",
            ),
            Command(
                "baseline",
                "Use as baseline",
                (),
                "Hold tables against the range, else the step: they grow Δ columns; again: drop it",
                words="compare diff",
            ),
            Command(
                "steps-by-name",
                "Use this name as step",
                (),
                "Take all slices of the selected one's name for steps; again: as found",
                words="iteration",
            ),
            Command(
                "steps",
                "Steps by a name",
                (),
                "Take the slices of a name for steps",
                forms=(
                    ("NAME", "Take the slices of this name for steps, numbers in it aside; alone: as found"),
                ),
                is_typed=True,
                words="iteration",
            ),
        ),
    ),
)
