"""Which test files import a module, directly or through others: the nearest first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

FOLDERS = ("core", "tui", "src/tracelane", "tests")
WORDS = re.compile(r"[a-z]{3,}")


class Importers:
    """The imports of all files of a tree, read backwards. Files are named by paths: "core/trace/trace.py"."""

    def __init__(self, root: Path) -> None:
        paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
        texts = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for path in dict.fromkeys(paths)
            if not path.relative_to(root).as_posix().startswith(("src/tracelane/core/", "src/tracelane/tui/"))
        }
        files = {_module_of(file): file for file in texts}
        self.imports = {file: _imports(file, text, files) for file, text in texts.items()}
        for file in self.imports:
            if _is_test(file):  # fixtures come from there without an import
                folders = [folder.as_posix() for folder in PurePosixPath(file).parents]
                self.imports[file] |= {f"{folder}/conftest.py" for folder in folders} & texts.keys()
        self.importers: dict[str, set[str]] = {file: set() for file in texts}
        for file, imported in self.imports.items():
            for each in imported:
                self.importers[each].add(file)

    def tests_of(self, file: str) -> list[str]:
        """Return the test files that import a file: those that do so through the fewest others first, where a
        word of the file's in the name of a test counts for two others; then those that import the fewest.
        """
        distances, level = {file: 0}, [file]
        for distance in range(1, len(self.imports)):
            around = dict.fromkeys(each for inner in level for each in sorted(self.importers[inner]))
            level = [each for each in around if each not in distances]
            distances |= dict.fromkeys(level, distance)
        words = _words(file)
        return sorted(
            filter(_is_test, distances),
            key=lambda test: (distances[test] - 2 * len(words & _words(test)), len(self.imports[test]), test),
        )


def _is_test(file: str) -> bool:
    return file.startswith("tests/") and PurePosixPath(file).name.startswith("test_")


def _words(file: str) -> set[str]:
    """Return the words of a file's name and of its folder's, without the s of a plural."""
    names = PurePosixPath(file).with_suffix("").parts[-2:]
    return {word.rstrip("s") for name in names for word in WORDS.findall(name)} - {"test", "core", "tui"}


def _module_of(file: str) -> str:
    parts = list(PurePosixPath(file).with_suffix("").parts)
    parts = ["tracelane", *parts] if parts[0] in ("core", "tui") else parts[parts[0] == "src" :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(file: str, text: str, files: dict[str, str]) -> set[str]:
    """Return the files that a file imports, at its top or in a function, or names in a text that its package
    imports later: "kernels:analyse_kernels", "tracelane.core.python.opened".
    """
    module = _module_of(file)
    package = module if file.endswith("/__init__.py") else module.rpartition(".")[0]
    names = {
        name
        for node in ast.walk(ast.parse(text))
        for name in _names(node, package, files)
        if name in files and files[name] != file
    }
    return {files[name] for name in names}


def _names(node: ast.AST, package: str, files: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.rsplit(".", node.level - 1)[0] if node.level else ""
        base = ".".join(filter(None, (above, node.module)))
        inner = [f"{base}.{alias.name}" for alias in node.names]
        yield from (inner if all(name in files for name in inner) else [base, *inner])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.partition(":")[0].lstrip(".")
        yield from (name if name.startswith("tracelane.") else f"{package}.{name}",)
