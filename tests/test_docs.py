"""The documents say what the program does: every command, option and key, and no link leads nowhere."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from tests.scripts import document_script
from tracelane.core.base.errors import IncomparableError, TracelaneError, UnreadableError, UsageError
from tracelane.core.export.forms import FORMS
from tracelane.core.logs.telemetry_tables import COUNTERS, TELEMETRY_KERNELS, TELEMETRY_STEPS
from tracelane.core.python.exporting import WRITERS
from tracelane.core.tables.doctor.doctor import doctor_rules_table
from tracelane.core.tables.findings.judge import rules_table
from tracelane.core.tables.registry import analyses_table
from tracelane.tui.cli import main
from tracelane.tui.cli.help import EXIT_CODES
from tracelane.tui.cli.main import command_names, tracelane
from tracelane.tui.commands.table import COMMANDS as KEYS
from tracelane.tui.commands.table import commands_table, key_text
from tracelane.tui.config import read_config

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
MAX_WORDS = 900
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")
PATH = re.compile(r"`((?:core|tui|tests|docs|bundle|benchmarks|screenshots|src)/[\w./*-]*)`(?!, new)")
MACHINE = re.compile(r"/(?:work|home|Users|root)/[\w.]+")
SUPERLATIVES = re.compile(
    r"\b(blazing\w*|lightning|fastest|best|amazing|seamless\w*|powerful)\b", re.IGNORECASE
)


def _commands() -> dict[str, click.Command]:
    context = click.Context(tracelane)
    return {name: command for name in command_names() if (command := tracelane.get_command(context, name))}


def test_the_readme_is_short() -> None:
    """Nobody has to read more than two pages before the first trace is open."""
    assert len(README.split()) <= MAX_WORDS


def test_the_site_has_every_document() -> None:
    """Each document is a page of `make docs`, with a place in its menu."""
    menu = re.findall(r"[\w.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(menu) == sorted({"README.md": "index.md"}.get(one.name, one.name) for one in DOCUMENTS)


def test_figures_of_the_readme_were_measured() -> None:
    """Each figure with a unit that the README names stands in docs/performance.md, and those of the
    comparison are of its latest measurement.
    """
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for row in document_script("readme_figures").readme_rows(measured).values():
        assert f"\n{row}\n" in README, "run: .venv/bin/python docs/update.py"
    figures = re.findall(r"(\d[\d.,]*) (?:s|ms|MB|GB)\b", README)
    assert figures
    assert set(figures) <= set(re.findall(r"\d[\d.,]*\d", measured))


def test_commands_are_the_code_s() -> None:
    """docs/commands.md has the texts that help has: all commands, options and exit codes."""
    assert document_script("commands_reference").commands_reference() in COMMANDS, (
        "run: .venv/bin/python docs/update.py"
    )


def test_every_command_is_listed() -> None:
    """Each command, and each one inside it, stands in docs/commands.md as it is typed."""
    commands = _commands()
    assert {"view", "ops", "cache"} <= commands.keys()
    for name, command in commands.items():
        assert f"### tracelane {name}\n" in COMMANDS, name
        if isinstance(command, click.Group):
            for inner in command.commands:
                assert f"tracelane {name} {inner}" in COMMANDS, inner


def test_every_option_is_listed() -> None:
    """All options that the help of any command shows are named in docs/commands.md."""
    options: set[str] = set()
    for name, command in _commands().items():
        for parameter in command.params:
            is_option = isinstance(parameter, click.Option) and parameter.opts != ["-h"]
            record = parameter.get_help_record(click.Context(command)) if is_option else None
            for option in re.findall(r"--[a-z-]+", record[0]) if record and record[0] != "--help" else ():
                options.add(option)
                assert re.search(rf"\| `[^`]*{option}\b", COMMANDS), (name, option)
    assert {"--json", "--step", "--where"} <= options


def test_exit_codes_are_the_code_s() -> None:
    """docs/ci.md has all exit codes in one table, and the errors and the command line end with no other."""
    table = document_script("commands_reference").exit_code_table()
    assert table in (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    errors = (TracelaneError, UnreadableError, IncomparableError, UsageError)
    ends = {main.EXIT_FAILED, main.EXIT_USAGE, main.EXIT_INTERRUPTED, main.EXIT_PIPE}
    assert {0, *ends, *(error.exit_code for error in errors)} == set(EXIT_CODES)


@pytest.mark.parametrize("name", ["README.md", "docs/commands.md", "docs/guide.md", "docs/ci.md"])
def test_options_in_documents_exist(name: str) -> None:
    """These documents speak of no option that tracelane does not have."""
    known = {"--help", "--version"}
    for command in _commands().values():
        inner = list(command.commands.values()) if isinstance(command, click.Group) else []
        known |= {option for one in (command, *inner) for p in one.params for option in p.opts}
    text = (ROOT / name).read_text(encoding="utf-8")
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known


def test_rules_are_the_code_s() -> None:
    """The table of findings is that of the code, all rules in its words."""
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert rules_table() in text, "run: .venv/bin/python docs/update.py"


def test_rules_of_the_doctor_are_the_code_s() -> None:
    """The table of the doctor's rules is that of the code."""
    text = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert doctor_rules_table() in text, "run: .venv/bin/python docs/update.py"


def test_analyses_are_the_registry_s() -> None:
    """The table of analyses is that of the registry, all of them in its words."""
    text = (ROOT / "docs" / "analyses.md").read_text(encoding="utf-8")
    assert analyses_table() in text, "run: .venv/bin/python docs/update.py"


def test_columns_of_telemetry_are_listed() -> None:
    """docs/reading.md names the key of every column that the tables of `tracelane telemetry` have."""
    text = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    for schema in (TELEMETRY_STEPS, TELEMETRY_KERNELS, COUNTERS):
        for column in schema.columns:
            assert f"`{column.key}`" in text, (schema.name, column.key)


def test_forms_are_the_code_s() -> None:
    """Wherever a document lists the forms of tables or of whole traces, all of them are there."""
    forms = "|".join(("text", *FORMS))
    for name in ("analyses.md", "sql.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert f"`--format {forms}`" in text, "run: .venv/bin/python docs/update.py"
    written = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in written.splitlines() if line.startswith("| `.")]
    assert {ending for row in rows for ending in re.findall(r"`([.\w]+)`", row)} == set(WRITERS)


def test_settings_are_listed(tmp_path: Path) -> None:
    """The example of docs/keys.md is a file of settings without a fault, and holds each of them."""
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    example = "".join(line[4:] for line in text.splitlines(keepends=True) if line.startswith("    "))
    (tmp_path / "config.toml").write_text(example, encoding="utf-8")
    assert not read_config(tmp_path / "config.toml").complaints
    known = re.findall(r'name == "([\w-]+)"', (ROOT / "tui" / "config.py").read_text(encoding="utf-8"))
    assert set(known) == set(tomllib.loads(example))


def test_key_table_is_the_command_tables() -> None:
    """The keys of docs/keys.md are those of the command table, all of them, in its words."""
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    assert commands_table() in text, "run: .venv/bin/python docs/update.py"
    for entry in KEYS:
        assert all(f"`{key_text(key)}`" in text for key in entry.keys), entry.id


def test_links_and_paths_are_seen() -> None:
    """The two tests below look at something: most documents have links, and many name files."""
    texts = [document.read_text(encoding="utf-8") for document in DOCUMENTS]
    assert sum(bool(LINK.search(text)) for text in texts) > len(texts) / 2
    assert sum(len(PATH.findall(text)) for text in texts) > 50


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link of a document resolves to a file."""
    for target, _ in LINK.findall(document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} -> {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_of_the_project_exist(document: Path) -> None:
    """Every file and folder of the project that a document names in backticks exists."""
    for path in PATH.findall(document.read_text(encoding="utf-8")):
        assert any(ROOT.glob(path.rstrip("/"))), f"{document.name}: {path}"


def test_rooms_are_those_of_the_architecture() -> None:
    """docs/architecture.md has a row for each folder of core and tui, and for no other."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = {
        room
        for names in re.findall(r"^\| (`(?:core|tui)/.*?) \|", text, re.MULTILINE)
        for room in PATH.findall(names)
    }
    folders = {
        str(path.parent.relative_to(ROOT))
        for top in ("core", "tui")
        for path in ROOT.glob(f"{top}/*/__init__.py")
    }
    assert folders == {room for room in rows if not room.endswith(".py")}


def test_rooms_of_tables() -> None:
    """Rooms of core/tables stand in docs/architecture.md in the linter's order; each says what it answers."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("The rooms of `core/tables`")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == ["tracelane.core.tables"])
    assert rows == [layer.split(" | ") for layer in layers]
    for page in (ROOT / "core" / "tables").glob("*/__init__.py"):
        assert len(ast.get_docstring(ast.parse(page.read_text(encoding="utf-8"))) or "") > 100, page


def test_measurements_name_their_version_and_date() -> None:
    """Whoever reads a figure can tell how old it is."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for about in (r"Measured on \d+ \w+ 20\d\d on .*, tracelane \d", r"on \d+ \w+ 20\d\d, tracelane \d"):
        assert re.search(about, text)
    assert re.search(r"Measured in \w+ 20\d\d ", README)


def test_no_paths_of_a_machine() -> None:
    """Nothing in the project names a place on somebody's machine."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    names = listing.stdout.rstrip("\0").split("\0")
    assert "README.md" in names
    for name in names:
        path = ROOT / name
        if (
            path.is_file()
            and path.suffix in {".md", ".py", ".toml", ".txt", ""}
            and name != "tests/test_docs.py"
        ):
            paths = set(MACHINE.findall(path.read_text(encoding="utf-8", errors="replace")))
            assert all(each.startswith("/home/user") for each in paths), (name, paths)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_do_not_boast(document: Path) -> None:
    """The documents tell; they do not praise."""
    assert not SUPERLATIVES.search(document.read_text(encoding="utf-8"))


def test_targets_of_make_are_listed() -> None:
    """CONTRIBUTING.md has every target of make, in the words of `make help`."""
    table = document_script("make_targets").make_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert table in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "run: docs/update.py"
    for name in ("demo", "test-s390x"):
        assert f"`make {name}`" in table


def test_targets_of_make_exist() -> None:
    """Every `make TARGET` in the documents is one."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        named = re.findall(r"(?:^ {4}|`)make ([a-z]+)", document.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(named) <= targets, document.name


def test_hooks_before_a_commit_check_what_make_does() -> None:
    """.pre-commit-config.yaml runs every command of `make check`; it formats where that only looks."""
    rule = re.search(
        r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rule is not None
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8").replace("entry: env ", "entry: ")
    entries = {entry.replace(" -q", "") for entry in re.findall(r"entry: (.*)", hooks)}
    commands = {line.strip().replace("$(BIN)", ".venv/bin") for line in rule[1].splitlines()}
    assert {command.replace(" --check", "") for command in commands} == entries


def test_lines_of_the_changelog_are_short() -> None:
    """No line of CHANGELOG.md is longer than 120 characters."""
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if len(line) > 120]
