"""Print how large each room is, and what changed since a commit: for notes and readers, it gates nothing.

    python -m tests.size [--since COMMIT]        make size [SINCE=COMMIT]

nodes      of the syntax trees. A text of several lines that is no docstring counts each line that is not
           blank as a node too: a table that is written into a text, and parsed when the program starts, is as
           long to read as one of rows, and would else seem to be nothing.
lines      all of the files: blank ones, comments, docstrings, and those of such texts
files      of Python; those of C stand in a row of their own, with nothing but lines
over 40    functions and methods of more than 40 lines, from `def` to their last
used once  functions and methods with a name like `_this` that their file speaks of once beside the definition
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from tests.corpus import ROOT

FOLDERS = ("core", "tui", "packages", "bundle")
COLUMNS = ("nodes", "lines", "files", "over 40", "used once")
BUILT = {"__pycache__", "build", "dist", ".venv"}
"""Folders of what was made here."""
LONG = 40
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
C, ALL = "C", "all together"


def size_of(name: str, text: str) -> Counter[str]:
    """Return what the columns say of one file."""
    size = Counter(lines=len(text.splitlines()), files=1)
    if not is_python(name):
        return size
    nodes = [*ast.walk(ast.parse(text))]
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    uses += Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
    size["nodes"] = len(nodes) + sum(lines_of_text(node) for node in nodes if id(node) not in docstrings)
    size["over 40"] = sum(lines_of(node) > LONG for node in functions)
    size["used once"] = sum(is_private(node.name) and uses[node.name] == 1 for node in functions)
    return size


def is_python(name: str) -> bool:
    return name.endswith(".py")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def lines_of_text(node: ast.AST) -> int:
    """Return the lines of a text that are not blank, 0 where it has one only or the node is no text."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) if len(lines) > 1 else 0


def room_of(name: str) -> str:
    """Return the room of a file: the folder of core and tui that it stands in, packages, bundle, or C."""
    parts = PurePosixPath(name).parts
    if not is_python(name):
        return C
    return "/".join(parts[:2]) if parts[0] in ("core", "tui") and len(parts) > 2 else parts[0]


def is_counted(name: str) -> bool:
    path = PurePosixPath(name)
    return path.parts[0] in FOLDERS and path.suffix in (".py", ".c", ".h") and not BUILT & {*path.parts}


def files_here() -> Iterator[tuple[str, str]]:
    """Yield the files of the checkout as they are, with their texts."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.*")):
            name = path.relative_to(ROOT).as_posix()
            if is_counted(name):
                yield name, path.read_text(encoding="utf-8")


def files_at(commit: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a commit with their texts, from git's store; CalledProcessError where it is none."""
    command = ["git", "archive", "--format=tar", commit]
    archive = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive), encoding="utf-8") as files:
        for member in files:
            content = files.extractfile(member) if member.isfile() and is_counted(member.name) else None
            if content is not None:
                yield member.name, content.read().decode()


def sizes_of(files: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """Return the size of each room, and of core, of tui and of all together."""
    sizes = dict[str, Counter[str]]()
    for name, text in files:
        room = room_of(name)
        whole = (
            f"{room.partition('/')[0]}, all rooms"
            if name.startswith(("core/", "tui/")) and room != C
            else room
        )
        for each in dict.fromkeys((room, whole, ALL)):
            sizes.setdefault(each, Counter()).update(size_of(name, text))
    return sizes


def table_of(sizes: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]] | None = None) -> str:
    """Return the sizes as a table, each with what is more or less than before."""
    rooms = [*sorted({*sizes, *(before or {})} - {C, ALL}), C, ALL]
    heads = [head.rjust(10) + " " * 8 * (before is not None) for head in COLUMNS]
    lines = ["".join(heads) + "  room"]
    for room in rooms:
        size = sizes.get(room, Counter())
        old = None if before is None else before.get(room, Counter())
        cells = [
            f"{size[key]:10,}" + changed(size[key], None if old is None else old[key]) for key in COLUMNS
        ]
        lines.append("".join(cells) + f"  {room}")
    return "\n".join(lines)


def changed(number: int, old: int | None) -> str:
    """Return the difference to what was before, as wide as all: blank where there is none."""
    return "" if old is None else f"{number - old:+8,}" if number != old else " " * 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", default="", metavar="COMMIT", help="print what changed since, too")
    since = parser.parse_args().since
    try:
        before = sizes_of(files_at(since)) if since else None
    except subprocess.CalledProcessError:  # git has said why
        return 1
    print(table_of(sizes_of(files_here()), before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
