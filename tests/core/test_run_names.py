"""Runs beside each other are called by what differs in the paths of their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.tables.compare.run_names import MAX_BRIEF, brief_name, run_names

NAMES = {
    ("run_2026-11-01/rank0.pt.trace.json", "run_2026-11-02/rank0.pt.trace.json"): (
        "2026-11-01",
        "2026-11-02",
    ),
    ("eager.json", "compiled.json.gz"): ("eager", "compiled"),
    ("a/x/eager.pt.trace.json", "b/y/compiled.pt.trace.json"): ("eager", "compiled"),
    ("mlp__coordinate-remap.json", "mlp__upstream-main.json"): ("coordinate-remap", "upstream-main"),
    ("trace.json", "trace_new.json"): ("trace", "trace_new"),
    ("trace.json", "new_trace.json"): ("trace", "new"),
    ("a.json", "a.json.gz"): ("a.json", "a.json.gz"),
    ("bs_4.json", "bs_8.json"): ("bs_4", "bs_8"),
    ("run1/rank0.json", "run2/rank0.json"): ("run1", "run2"),
    ("monday/llama/t.json", "tuesday/llama/t.json"): ("monday", "tuesday"),
    ("s3://bucket/one/t.json", "s3://bucket/two/t.json"): ("one", "two"),
    ("a.json", "a.json"): ("a.json", "a.json"),
    ("a/one/t.json", "a/two/t.json", "b/one/t.json"): ("a/one", "a/two", "b/one"),
    ("step_1.json", "step_2.json", "step_30.json"): ("step_1", "step_2", "step_30"),
    ("_.json", "__.json"): ("_", "__"),
    ("mlp__remap-x__pf_228.178.json", "mlp__main__pf_229.179.json"): ("remap-x", "main"),
    ("host_12.345.pt.trace.json", "host_13.346.pt.trace.json"): ("host_12", "host_13"),
    ("bs_4_lr_1.json", "bs_4_lr_2.json", "bs_8_lr_1.json"): ("4_lr_1", "4_lr_2", "8_lr_1"),
}
PARTS = {
    (("t.json", "t.json"), ("step=4", "step=nth:-1")): ("step=4", "step=nth:-1"),
    (("t.json", "t.json"), ("", "step=4")): ("t.json", "step=4"),
    (("a.json", "b.json"), ("step=4", "step=4")): ("a", "b"),
    (("a.json", "b.json"), ("", "step=4")): ("a", "b:step=4"),
}


@pytest.mark.parametrize(("paths", "names"), NAMES.items(), ids=str)
def test_names(paths: Sequence[str], names: Sequence[str]) -> None:
    """Files are called by the words that differ, folders where the files have one name; equal ones alike."""
    assert tuple(run_names(paths)) == names


@pytest.mark.parametrize(("sides", "names"), PARTS.items(), ids=str)
def test_parts_of_files(sides: tuple[Sequence[str], Sequence[str]], names: Sequence[str]) -> None:
    """What part of a file a side is stands in its name where the parts differ."""
    assert tuple(run_names(*sides)) == names


def test_a_relative_path_begins_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the paths as typed do not tell runs apart, the folder in which the program runs does."""
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    assert run_names(["rank0.json", "../two/rank0.json"]) == ["one", "two"]


PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b_1", "b_2", "1", "x-y", "t.json", "_"]), min_size=1, max_size=3)
)


@given(PATHS)
def test_what_differs_is_called_differently(paths: list[list[str]]) -> None:
    """Two sides have one name if, and only if, they are one file; no name is empty."""
    typed = ["/".join(parts) for parts in paths]
    names = run_names(typed)
    assert all(names) and len(names) == len(typed)
    assert all(
        (name == other) == (path == other_path)
        for name, path in zip(names, typed)
        for other, other_path in zip(names, typed)
    )


def test_long_names_show_both_ends() -> None:
    """A name is shortened in the middle, to what a sentence has room for."""
    name = "begin" + "x" * 50 + "end"
    assert brief_name(name).startswith("begin") and brief_name(name).endswith("end")
    assert len(brief_name(name)) == MAX_BRIEF and brief_name("short") == "short"
