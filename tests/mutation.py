"""Change single operators and numbers of some files, and list the changes that their tests do not notice.

    python -m tests.mutation [--most 40] [--seed 1] [FILE …]

Each survivor is a question: is a test missing, or does the line not matter?
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS: Mapping[str, tuple[str, ...]] = {
    "tui/draw/layout.py": ("tests/tui/test_layout.py",),
    "core/tables/schema.py": ("tests/core/test_table.py", "tests/core/test_registry.py"),
    "core/tables/cell_text.py": ("tests/core/test_table.py", "tests/tui/test_cli_table.py"),
    "core/tables/rule_threshold.py": ("tests/core/test_findings_rules.py",),
    "core/tables/findings/gaps.py": ("tests/core/test_findings_rules.py", "tests/core/test_findings.py"),
    "core/tables/findings/steps.py": ("tests/core/test_findings_rules.py", "tests/core/test_findings.py"),
}
"""File -> the tests that speak of it."""
SWAPS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
ENDLESS_S = 600
"""A change after which tests take longer is one that they notice."""


def changes(text: str) -> list[int]:
    """Return which nodes of a text, as `ast.walk` numbers them, can be changed."""
    return [number for number, node in enumerate(ast.walk(ast.parse(text))) if _change(node)]


def changed(text: str, number: int) -> tuple[int, str]:
    """Return the line of a node, and the text with it changed."""
    tree = ast.parse(text)
    node = next(each for at, each in enumerate(ast.walk(tree)) if at == number)
    _change(node)
    return node.lineno, ast.unparse(tree)  # type: ignore[attr-defined]


def _change(node: ast.AST) -> bool:
    """Change a node in its place: a number by 1, an operator to its neighbour; tell whether it can be."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[assignment]
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    else:
        return False
    return True


def survives(home: Path, file: str, text: str) -> bool:
    """Tell whether the tests of a file pass with another text of it, in a copy of the code."""
    target = home / "tracelane" / file
    before = target.read_text(encoding="utf-8")
    target.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS[file]]
    environment = {**os.environ, "PYTHONPATH": f"{home}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=ENDLESS_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(before, encoding="utf-8")
    return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", choices=[[], *TESTS], default=[])
    parser.add_argument("--most", type=int, default=40, help="changes that are tried, drawn by chance")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for room in ("core", "tui"):
            shutil.copytree(ROOT / room, home / "tracelane" / room)
        for module in (ROOT / "src" / "tracelane").glob("*.py"):
            shutil.copy(module, home / "tracelane")
        files = options.files or list(TESTS)
        texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
        wrong = [file for file in files if not survives(home, file, texts[file])]
        assert not wrong, f"tests fail without any change: {wrong}"
        tries = [(file, number) for file in files for number in changes(texts[file])]
        chosen = random.sample(tries, min(options.most, len(tries)))
        tried = [(file, *changed(texts[file], number)) for file, number in chosen]
        left = [(file, line) for file, line, text in tried if survives(home, file, text)]
    for file, line in sorted(left):
        print(f"{file}:{line}: {texts[file].splitlines()[line - 1].strip()}")
    print(f"{len(left)} of {len(chosen)} changes were noticed by no test; there are {len(tries):,} changes")


if __name__ == "__main__":
    main()
