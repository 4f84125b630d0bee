"""Profiler traces in Python: `tracelane.open("trace.json").kernels()`. See docs/python.md.

What stands in `__all__`, with its arguments and the columns that it returns, is stable: before something of
it goes or changes its meaning, a DeprecationWarning says so for at least one minor version. All other modules
are internal and may change with every version.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracelane.core.base.errors import TracelaneError
    from tracelane.core.python.functions import check, cut, demo, diff, export
    from tracelane.core.python.opened import OpenedTrace
    from tracelane.core.tables.frame.table import Table

    __version__: str

# As single texts: checkers of types read nothing else.
__all__ = [
    "OpenedTrace",
    "Table",
    "TracelaneError",
    "__version__",
    "check",
    "cut",
    "demo",
    "diff",
    "export",
    "open",
]

LAZY = {
    "OpenedTrace": "tracelane.core.python.opened",
    "Table": "tracelane.core.tables.frame.table",
    "TracelaneError": "tracelane.core.base.errors",
    **dict.fromkeys(("check", "cut", "demo", "diff", "export"), "tracelane.core.python.functions"),
}
"""The module of each name, imported when the name is asked for: `import tracelane` loads nothing."""


def open(
    paths: str | Path | Sequence[str | Path],
    *,
    rank: str = "",
    capture: str = "",
    run: str = "",
    index_dir: str | Path | None = None,
    step_name: str | None = None,
    attribute: Literal["launch", "window"] = "launch",
    device_offsets: Sequence[str] = (),
    ts_unit: Literal["us", "ns"] = "us",
    captures: str | Path | None = None,
) -> OpenedTrace:
    """Open one or several trace files, or a folder of them; what is not indexed yet is indexed now.

    rank, capture, run: which files of several, as the options of this name on the command line ("0-3,7"; a
    number, a part of a time, or "all"; the name of a folder). index_dir: where the index is kept, else in the
    cache. step_name: slices of this name are the steps. attribute: device work belongs to the step that
    launched it, or to the window in which it ran. device_offsets: as --device-offset, "PID=S" or "auto".
    ts_unit: what `ts` and `dur` of JSON count. captures: the folder with the traces of captured graphs, else
    `capture_traces` beside the trace.

    Raises TracelaneError, whose text says in one line what is wrong with the input.
    """
    from tracelane.core.index.captures import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.python.opened import opened_for_python

    return opened_for_python(
        paths,
        Choice(run, capture, rank),
        IndexOptions(
            None if index_dir is None else Path(index_dir),
            ts_unit=ts_unit,
            captures=None if captures is None else Path(captures),
        ),
        step_name,
        attribute,
        device_offsets,
    )


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("tracelane")
    if name in LAZY:
        from importlib import import_module

        return getattr(import_module(LAZY[name]), name)
    raise AttributeError(f"module 'tracelane' has no attribute {name!r}")
