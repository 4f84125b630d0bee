"""The files that tests read: samples of the project, and a corpus that lies beside some clones.

A file is named by its path below tests/samples or below the corpus of real traces; `cases/…` are small traces
made for one question each, `goldens/…` are reference numbers of other tools. `for_files` gives a test a case
for each file, `needs` says what a test of certain files cannot do without. Both mark what reads the corpus,
and both stay sound where there is none, or an empty one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "tests" / "samples"
CORPUS = Path(os.environ.get("TRACELANE_CORPUS", ROOT.parent / "shared" / "traces")).absolute()
GOLDENS = Path(os.environ.get("TRACELANE_GOLDENS", CORPUS.parent / "goldens")).absolute()
CASES = Path(os.environ.get("TRACELANE_CASES", CORPUS.parent / "cases")).absolute()

MAX = 12
"""Rows of the corpus that `make test` tries where there are more: those of one file of each kind."""
ABSENT = {
    CORPUS: f"no corpus of real traces at {CORPUS} (set TRACELANE_CORPUS)",
    GOLDENS: f"no reference numbers at {GOLDENS} (set TRACELANE_GOLDENS)",
    CASES: f"no small cases at {CASES} (set TRACELANE_CASES)",
}
"""What a test says that is skipped for want of a folder."""

File = str | Path
"""The name of a file or folder as below `file`, or its path."""
Test = TypeVar("Test", bound=Callable[..., Any])


def file(name: File) -> Path:
    """Return where a file or folder of that name lies, or would lie; samples go first."""
    path = Path(name)
    if path.is_absolute():
        return path
    for first, folder in (("goldens", GOLDENS), ("cases", CASES)):
        if path.parts[:1] == (first,):
            return folder.joinpath(*path.parts[1:])
    sample = SAMPLES / path
    return sample if sample.exists() else CORPUS / path


def files(*patterns: str) -> list[Path]:
    """Return the files that match, as `glob` has it: samples, and those of the corpus that are no samples."""
    paths: dict[str, Path] = {}
    for pattern in patterns:
        first, _, rest = pattern.partition("/")
        folder = {"goldens": GOLDENS, "cases": CASES}.get(first)
        for base in (SAMPLES, CORPUS) if folder is None else (folder,):
            for path in base.glob(pattern if folder is None else rest):
                if path.is_file():
                    paths.setdefault(f"{folder or ''}{path.relative_to(base)}", path)
    return sorted(paths.values(), key=lambda path: (not path.is_relative_to(SAMPLES), path))


RECORDED = ("*.trace.json.gz", "dynamo*.json", "*/*.pt.trace.json.gz")
"""Samples that are traces; beside them lie what wrote them and what PyTorch said of them."""


def traces(*patterns: str) -> list[Path]:
    """Return all samples that are traces, and what of the corpus and its cases matches."""
    samples = sorted(path for pattern in RECORDED for path in SAMPLES.glob(pattern))
    return samples + [path for path in files(*patterns) if not path.is_relative_to(SAMPLES)]


MAX_TEXT = 2 << 20
"""Bytes of text; few files have more, and they took most of the time of tests that change them."""


def short_texts(paths: Iterable[Path]) -> list[Path]:
    """Return the files whose text is not long: for tests that write and index each anew several times."""
    return [path for path in paths if _size_of_text(path) <= MAX_TEXT]


def _size_of_text(path: Path) -> int:
    """Return the bytes of a text, which gzip writes at its end."""
    with path.open("rb") as stream:
        if stream.read(2) != b"\x1f\x8b":
            return path.stat().st_size
        stream.seek(-4, os.SEEK_END)
        return int.from_bytes(stream.read(4), "little")


def absent(*names: File) -> list[str]:
    """Return why a test that reads these cannot run: what is said of each of their folders not there."""
    paths = [file(name) for name in names]
    return [
        reason
        for folder, reason in ABSENT.items()
        if any(path.is_relative_to(folder) for path in paths)
        and not (folder.is_dir() and any(folder.iterdir()))
    ]


def is_beside(*names: File) -> bool:
    """Tell whether one of these lies beside the clone, not in it, whether it is there or not."""
    paths = [path for name in names if not (path := file(name)).is_relative_to(SAMPLES)]
    return any(path.is_relative_to(folder) for path in paths for folder in ABSENT)


def needs(*names: File) -> Callable[[Test], Test]:
    """Mark a test as one that reads these files or folders; it stands above all other marks of the test.

    Without them one skipped test stands for all its cases.
    """
    reasons = "; ".join(absent(*names))

    def marked(test: Test) -> Test:
        if reasons:
            return _skipped(test, reasons)
        return pytest.mark.real(test) if is_beside(*names) else test

    return marked


def _skipped(test: Test, reason: str) -> Test:
    @pytest.mark.skip(reason=reason)
    def skipped() -> None: ...

    skipped.__name__, skipped.__qualname__, skipped.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return cast(Test, skipped)


def for_files(
    arguments: str, rows: Iterable[Any], *, reads: Iterable[File] = (), at: int = 0
) -> pytest.MarkDecorator:
    """Parametrize a test over rows, each of which names the file, or files, that it reads in its value `at`.

    Rows whose folder is not there are left out, so that a clone without a corpus tries the samples; where no
    row is left the test is skipped with the reason. What every case reads besides, such as reference numbers,
    is named in `reads`. A row may be that value alone. Where it is a path, the case has the file's name.
    """
    cases, reasons, rows = [], list[str](), list(rows)
    for row in rows:
        values = row if isinstance(row, tuple) and "," in arguments else (row,)
        names = values[at] if isinstance(values[at], (tuple, list)) else (values[at],)
        if missing := absent(*names, *reads):
            reasons += missing
        else:
            name = str(file(names[0]))
            rest = len(rows) > MAX and name.startswith(f"{CORPUS}/")
            rest = rest and name.removeprefix(f"{CORPUS}/") not in REPRESENTATIVE
            marks = (*(LATER if rest else ()), *((pytest.mark.real,) if is_beside(*names, *reads) else ()))
            cases.append(pytest.param(*values, marks=marks))
    if not cases:
        reason = "; ".join(dict.fromkeys(reasons)) or "no file of this kind"
        cases = [pytest.param(*(None for _ in arguments.split(",")), marks=pytest.mark.skip(reason=reason))]
    return pytest.mark.parametrize(arguments, cases, ids=_id)


def _id(value: Any) -> str | None:
    if isinstance(value, Path):
        return value.name
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], Path):
        return str(value[0].name)
    return None


HOSTILE_MAKER = CASES / "trust" / "hostile.py"
"""A program that makes real traces hostile: `hostile.py FOLDER CORPUS`."""

REPRESENTATIVE = {
    *("aiu/acelyzer_spyre_mlp_tb.pt.trace.json", "aiu/sample_flex_3062_job_4.json"),
    *("chrome/catapult_nestable_async.json", "chrome/viztracer_vdb_basic.json"),
    *("cpu/torch213_mlp_shapes_mem_stack_steps.json.gz", "gpu/hta_gpu_user_annotation.json.gz"),
    *("gpu/hta_mi250_minitoy_rocm62.json.gz", "gpu/kineto_tb_gpu_metrics_counters.json"),
    *("gpu/tl_vllm_decode_cudagraph_exec.json.gz", "odd/flows_odd.json", "odd/truncated_mid_event.json"),
    "multirank/dlrm_8gpu_ranks0-3/worker0_step_12.1694128201545.pt.trace.json.gz",
}
"""A file of each kind: what `make test` reads of the corpus where a test would read all of it."""
LATER = (pytest.mark.corpus, pytest.mark.slow)
"""Marks of what only `make test-corpus` tries."""


def later(value: Any) -> Any:
    """Return a parameter, or a tuple of several, that only `make test-corpus` tries."""
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=LATER)


def thinned(values: Iterable[Any], every: int) -> list[Any]:
    """Return parameters of which `make test` tries every n-th, and `make test-corpus` the others."""
    return [later(value) if at % every else value for at, value in enumerate(values)]


def in_turn(rows: Iterable[Any], columns: Iterable[Any], each: int) -> list[tuple[Any, Any]]:
    """Return pairs of each row with so many of the columns, which take turns: all come about equally often.

    For tests whose two parameters have little to do with each other: all pairs would prove hardly more.
    """
    some = list(columns)
    return [(row, some[(at * each + by) % len(some)]) for at, row in enumerate(rows) for by in range(each)]


@cache
def accounting() -> dict[str, Any]:
    """Return accounting.json's entries by corpus path; empty when it is absent."""
    path = GOLDENS / "accounting.json"
    return dict(json.loads(path.read_bytes())["files"]) if path.is_file() else {}


@cache
def recoverable() -> dict[str, int]:
    """Return how many events must at least be read from files that are no valid JSON."""
    path = GOLDENS / "recoverable.json"
    return dict(json.loads(path.read_bytes())["files"]) if path.is_file() else {}
