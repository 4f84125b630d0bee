"""Tests get their files from one place, whatever of the corpus is there."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import corpus
from tests.corpus import (
    ABSENT,
    CASES,
    CORPUS,
    ROOT,
    SAMPLES,
    absent,
    file,
    files,
    for_files,
    is_beside,
    needs,
)

SAMPLE = "jax.trace.json.gz"


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither corpus nor cases: the one folder is missing, the other empty."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(corpus, "CORPUS", tmp_path / "missing")
    monkeypatch.setattr(corpus, "CASES", tmp_path / "empty")
    monkeypatch.setattr(
        corpus, "ABSENT", {corpus.CORPUS: ABSENT[CORPUS], corpus.CASES: ABSENT[CASES], SAMPLES: "never"}
    )


def cases_of(mark: pytest.MarkDecorator) -> list[tuple[tuple[object, ...], list[str]]]:
    """Return the values and the names of the marks of each case."""
    return [(tuple(case.values), [each.name for each in case.marks]) for case in mark.args[1]]


def test_a_name_is_a_sample_before_it_is_of_the_corpus(tmp_path: Path) -> None:
    """Samples are taken from the project, all else from the folder that its name begins with."""
    assert file(SAMPLE) == SAMPLES / SAMPLE
    assert file("gpu/none.json") == CORPUS / "gpu" / "none.json"
    assert file("cases/a/b.json") == CASES / "a" / "b.json"
    assert file(tmp_path) == tmp_path
    assert SAMPLES / SAMPLE in files("*.gz") and len(files("*.gz", "jax*")) == len(files("*.gz"))


@pytest.mark.usefixtures("nowhere")
def test_samples_stay_where_nothing_else_is() -> None:
    """A row whose folder is missing or empty is left out; a test of which no row is left is skipped."""
    rows = [("gpu/none.json", 1), (SAMPLE, 2), ("cases/none.json", 3)]
    assert cases_of(for_files("name, count", rows)) == [((SAMPLE, 2), [])]
    assert cases_of(for_files("count, name", [(2, SAMPLE), (1, "gpu/none.json")], at=1)) == [
        ((2, SAMPLE), [])
    ]
    assert cases_of(for_files("names", [(SAMPLE, "gpu/none.json"), (SAMPLE, SAMPLE)])) == [
        (((SAMPLE, SAMPLE),), [])
    ]
    for nothing in (
        for_files("name, count", rows[:1]),
        for_files("name", files("gpu/*")),
        for_files("name", []),
    ):
        ((values, marks),) = cases_of(nothing)
        assert set(values) == {None} and marks == ["skip"]
    assert [mark.kwargs["reason"] for mark in for_files("path", ["gpu/a", "cases/b"]).args[1][0].marks] == [
        f"{ABSENT[CORPUS]}; {ABSENT[CASES]}"
    ]


@pytest.mark.usefixtures("nowhere")
def test_what_needs_a_missing_folder_is_skipped() -> None:
    """One case stands for all, its reason names each folder once; samples are always there."""

    @needs("gpu/a.json", SAMPLE, "cases/b.json", "gpu/b.json")
    @pytest.mark.parametrize("unknown", range(9))
    def of_the_corpus(unknown: int) -> None:
        """Never run."""

    @needs(SAMPLE)
    def of_samples() -> None: ...

    (mark,) = of_the_corpus.pytestmark  # type: ignore[attr-defined]
    assert (of_the_corpus.__name__, of_the_corpus.__doc__) == ("of_the_corpus", "Never run.")
    assert mark.name == "skip" and mark.kwargs["reason"] == f"{ABSENT[CORPUS]}; {ABSENT[CASES]}"
    assert not hasattr(of_samples, "pytestmark") and absent(SAMPLE) == []


def test_what_reads_the_corpus_is_marked(tmp_path: Path) -> None:
    """Files of the corpus and beside it are told from samples and others, whether they are there or not."""
    assert [is_beside(name) for name in ("gpu/none", "cases/a", "goldens/b", SAMPLE, tmp_path)] == [
        *(True, True, True, False, False)
    ]
    assert is_beside(SAMPLE, "gpu/none") and not is_beside()


COLLECT = """
import json, sys, pytest
class Plugin:
    def pytest_collection_finish(self, session):
        ids = [item.nodeid for item in session.items
               if not any(mark.name == "skip" or mark.args[:1] == (True,) and mark.name == "skipif"
                          for mark in item.iter_markers())]
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(ids, file)
sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[Plugin()]))
"""
"""Writes the names of the cases that a run would not skip or leave out."""


OVER_ALL_FILES = {"test_every_argument_is_found_by_its_own_value", "test_results_equal_brute_force"}
"""Tests with a case over all files that are there: samples alone in a clone, elsewhere the corpus, too."""


def collected(path: Path, corpus: Path, marks: str) -> Counter[str]:
    """Return what a run with a corpus and these marks tries, how often."""
    subprocess.run(
        [sys.executable, "-c", COLLECT, str(path), "-m", marks, "tests"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("TRACELANE_")}
        | {"TRACELANE_CORPUS": str(corpus)},
        capture_output=True,
        check=True,
    )
    names: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return Counter(re.sub(r"\d+", "", name) for name in names)  # numbers of cases differ with what is there


@pytest.mark.slow
@needs(CORPUS, CASES)
def test_each_case_runs_once(tmp_path: Path) -> None:
    """What a clone without the corpus tries and what `make test-corpus` tries have no case in common, and are
    all that there is.
    """
    clone = collected(tmp_path / "clone", tmp_path / "missing", "not corpus")
    corpus = collected(tmp_path / "corpus", CORPUS, "corpus or real")
    both = collected(tmp_path / "both", CORPUS, "")
    twice = {name.partition("[")[0].rpartition("::")[2] for name in clone + corpus - both}
    assert twice <= OVER_ALL_FILES and both - clone - corpus == Counter()
    assert len(clone) > 1000 < len(corpus)


MAX_OF_SAMPLES = 700_000
"""Bytes of all samples as they lie there, the traces packed."""


def test_samples_stay_small_and_tell_no_paths() -> None:
    """All samples together are small; PyTorch's have their averages beside them, and none names a home."""
    paths = [path for path in SAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in paths) <= MAX_OF_SAMPLES
    for path in files("cpu/torch_*.pt.trace.json.gz"):
        text = gzip.decompress(path.read_bytes())
        assert path.with_name(path.name.replace(".pt.trace.", ".averages.")).is_file()
        assert b'"traceEvents"' in text and not re.search(rb"/(home|root|work|tmp)/\w", text), path.name


@pytest.mark.slow
def test_every_test_is_collected_without_a_corpus(tmp_path: Path) -> None:
    """Where corpus, cases and reference numbers are empty folders, all tests are collected; where they are
    missing, as in a clone, every run says so.
    """
    folder = tmp_path / "corpus"
    folder.mkdir()
    names = ("TRACELANE_CORPUS", "TRACELANE_CASES", "TRACELANE_GOLDENS")
    collected = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-qq",
            "-m",
            "",
            "-p",
            "no:cacheprovider",
            "tests",
        ],
        cwd=ROOT,
        env=os.environ | dict.fromkeys(names, str(folder)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert collected.returncode == 0, collected.stdout[-2000:] + collected.stderr[-2000:]
