"""The fuzzer of the C core: it finds nothing in a bounded run, and does find faults that are put in."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bundle.native_build import SOURCES, CompileError
from tests.corpus import LATER
from tests.fuzz.native_core import CORPUS, compile_harness, fuzz_native

pytestmark = [*LATER]  # `make sanitize` fuzzes, too
BOUNDED = 20_000
QUICK = 4_000
FAULTS = {
    "a write beyond the tracks": ("scan.c", r"== (scan->capacity\[TL_TRACKS\]\) \{)", r"> \1"),
    "a read beyond the text": ("scan.c", r"next_element\(at, &", "next_element(at + 200, &"),
    "a match from before the text": ("inflate.c", r"if \(distance > out - first\)", "if (0)"),
    "text beyond its room": ("inflate.c", r"FAST_OUT 320", "FAST_OUT 8"),
    "self times counted twice": ("build.c", r"\(from > around->reach .* around->reach\)", "from"),
    "a slice in a row that is taken": ("build.c", r"take_row\(&rows, row\);", ""),
    "a begin with the end of another": ("build.c", r"partner\[i\] = begin;", ""),
}
"""By name: file, pattern, and what replaces it."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the harness with the C core as it is."""
    folder = tmp_path_factory.mktemp("sound")
    try:
        compile_harness(folder)
    except CompileError as error:
        pytest.skip(str(error))
    return folder


def test_a_bounded_run_finds_nothing(sound: Path, tmp_path: Path) -> None:
    """All of the corpus and some thousand mutants of it."""
    outcome = fuzz_native(sound / "native_core", tmp_path, seed=1, most=QUICK)
    assert outcome.wrong == ""
    assert outcome.inputs == QUICK > len(list(CORPUS.iterdir())) > 20


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, sound: Path, tmp_path: Path) -> None:
    """A fault that is put in ends the run, and its input shows it again."""
    file, pattern, replacement = FAULTS[name]
    shutil.copytree(SOURCES, tmp_path / "core" / "native", ignore=shutil.ignore_patterns("*.so", "*.py"))
    text, count = re.subn(
        pattern, replacement, (tmp_path / "core" / "native" / file).read_text(encoding="utf-8")
    )
    assert count == 1
    (tmp_path / "core" / "native" / file).write_text(text, encoding="utf-8")
    program = compile_harness(tmp_path, tmp_path / "core" / "native", sound)
    outcome = fuzz_native(program, tmp_path, seed=1, most=BOUNDED)
    assert outcome.wrong and outcome.inputs < BOUNDED and outcome.text
