"""Who moves a file hears at once what names it: the lists of wheel and sdist, scripts and their imports."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.modules import at, files_of, tree_of

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ("bundle", "benchmarks", "screenshots", "docs", "packages", "tests/fuzz")
NAMED = re.compile(r"\b(?:core|tui|tests|docs|bundle|benchmarks|screenshots|packages)/[\w./-]+\.\w+\b")
BUILT = re.compile(r"_tracelane\.native|\{|docs/python\.ipynb")
"""Names of what is made, and patterns."""
OTHERS = {"src/tracelane/core", "src/tracelane/tui", "LICENSE", "pyproject.toml"}
"""Links, and what every sdist has without being listed."""


def _tracked(*rooms: str) -> set[str]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", *rooms], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    return {name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_what_is_packed_is_what_git_knows(
    target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every file of core and tui is in the wheel, and every file at all in the sdist, with the commit; the
    hook that packing calls finds what it needs.
    """
    monkeypatch.setenv("TRACELANE_WHEEL", "any")  # nothing is compiled
    builders = pytest.importorskip(f"hatchling.builders.{target}")
    builder = getattr(builders, f"{target.title()}Builder")(str(ROOT))
    packed = {Path(file.path).relative_to(ROOT).as_posix() for file in builder.recurse_included_files()}
    rooms = ("core", "tui") if target == "wheel" else ()
    expected = {name for name in _tracked(*rooms) if not (rooms and name.endswith((".c", ".h")))}
    assert expected - packed - OTHERS == set()
    data: dict[str, Any] = {"force_include": {}}
    for hook in builder.get_build_hooks(str(tmp_path)).values():
        hook.initialize("standard", data)
    assert [name.rpartition("/")[2] for name in data["force_include"].values()] == ["COMMIT"]


def _scripts() -> Iterator[tuple[Path, ast.AST]]:
    for path in files_of(*SCRIPTS):
        for node in ast.walk(tree_of(path)):
            yield path, node


def test_scripts_name_files_that_are_there() -> None:
    """Paths in the texts of build scripts, benchmarks and pictures, and in what runs them, are files."""
    texts = [
        (path, node.lineno, node.value)
        for path, node in _scripts()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for name in ("Makefile", "pyproject.toml", ".ci/run", ".pre-commit-config.yaml", "mkdocs.yml"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        texts += [(ROOT / name, number, line) for number, line in enumerate(lines, 1)]
    named = [(at(path, line, name), name) for path, line, text in texts for name in NAMED.findall(text)]
    assert len(named) > 30
    assert not [where for where, name in named if not BUILT.search(name) and not (ROOT / name).exists()]


@cache
def _names_in(module: str) -> frozenset[str] | None:
    """Return what a module of tracelane defines or imports, None where there is no such module."""
    path = ROOT.joinpath(*module.split(".")[1:]) if module != "tracelane" else ROOT / "src" / "tracelane"
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.exists():
        return None
    names = {one.stem for one in file.parent.iterdir()} if file.name == "__init__.py" else set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return frozenset(names)


def test_scripts_import_what_is_there() -> None:
    """Scripts that no quick test runs import modules and names that exist."""
    imports = [
        (at(path, node.lineno, f"{node.module}.{alias.name}"), node.module, alias.name)
        for path, node in _scripts()
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tracelane"
        for alias in node.names
    ]
    assert len(imports) > 50
    assert not [where for where, module, name in imports if name not in (_names_in(str(module)) or ())]
