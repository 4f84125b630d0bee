"""Every example of README, docs and help runs on the demo as it stands there."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from tests.sambatune import write_report
from tests.scripts import DOCS
from tests.snapshots import pickled, snapshot_of, training
from tracelane.core.demo.trace import write_demo
from tracelane.tui.cli.help import examples_of
from tracelane.tui.cli.main import command_names, main

COMMAND = re.compile(r"^    (?:\$ )?(tracelane .*)$", re.MULTILINE)
INLINE = re.compile(r"`(tracelane \S+ (?:TRACE|DIR|t\.json|trace\.json)\b[^`\n]*)`")
RANK0 = (
    *("TRACE", "trace.json", "t.json", "before.json", "yesterday.pt.trace.json", "yesterday.json"),
    *("run1.json", "run2.json", "run3.json", "rank0.json", "a.json", "A", "old.json", "good.json"),
    "eager.json",
)
RANK1 = (
    "after.json",
    "today.json",
    "today.pt.trace.json",
    "other.json",
    "rank1.json",
    "b.json",
    "B",
    "new.json",
    "compiled.json",
)
FOLDERS = ("DIR", "traces", "ranks", "run", "demo")
ELSEWHERE = re.compile(
    r"://|--cluster|/scratch|/tmp/|tracelane-demo|--watch|<|\$\(|ncclDevKernel|column cycles"
    r"|tracelane capture|tracelane watch"
)
"""Examples about other machines, processes that run, a GPU or an AIU, and those that shells put together."""
VERDICTS = {"check", "diff", "doctor"}
"""Commands that end with 1 where something is worse."""


def documents() -> list[Path]:
    """Return README and docs."""
    return [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


def examples() -> list[str]:
    """Return each example once, without comments, pipes and what is printed to a file."""
    texts = [path.read_text(encoding="utf-8") for path in documents() if path.name != "recipes.md"]
    lines = [line for text in texts for line in (*COMMAND.findall(text), *INLINE.findall(text))]
    lines += [line for name in command_names() for line in examples_of(name) if line.startswith("tracelane ")]
    lines = [re.split(r"\s+#\s|\s\|\s|\s>\s|\s{2,}", line)[0].strip() for line in lines]
    return [line for line in dict.fromkeys(lines) if line != "tracelane" and not ELSEWHERE.search(line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo under the names that examples use, with the files that they read."""
    folder = tmp_path_factory.mktemp("examples")
    rank0, rank1, log = write_demo(folder / "demo")
    for names, path in ((RANK0, rank0), (RANK1, rank1), (("smi.log", "aiu-smi.log"), log)):
        for name in names:
            shutil.copy(path, folder / name)
    for name in FOLDERS[:-1]:
        shutil.copytree(folder / "demo", folder / name)
    for name in ("query.sql", "questions.sql"):
        (folder / name).write_text("select name, dur from slices limit 3", encoding="utf-8")
    (folder / "limits.toml").write_text('[max]\n"kernels.calls" = 100000\n', encoding="utf-8")
    (folder / "summaries").mkdir()
    (folder / "trace.json.gz").write_bytes(gzip.compress(rank0.read_bytes()))
    (folder / "compiler.log").write_text(
        "~~~~ Ideal/Total Cycles ~~~~\nconvolution_1-opCatConv_fp16 12544\n", encoding="utf-8"
    )
    (folder / "sections").mkdir()
    write_report(folder / "sections").rename(folder / "report.json")
    (folder / "snapshot.pickle").write_bytes(pickled(snapshot_of(training())))
    return folder


def test_there_are_examples() -> None:
    """The pattern finds the examples of each kind."""
    lines = examples()
    assert len(lines) > 100 and "tracelane idle trace.json --step 4" in lines


@pytest.mark.slow
def test_examples_end_well(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each ends with 0, or with 1 where it is a verdict: files that one writes are there for the next."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("baseline.json", "summaries/1.json", "summaries/2.json", "summary.json"):
        assert main(["summary", "trace.json", "--json", "-o", name]) == 0
    wrong = []
    for line in examples():
        words = shlex.split(line)[1:]
        for before, word in pairwise(words):
            if before in ("-o", "--out", "--bundle", "--junit"):
                target = Path(word)
                shutil.rmtree(target) if target.is_dir() and target.name != "demo" else None
                target.unlink() if target.is_file() else None
        code = main([*words, "--no-open"] if words[0] == "demo" and "--no-open" not in words else words)
        said = capsys.readouterr().err.strip()
        if code not in ((0, 1) if words[0] in VERDICTS else (0,)) or "should not have happened" in said:
            wrong.append(f"{line}: {code}: {said[-200:]}")
    assert not wrong, "\n".join(wrong)
