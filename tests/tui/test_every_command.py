"""Every command, in every form, answers of every small trace: an answer, or one line that says why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, cycle
from pathlib import Path

import click
import pytest

from tests.corpus import CASES, CORPUS, files, for_files, is_beside, later, needs, traces
from tests.tui.cli_commands import BUG, CODES, ENDLESS, commands
from tests.tui.small_file import small_file
from tracelane.core.python.exporting import WRITERS
from tracelane.core.sql.engines import has_duckdb
from tracelane.core.sql.views import VIEWS
from tracelane.tui.cli.main import main

TRACE, OUT, SUMMARY = "{trace}", "{out}", "{summary}"
NEEDED: dict[str, tuple[str, ...]] = {
    "chain": (TRACE, "--name=."),
    "check": (TRACE, "--max=kernels.calls=1"),
    "collect": (TRACE, f"--out={OUT}"),
    "cut": (TRACE, "--from=+0ns", f"--out={OUT}.json"),
    "diff": (TRACE, TRACE),
    "export": (TRACE, f"--out={OUT}.json"),
    "history": (SUMMARY, SUMMARY),
    "sql": (TRACE, "select * from slices"),
}
"""What a command is given where that is more than the trace."""
OF_NO_TRACE = {"cache list", "cache clear", "completion", "demo", "capture"}
NO_FORMS = {
    *("--help", "--json", "--format", "--decoder", "--engine", "--force", "--fresh", "--wait"),
    *("--columns", "--color", "--no-pager"),
}
"""Options that change no answer, and --format, which comes with all others."""
VALUES: Mapping[str, Sequence[str]] = {
    "--baseline": (TRACE,),
    "--bundle": (f"{OUT}.zip",),
    "--by": ("step", "kernel"),
    "--column": ("arg:stream",),
    "--from": ("+0ns",),
    "--junit": (f"{OUT}.xml",),
    "--lanes": (".",),
    "--metric": ("kernels.calls",),
    "--rank": ("0",),
    "--runs": (".",),
    "--search": ("dur>0",),
    "--skip-first": ("1",),
    "--sort": ("name",),
    "--step": ("nth:1",),
    "--to": ("+1ms",),
    "--where": ("dur>0",),
}
"""Values of options that name none themselves."""
VALUES_OF: Mapping[str, Mapping[str, Sequence[str]]] = {
    "ops": {"--group-by": ("shape", "stack:2", "module", "provider")},
    "kernels": {"--group-by": ("arg:stream",)},
}
FURTHER = {
    "export": [[TRACE, f"--out={OUT}{kind}"] for kind in WRITERS],
    "index": [[TRACE, "--force"]],
    "report": [[TRACE, f"--out={OUT}{kind}"] for kind in (".md", ".html")],
    "sql": [
        [TRACE, f"select * from {view}", f"--engine={engine}", "--format=json"]
        for view in (*VIEWS, "args('stream')")
        for engine in ("sqlite", *(["duckdb"] if has_duckdb() else []))
    ],
}
"""Forms beyond those that options make, by command."""


def forms(name: str, command: click.Command) -> Iterator[list[str]]:
    """Yield command lines: one for each format, and for each value of another option one, in text or JSON in
    turn.
    """
    words = [*name.split(), *NEEDED.get(name, (TRACE,))]
    options = [one for one in command.params if isinstance(one, click.Option)]
    formats = [option.type.choices for option in options if "--format" in option.opts]  # type: ignore[attr-defined]
    turns = cycle((["--format=text"], ["--format=json"]) if formats else ([],))
    yield from ([*words, f"--format={form}"] for form in chain(*formats))
    yield words
    for option in options:
        flag = max(option.opts, key=len)
        if flag in NO_FORMS:
            continue
        values = (
            option.type.choices
            if isinstance(option.type, click.Choice)
            else VALUES_OF.get(name, {}).get(flag, VALUES.get(flag, ()))
        )
        chosen = [flag] if option.is_flag else [f"{flag}={value}" for value in values]
        yield from ([*words, one, *next(turns)] for one in chosen)
    yield from ([*name.split(), *further] for further in FURTHER.get(name, ()))


FORMS = {
    name: list(forms(name, command)) for name, command in commands() if name not in OF_NO_TRACE | ENDLESS
}
Forms = dict[str, list[list[str]]]
SHORT_FORMS: Forms = {
    name: [[*name.split(), *words] for words in (NEEDED.get(name, (TRACE,)), *FURTHER.get(name, ()))]
    for name in FORMS
}
"""Each command as it is, every file that exports and reports may write, and every view of sql."""
EACH_OF = 8
"""A recording is tried with one in so many of the further forms: views of sql alone took half of the time."""


def short_forms(turn: int) -> Forms:
    """Return each command as it is, and of its further forms some in turn."""
    return {name: [first, *more[turn % EACH_OF :: EACH_OF]] for name, (first, *more) in SHORT_FORMS.items()}


def surprises(
    trace: Path, folder: Path, capsys: pytest.CaptureFixture[str], all_forms: Forms
) -> Iterator[str]:
    """Run every form on a trace, over one index; yield what is no answer."""
    summary, index = folder / "summary.json", f"--index-dir={folder / 'index'}"
    main(["summary", str(trace), "--json", f"--out={summary}", index])
    for number, words in enumerate(chain(*all_forms.values())):
        line = [word.format(trace=trace, summary=summary, out=folder / f"out-{number}") for word in words]
        try:
            code = main([*line, *([] if words[0] == "history" else [index])])
        except Exception as error:
            yield f"{' '.join(words)}: raised {error!r}"
            continue
        texts = capsys.readouterr()
        if code not in CODES or any(BUG in text or "Traceback" in text for text in texts):
            yield f"{' '.join(words)}: {code}: {texts.err[-300:]}"


def assert_no_surprise(
    trace: Path, folder: Path, capsys: pytest.CaptureFixture[str], all_forms: Forms = FORMS
) -> None:
    """Fail where a command in some form is no answer."""
    lines = list(surprises(trace, folder, capsys, all_forms))
    assert not lines, "\n".join([trace.name, *lines])


def small_traces() -> list[Path]:
    """Return the small cases and the odd traces: all files in these folders but documents and programs."""
    return [path for path in files("cases/**/*", "odd/**/*") if path.suffix not in (".md", ".py")]


SHARES = 64
"""A small trace is tried with one in so many of the forms: all on each would take a quarter of an hour."""
FIRST = {"empty_array"}
"""What `make test` runs every form on, beside the small file and, in short, a file of each kind."""


@needs(CASES, CORPUS)
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "path",
    [path if path.stem in FIRST else later(path) for path in small_traces()],
    ids=lambda path: path.stem,
)
def test_every_form_on_small_traces(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All small cases and odd traces: each with every command, the forms of which take turns."""
    share = small_traces().index(path)
    some = {
        name: [line for at, line in enumerate(lines, share) if at == share or at % SHARES == 0]
        for name, lines in FORMS.items()
    }
    assert_no_surprise(path, tmp_path, capsys, FORMS if path.stem in FIRST else some)


LARGER = [
    path
    for path in traces("**/*")
    if path.name.endswith((".json", ".gz", ".zip")) and path.parent.name != "odd"
]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@for_files("path", LARGER)
def test_every_command_and_export_on_the_corpus(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All samples, each with every command, and all other traces of the corpus, each with every second one;
    further forms take turns.
    """
    turn = LARGER.index(path)
    commands = [name for at, name in enumerate(SHORT_FORMS) if not is_beside(path) or at % 2 == turn % 2]
    forms = short_forms(turn)
    assert_no_surprise(path, tmp_path, capsys, {name: forms[name] for name in commands})


@pytest.mark.slow
def test_every_form_does_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command answers a sound trace, and each form that it may refuse says so."""
    trace = small_file(tmp_path)
    assert_no_surprise(trace, tmp_path, capsys)
