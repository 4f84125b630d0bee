"""What notes, messages and findings tell people to type can be typed, and works where it was said."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.core.test_steps import around, passes
from tests.rules.commands import COMMAND, OPTION, known_commands, options_of
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.registry import ANALYSES
from tracelane.tui.cli.main import main


def _notes(capsys: pytest.CaptureFixture[str], command: str, *words: str) -> list[str]:
    """Return what a command says below its tables: as JSON, and as text."""
    if main([command, *words, "--json"]) not in (0, 1):  # it has nothing to say of this trace
        return []
    notes: list[str] = json.loads(capsys.readouterr().out)["notes"]
    main([command, *words])
    return [*notes, *filter(OPTION.search, capsys.readouterr().out.splitlines())]


def _cases() -> list[tuple[str, str]]:
    commands = [*(row.command for row in ANALYSES), "slices", "telemetry"]
    return [(trace, command) for trace in ("demo", "small", "doubtful", "called") for command in commands]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A path by name: the demo, a small trace, one whose steps are doubtful, and one whose have numbers."""
    folder = tmp_path_factory.mktemp("traces")
    doubtful = [*passes(5), *around(5, "it's {}", "user_annotation", 90, 2300)]
    doubtful += around(5, "in the back {}", "user_annotation", 3500, 1500)
    called = [*passes(5), *around(5, "epoch 3 batch {}", "user_annotation")]
    for name, events in (("doubtful", doubtful), ("called", called)):
        (folder / f"{name}.json").write_text(json.dumps(events), encoding="utf-8")
    paths = {name: str(folder / f"{name}.json") for name in ("doubtful", "called")}
    return {**paths, "demo": str(write_demo(folder / "demo")[0]), "small": str(small_file(folder))}


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "command"), _cases())
def test_what_notes_suggest_works(
    trace: str, command: str, traces: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each option in a note is one of the command that says it, or that it names; with a value that is no
    placeholder it is accepted, on the trace of which it was said.
    """
    words = [traces[trace], "--index-dir", str(Path(traces[trace]).parent / "index")]
    options = options_of(known_commands()[command])
    for note in _notes(capsys, command, *words):
        others = [other for other, _ in COMMAND.findall(note)]
        for name, value in OPTION.findall(COMMAND.sub("", note)):
            if others and name not in options:
                assert any(name in options_of(known_commands()[other]) for other in others), note
                continue
            assert name in options, note
            if options[name].is_flag or value.isupper() or (not value and name == "--limit"):
                continue
            given = shlex.split(value)[0] if value else ""
            assert main([command, *words, name, given]) in (0, 1), f"{note!r}: {capsys.readouterr().err}"
            capsys.readouterr()
        for other, rest in COMMAND.findall(note):
            placed = [words[0] if word in ("TRACE", "A", "B") else word for word in shlex.split(rest)]
            placed += [] if words[0] in placed else [words[0]]
            assert main([other, *placed, *words[1:]]) in (0, 1), f"{note!r}: {capsys.readouterr().err}"
            capsys.readouterr()
