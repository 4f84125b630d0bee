"""Each thing has one door: text that leaves, the index, what a device is, the state shown, Textual's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tracelane.core.base.kineto import GROUPS, vendor_of
from tracelane.core.index.format import COLUMNS

from .rule import PROGRAM, Exempt, Rule, SourceFile

# -- text leaves by core/base/output.py ---------------------------------------------------------------------

CLICK = frozenset({"echo", "secho", "echo_via_pager", "edit"})
STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})
SPEAKS = ("tui/", "core/export/")
"""Where what is written is for people and other programs; elsewhere it is indexes and caches."""
SAYS_JSON = ("tui/cli", "tui/text", "tui/controllers")
GUARD = (
    "written in a process that has loaded next to nothing, or to a log that is opened without following "
    "links; each line is made harmless by the same function"
)


def _ways_out(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Nothing but core/base/output.py prints or writes text, so all that leaves is harmless."""
    speaks = file.name.startswith(SPEAKS)
    for node in file.nodes:
        match node:
            case ast.Call(func=ast.Name(id="print")):
                yield node.lineno, "print"
            case ast.Attribute(value=ast.Name(id="click"), attr=name) if name in CLICK:
                yield node.lineno, f"click.{name}"
            case ast.ImportFrom(module="click", names=names) if any(each.name in CLICK for each in names):
                yield node.lineno, "an import from click"
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr="write" | "buffer"
            ) if stream in STREAMS:
                yield node.lineno, f"sys.{stream}"
            case ast.ImportFrom(module="sys", names=names) if any(each.name in STREAMS for each in names):
                yield node.lineno, "an import from sys"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write")) if file.is_in(["tui"]):
                yield node.lineno, "os.write"
            case ast.Attribute(value=ast.Name(id="traceback"), attr="print_exc" | "print_exception"):
                yield node.lineno, "a traceback"
            case ast.Attribute(attr="write_text" | "write_bytes") if speaks:
                yield node.lineno, "write_text"
            case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open"), args=arguments) if (
                speaks and any(map(_writes, arguments))
            ):
                yield node.lineno, "a file that is opened for writing"
            case ast.Attribute(value=ast.Name(id="json"), attr="dump" | "dumps") if file.is_in(SAYS_JSON):
                yield node.lineno, "JSON"
            case ast.Import(names=names) if speaks and any(each.name == "csv" for each in names):
                yield node.lineno, "CSV"


def _writes(argument: ast.expr) -> bool:
    """Tell whether an argument of open() is a mode that writes."""
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        return False
    mode = argument.value
    return 0 < len(mode) <= 3 and set(mode) <= set("wxabt+r") and bool(set(mode) & set("wxa+"))


# -- the viewer asks the Trace ------------------------------------------------------------------------------

STORE = "tracelane.core.index.store"
WORDS = frozenset(("categories", "windows"))
"""Columns whose names say other things too."""
TABLES = frozenset(column.partition(".")[0] for column in COLUMNS if "." in column) | {"promoted"}
DEVICE_WORDS = re.compile(r"\b(gpu|cuda|aiu|xpu|mtia|hpu|npu|tpu|spyre|accelerator|n?ccl)", re.IGNORECASE)
DEVICE_CATEGORIES = GROUPS["device"] - {"kernel", "Kernel"}
"""Without the two that are roles and titles, too."""
PATTERNS = ("compile", "search", "match", "fullmatch", "sub", "findall")


def _is_column(text: str) -> bool:
    """Tell whether a text names a column of an index: slices.start, promoted.cname.value, row_categories."""
    table, dot, name = text.partition(".")
    return text in COLUMNS.keys() - WORDS or (
        bool(dot) and table in TABLES and name.replace(".", "_").isidentifier()
    )


def _index_uses(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No file of the viewer names a column, asks a trace for its indexes, or imports the index."""
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_column(node.value):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            begin = str(node.values[0].value)
            if begin.endswith(".") and begin[:-1] in TABLES:
                yield node.lineno, begin
        elif isinstance(node, ast.Attribute) and node.attr == "indexes":
            yield node.lineno, ".indexes"
        elif isinstance(node, ast.ImportFrom) and node.module == STORE:
            yield node.lineno, STORE


def _judgements(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No file of the viewer tells by a category, label or name what a device, kernel or call is: that is
    decided in core (`Lane.role`, `slice_kind`).
    """
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in DEVICE_CATEGORIES or vendor_of(node.value):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            pattern = getattr(node.args[0], "value", None)
            if node.func.attr in PATTERNS and isinstance(pattern, str) and DEVICE_WORDS.search(pattern):
                yield node.lineno, pattern


# -- only the store replaces what is shown ------------------------------------------------------------------


def _store_assignments(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Nobody else assigns to the SessionStore: what is shown changes by dispatch alone."""
    for node in file.of_kind(ast.Attribute):
        if not isinstance(node.ctx, ast.Load):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.strip("_").endswith("store"):
                yield node.lineno, "store"


# -- what is private to Textual and Rich --------------------------------------------------------------------

NOT_THEIRS = frozenset(("_replace", "_fields", "_asdict", "_exit", "_run_exitfuncs"))
"""Names with an underscore that are public: those of named tuples, os._exit; and what ends a process."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _private_uses(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No file of tui imports a private module, or touches a private attribute of an object."""
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if parts[0] in ("textual", "rich") and any(
                map(is_private, (*parts, *(name.name for name in node.names)))
            ):
                yield node.lineno, node.module or ""
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in NOT_THEIRS:
            owner = node.value
            is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            if not is_own and not (isinstance(owner, ast.Call) and ast.unparse(owner) == "super()"):
                yield node.lineno, ast.unparse(node)


# -- what is remembered of a trace goes with it -------------------------------------------------------------

HELD_OPEN = frozenset(("Trace", "Index", "Scope", "Source", "TraceLanes"))
"""What has files open, or maps of files."""


def _lasting_caches(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No cache that outlasts a trace has one, or an index, scope or source, among its keys: those are of
    `cached_per_object`.
    """
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef) and any(
            ast.unparse(one).split("(")[0].split(".")[-1] in ("cache", "lru_cache")
            for one in node.decorator_list
        ):
            kinds = {ast.unparse(one.annotation) for one in node.args.args if one.annotation is not None}
            if kinds & HELD_OPEN:
                yield node.lineno, node.name


RULES = (
    Rule(
        "text leaves by the door",
        ("tui/cli", *PROGRAM),
        _ways_out,
        (
            ("print('x')", 1),
            ("click.echo(name)", 1),
            ("from click import secho", 1),
            ("sys.stdout.write(name)", 1),
            ("sys.stderr.buffer", 1),
            ("from sys import stdout", 1),
            ("os.write(1, name)", 1),
            ("traceback.print_exc()", 1),
            ("path.write_text(name)", 1),
            ("open(path, 'w')", 1),
            ("path.open('x', encoding='utf-8')", 1),
            ("json.dumps(row)", 1),
            ("import csv", 1),
            ("print_text(name)\nopen(path, 'rb')\njson.loads(text)", 0),
        ),
        (
            Exempt("core/base/output.py", "", "the door"),
            Exempt("core/base/children.py", "", "what a process of ours tells the one that started it"),
            Exempt(
                "tui/terminal/taken_screen.py", "", "frames, whose characters were made harmless when drawn"
            ),
            Exempt("tui/session_log.py", "", GUARD),
            Exempt("tui/terminal/guard.py", "", GUARD),
            Exempt("core/export/cut.py", "", "traces, byte by byte"),
            Exempt(
                "core/export/bundle.py", "", "zip files, for which texts are cleaned by the same function"
            ),
        ),
    ),
    Rule(
        "the viewer knows no index",
        ("tui",),
        _index_uses,
        (
            ('index.column("slices.start")', 1),
            ('index.column(f"promoted.{key}.value")', 1),
            ('index.column("row_categories")', 1),
            ('names = ("flows.source", "other")', 1),
            ("count = len(trace.indexes)", 1),
            ("from tracelane.core.index.store import Index", 1),
            ('table.column("name")', 0),
            ('say("slices. Then")', 0),
            ('title = "categories"', 0),
            ("trace.sources", 0),
        ),
    ),
    Rule(
        "the viewer judges no lane",
        ("tui",),
        _judgements,
        (
            ('re.compile(r"\\b(gpu|aiu)\\b")', 1),
            ('category == "gpu_memcpy"', 1),
            ('{"cuda_runtime": 1, "npu_driver": 2}', 2),
            ('title = "GPU 0"', 0),
            ('keys = ("kernel", "cpu_op")', 0),
            ('re.compile(r"step_\\d+")', 0),
        ),
    ),
    Rule(
        "only the store replaces its state",
        ("tui",),
        _store_assignments,
        (
            ("self.store.trace = trace", 1),
            ("self.hits, self.store.left = hits, left", 1),
            ("store.left = store.whole_left = None", 2),
            ("self._store.lane_lines += 1", 1),
            ("session_store.state: int = 1", 1),
            ("self.store.go(session)", 0),
            ("self.store = store", 0),
            ("session = self.store.session", 0),
        ),
    ),
    Rule(
        "nothing private of others is touched",
        ("tui",),
        _private_uses,
        (
            ("from textual._compositor import Compositor", 1),
            ("from rich.cells import _is_single_cell_widths", 1),
            ("app._exit_code", 1),
            ("self._rows = super()._render()\nrow._replace(a=1)\nself.__class__", 0),
        ),
        (
            Exempt(
                "tui/textual_inside.py", "", "the one file, of which tests/tui/test_textual_inside.py tells"
            ),
        ),
    ),
    Rule(
        "no cache that lasts holds a trace",
        PROGRAM,
        _lasting_caches,
        (
            ("@cache\ndef tables(trace: Trace) -> int: pass", 1),
            ("@functools.lru_cache(maxsize=2)\ndef tables(number: int, scope: Scope) -> int: pass", 1),
            ("@cached_per_object\ndef tables(trace: Trace) -> int: pass\n@cache\ndef f(n: int): pass", 0),
        ),
    ),
)
