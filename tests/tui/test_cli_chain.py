"""`tracelane chain`: which slice it picks, and its JSON; transcripts/chain.txt has what it prints."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.graph_pairs import MODEL, capture_events, replay_events, write_pair
from tests.transcripts import write_chain, write_replays
from tracelane.tui.cli.main import main


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_chain(tmp_path_factory.mktemp("chain") / "t.json"))


def run(*arguments: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of the command."""
    out, errors = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = main(["chain", *arguments])
    return code, out.getvalue(), errors.getvalue()


def said(*arguments: str) -> str:
    code, out, errors = run(*arguments)
    assert code == 0, errors
    return out


def test_replays_are_numbered(tmp_path: Path) -> None:
    """Each kernel of a graph says in which replay it is, which of its kernels, and how long that takes."""
    entries = json.loads(said(str(write_replays(tmp_path / "t.json")), "--name", "k1", "--all", "--json"))
    assert [each["replay"]["number"] for each in entries] == [1, 2]
    last = {"this": 14_000, "mean": 12_000, "min": 10_000, "max": 14_000}
    assert (entries[1]["replay"]["position"], entries[1]["replay"]["kernel_ns"]) == (2, last)


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ((), [50_000]),
        (("--all",), [50_000, 400_000]),
        (("--at", "+401us"), [400_000]),
        (("--at", "400000"), [400_000]),
        (("--at", "@55"), [50_000]),
        (("--at", "@0"), [50_000]),
    ],
)
def test_which_one_is_meant(path: str, options: tuple[str, ...], starts: list[int]) -> None:
    """The first, all, or the one that covers or lies nearest to a time, in any way of writing it."""
    entries = json.loads(said(path, "--name", "^mm_kernel$", "--json", *options))
    assert [entry["kernel"]["start_ns"] for entry in entries] == starts


def test_what_is_no_pattern_is_wrong_usage(path: str) -> None:
    """A regular expression that is none is refused."""
    assert run(path, "--name", "(")[0] == 64


def test_a_replayed_kernel_says_what_captured_it(tmp_path: Path) -> None:
    """In JSON, too, op, module, shapes and stack of the captured launch are said by capture."""
    trace = str(write_pair(tmp_path, [replay_events(MODEL)], {"a.json": capture_events(MODEL)}))
    (kernel,) = json.loads(said(trace, "--name", "^embed$", "--json"))
    assert kernel["by_capture"] == {
        "op": "aten::embedding",
        "module": "Embedding_0",
        "shapes": "[[1000,64],[32]]",
        "stack": "model.py(12): forward",
        "graph": "capture_32_FULL",
    }


def test_a_replayed_kernel_says_why_no_capture_fits(tmp_path: Path) -> None:
    """In JSON, too, the reason stands with each kernel of a replay with two kernels swapped."""
    swapped = [MODEL[1], MODEL[0], *MODEL[2:]]
    trace = str(write_pair(tmp_path, [replay_events(MODEL)], {"a.json": capture_events(swapped)}))
    (kernel,) = json.loads(said(trace, "--name", "^embed$", "--json"))
    why = "kernel 1 is embed, and gemm in capture_32_FULL"
    assert kernel["by_capture"] == {"no owner": why}
