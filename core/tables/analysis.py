"""What a row of the registry is: an analysis with its options, its panels in the viewer, and their tab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .frame.scope import Scope
    from .frame.table import Tables


class Option(NamedTuple):
    """An argument of an analysis: `group_by` is --group-by on the command line."""

    name: str
    help: str
    default: str | int | float | bool | tuple[str, ...] | None = ""
    choices: tuple[str, ...] = ()
    metavar: str = ""
    least: float | None = None  # the least value of a number
    check: str = ""  # "module:function" that refuses wrong values before a trace is read
    is_side: bool = False  # names a trace, a part of one or a summary's file; the function gets its Summary
    path: str = ""  # an expression that matches values which name a file or folder, in its group "path"


Need: TypeAlias = Literal[
    "devices", "steps", "ranks", "memory", "segments", "report", "compile", "regions", "graphs", "phases"
]
"""What a trace may lack: `absent` tells it without counting."""


class TablePanel(NamedTuple):
    """A tab of the viewer that shows one table of an analysis."""

    name: str  # of its command: panel-NAME
    title: str
    help: str  # what it shows, for help and palette
    table: str
    empty: str  # said where there are no rows
    sort: str = ""  # the column by which it is sorted at first, greatest first
    options: tuple[tuple[str, Any], ...] = ()  # that the analysis is called with
    to_first: bool = False  # all rows are compared with the first row of the baseline
    is_compared: bool = True  # whether it can be compared with a baseline
    words: str = ""  # further words that the palette finds it by
    needs: tuple[Need, ...] = ()  # without one of which it is empty


class Tab(NamedTuple):
    """The key of the viewer behind which panels of one or more analyses lie; again: the next of them."""

    name: str  # of its command: panel-NAME
    key: str
    short: str  # where there is little room
    title: str
    help: str
    words: str = ""  # further words that the palette finds it by
    takes_step: bool = False  # whether it takes the step that was gone to last as the range


TABS = (
    Tab(
        "tree",
        "3",
        "Tree",
        "Call tree, flame",
        "Show which calls made which, drawn and as a table; again: bottom up, by thread, by launch",
        "flame graph icicle call tree stack callers left-heavy sandwich profile",
        takes_step=True,
    ),
    Tab(
        "table",
        "t",
        "Tab",
        "Table",
        "Show the kernels of the range, or of all; again: all slices by name, lane, category, op",
        takes_step=True,
    ),
    Tab("steps", "5", "Step", "Steps", "Show the steps: how long each took, and what for"),
    Tab("time", "6", "Time", "Device time", "Show the devices' time; again: idle, gaps, launches"),
    Tab("memory", "7", "Mem", "Memory", "Show the allocators; again: their peaks; again: copies"),
    Tab("compile", "8", "Comp", "Compile", "Show torch.compile; again: regions, graphs, phases"),
    Tab("ranks", "9", "Rank", "Ranks", "Show the ranks; again: their collectives, the slowest by step"),
)


@dataclass(frozen=True)
class Analysis:
    """One row: `function` takes a Scope and the options and returns Tables.

    The name is a Python method, with dashes a command: ValueError where Python cannot have it.
    """

    name: str
    function: str
    title: str
    help: str  # the first sentence stands in lists
    options: tuple[Option, ...] = ()
    tab: str = ""  # behind which its panels lie
    panels: tuple[TablePanel, ...] = ()
    rows: int = 30  # of the first table in text, where --limit does not say
    others: int | None = None  # of each other table in text
    limits: Literal["rows", "lists", "both"] = "rows"
    """What --limit is for: rows of the first table, or lists that the function (it takes `limit`) cuts."""
    sort: str = ""  # returns the column that a --sort means, refuses others before a trace is read
    metrics: str = ""  # returns the metrics of its group
    metric_group: str = ""  # what their names begin with
    formats: tuple[tuple[str, str], ...] = ()
    """Further forms of --format: a name, and what yields the text of Tables in pieces."""
    group: str = ""  # of the list of commands in help; else "Others"
    examples: tuple[str, ...] = ()  # lines of help
    doubts: str = ""  # whose time that cannot be trusted the first table tells of: "device", "host", "all"
    exit_code: str = ""  # returns the command's exit code, of the tables; else 0
    beforehand: str = (
        ""  # returns what is said before a long answer, of the scope and the options; "" for nothing
    )

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"{self.name!r} is no Python name: join the words of an analysis by _")

    @property
    def command(self) -> str:
        return self.name.replace("_", "-")

    def run(self, scope: Scope, **options: Any) -> Tables:
        """Return the tables of a scope. Raises Cancelled, and UsageError for options without a meaning."""
        from .frame.table import Answers  # help needs no arrays

        answers = scope.trace.answers
        if isinstance(answers, Answers):
            return answers.tables(self.name, options, scope)
        known: Scope = loaded("device.untrusted:with_known_ends")(scope) if self.doubts == "host" else scope
        tables: Tables = loaded(self.function)(known, **options)
        return loaded("device.doubts:with_doubts")(tables, scope, self.doubts) if self.doubts else tables


def loaded(path: str) -> Callable[..., Any]:
    """Return the function that "module:function" names, `module` in this package, else anywhere."""
    module, _, name = path.partition(":")
    is_own = find_spec(f"{__package__}.{module.partition('.')[0]}") is not None
    function: Callable[..., Any] = getattr(
        import_module(f"{__package__}.{module}" if is_own else module), name
    )
    return function
