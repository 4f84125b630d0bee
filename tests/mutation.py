"""Change single operators and numbers of some files, and list the changes that their tests do not notice.

    python -m tests.mutation [--most 40] [--seed 1] [FILE[:LINE] …]

Each survivor is a question: is a test missing, or does the line not matter? Of a line all changes are tried.
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_OF_RULES = tuple(f"tests/core/test_findings{room}.py" for room in ("_rules", "", "_patterns"))
TESTS: Mapping[str, tuple[str, ...]] = {
    "tui/draw/layout.py": tuple(f"tests/tui/test_{room}.py" for room in ("layout", "hierarchy", "against")),
    "core/tables/schema.py": ("tests/core/test_table.py", "tests/core/test_registry.py"),
    "core/tables/frames.py": ("tests/core/test_table.py", "tests/tui/test_cli_tables.py"),
    "core/tables/rule_threshold.py": ("tests/core/test_findings_rules.py",),
    "core/tables/findings/gaps.py": _OF_RULES,
    "core/tables/findings/steps.py": (*_OF_RULES, "tests/tui/test_cli_patterns.py"),
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
EQUIVALENT: Mapping[str, Mapping[tuple[str, str], str]] = {
    "tui/draw/layout.py": {
        ("lane: int = -1", "2"): "any number below 0 is no lane",
        ("if first >= last:", "first > last"): "no line lies between equal ones",
        ("is_last = ", "3"): "the blocks of a process follow one another",
        ("depths=(0,)", "1"): "a line that is alone is found at any depth",
    },
    "core/tables/frames.py": {
        ("columns[texts[0]].key: 0", "1"): "of equal ranks the first text is first anyway",
        ("len(ranks) + 1", "2"): "any rank behind all others is the last",
        ("abs(value) < SMALL", "abs(value) <= SMALL"): "0.001 is written the same in both ways",
    },
    "core/tables/findings/gaps.py": {
        ("floor = max(", "2"): "a floor of 1 ns, as of 2 ns, only keeps gaps of no length out",
        ("is_far = ", "1"): "nothing is below 1",
        ("is_far = ", "2"): "it matters where a gap of 5 to 9 ns is 4 % of the time looked at",
        ("rest = int(np.delete(length, long)", "1"): "there are always other gaps",
    },
    "core/tables/findings/steps.py": {
        ("inside = ", "first > host.starts[here]"): "an operator at the start is not late",
        ("inside = ", "first <= host.ends[here]"): "one at the end leaves nothing, which is too late",
        ("if compiled <= eager", "compiled < eager"): "what costs nothing is not listed",
        ("if slow <= quick", "slow < quick"): "what costs nothing is not listed",
    },
}
"""File -> (a part of its line, what stands there instead) -> why nobody can tell the two apart."""
ENDLESS_S = 600
"""A change after which tests take longer is one that they notice."""


@dataclass(frozen=True)
class Change:
    """One operator or number of a file that is another."""

    file: str
    line: int
    before: str
    after: str
    text: str  # of the whole file

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"


def changes_of(file: str) -> list[Change]:
    """Return all changes of a file but those known to matter to nobody."""
    text = (ROOT / file).read_text(encoding="utf-8")
    count = sum(1 for _ in ast.walk(ast.parse(text)))
    changes = [change for number in range(count) if (change := _changed(file, text, number)) is not None]
    known, lines = EQUIVALENT.get(file, {}), text.splitlines()
    return [
        one
        for one in changes
        if not any(part in lines[one.line - 1] and after == one.after for part, after in known)
    ]


def _changed(file: str, text: str, number: int) -> Change | None:
    """Change one node of a file, as `ast.walk` numbers them; None where it has nothing to change."""
    tree = ast.parse(text)
    node = next(each for at, each in enumerate(ast.walk(tree)) if at == number)
    before = ast.unparse(node)  # type: ignore[attr-defined]
    if not _change(node):
        return None
    after: str = ast.unparse(node)  # type: ignore[attr-defined]
    return Change(file, node.lineno, before, after, ast.unparse(tree))  # type: ignore[attr-defined]


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
    parser.add_argument("files", nargs="*", metavar="FILE[:LINE]", help=f"of {', '.join(TESTS)}; all")
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
        positions = {
            (file, int(line or 0)) for file, _, line in (one.partition(":") for one in options.files)
        }
        positions = positions or {(file, 0) for file in TESTS}
        files = sorted({file for file, _ in positions})
        wrong = [file for file in files if not survives(home, file, (ROOT / file).read_text("utf-8"))]
        assert not wrong, f"tests fail without any change: {wrong}"
        every = [
            one for file in files for one in changes_of(file) if positions & {(file, 0), (file, one.line)}
        ]
        tried = random.sample(every, min(options.most, len(every)))
        left = 0
        for one in sorted(tried, key=lambda change: (change.file, change.line)):
            if survives(home, one.file, one.text):
                left += 1
                print(one, flush=True)
    print(f"{left} of {len(tried)} changes were noticed by no test; there are {len(every):,} changes")


if __name__ == "__main__":
    main()
