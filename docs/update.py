"""Bring the tables that the code holds into the documents, each between its two markers, and write what
type checkers see of the methods that Python has for the analyses; what other packages add is left out.
"""
# ruff: noqa: E402

from __future__ import annotations

import re
from pathlib import Path

from tracelane.core.base import installed

installed.added = lambda group: {}  # before the registry asks it

from commands_reference import commands_reference, exit_code_table
from make_targets import make_targets
from python_methods import methods_text
from readme_figures import readme_rows, with_rows

from tracelane.core.export.forms import FORMS
from tracelane.core.tables.doctor.doctor import doctor_rules_table
from tracelane.core.tables.findings.judge import rules_table
from tracelane.core.tables.registry import analyses_table
from tracelane.tui.commands.table import commands_table

METHODS = Path(__file__).resolve().parent.parent / "core" / "python" / "analyses.pyi"
README = Path(__file__).resolve().parent.parent / "README.md"
PERFORMANCE = Path(__file__).resolve().parent / "performance.md"
KEYS = Path(__file__).resolve().parent / "keys.md"
BEGIN = "<!-- keys: written by docs/update.py from tui/commands -->\n"
END = "<!-- end of keys -->"
COMMANDS = Path(__file__).resolve().parent / "commands.md"
BEGIN_COMMANDS = "<!-- commands: written by docs/update.py from tui/cli -->\n"
END_COMMANDS = "<!-- end of commands -->"
CI = Path(__file__).resolve().parent / "ci.md"
BEGIN_EXIT = "<!-- exit codes: written by docs/update.py from tui/cli/help.py -->\n"
END_EXIT = "<!-- end of exit codes -->"
FINDINGS = Path(__file__).resolve().parent / "findings.md"
BEGIN_RULES = "<!-- rules: written by docs/update.py from core/tables/findings -->\n"
END_RULES = "<!-- end of rules -->"
ANALYSES = Path(__file__).resolve().parent / "analyses.md"
BEGIN_ANALYSES = "<!-- analyses: written by docs/update.py from core/tables/registry.py -->\n"
END_ANALYSES = "<!-- end of analyses -->"
SQL = Path(__file__).resolve().parent / "sql.md"
FORM_LIST = re.compile(r"`--format text\|[a-z|]+`")
CONTRIBUTING = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"
MAKEFILE = Path(__file__).resolve().parent.parent / "Makefile"
BEGIN_TARGETS = "<!-- targets: written by docs/update.py from the Makefile -->\n"
END_TARGETS = "<!-- end of targets -->"
DOCTOR = Path(__file__).resolve().parent / "doctor.md"
BEGIN_DOCTOR = "<!-- rules: written by docs/update.py from core/tables/doctor -->\n"


def updated(text: str, table: str, begin: str, end: str) -> str:
    """Return a document with the table of today between its markers."""
    before, rest = text.split(begin, 1)
    return before + begin + table + end + rest.split(end, 1)[1]


if __name__ == "__main__":
    for path, table, begin, end in (
        (KEYS, commands_table(), BEGIN, END),
        (COMMANDS, commands_reference(), BEGIN_COMMANDS, END_COMMANDS),
        (CI, exit_code_table(), BEGIN_EXIT, END_EXIT),
        (FINDINGS, rules_table(), BEGIN_RULES, END_RULES),
        (DOCTOR, doctor_rules_table(), BEGIN_DOCTOR, END_RULES),
        (ANALYSES, analyses_table(), BEGIN_ANALYSES, END_ANALYSES),
        (CONTRIBUTING, make_targets(MAKEFILE.read_text(encoding="utf-8")), BEGIN_TARGETS, END_TARGETS),
    ):
        path.write_text(updated(path.read_text(encoding="utf-8"), table, begin, end), encoding="utf-8")
    for path in (ANALYSES, SQL):
        text = FORM_LIST.sub(f"`--format {'|'.join(('text', *FORMS))}`", path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
    rows = readme_rows(PERFORMANCE.read_text(encoding="utf-8"))
    README.write_text(with_rows(README.read_text(encoding="utf-8"), rows), encoding="utf-8")
    METHODS.write_text(methods_text(), encoding="utf-8")
