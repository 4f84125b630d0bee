"""The recipes of docs/python.md and the cells of the notebook run as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.scripts import document_script
from tracelane.core.demo.trace import write_demo

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
FIRST, *RECIPES = BLOCK.findall((DOCS / "python.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the demo lies."""
    folder = tmp_path_factory.mktemp("recipes")
    write_demo(folder / "demo")
    return folder


@pytest.fixture
def in_demo(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder of the demo."""
    monkeypatch.chdir(demo)


def test_there_are_eight_recipes() -> None:
    """The page has eight recipes after the lines that open the demo."""
    assert len(RECIPES) == 8


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: text.strip().partition("\n")[0][:40])
@pytest.mark.usefixtures("in_demo")
def test_a_recipe_runs(recipe: str) -> None:
    """Each recipe runs by itself after the first two lines."""
    exec(compile(FIRST + recipe, "docs/python.md", "exec"), {})


@pytest.mark.usefixtures("in_demo")
def test_the_notebook_is_that_of_the_script() -> None:
    """The notebook holds the script's cells, each runs and shows what kind of output stands there."""

    def outline(notebook: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
        cells = notebook["cells"]
        kinds = [[sorted(out.get("data", ())) for out in cell.get("outputs", ())] for cell in cells]
        return [("".join(cell["source"]), kind) for cell, kind in zip(cells, kinds)]

    written = json.loads((DOCS / "python.ipynb").read_text(encoding="utf-8"))
    assert outline(written) == outline(document_script("notebook").notebook()), (
        "run: .venv/bin/python docs/notebook.py"
    )
    assert sum("image/svg+xml" in kind for _, kinds in outline(written) for kind in kinds) >= 2
