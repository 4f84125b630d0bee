"""What continuous integration reads of a check: a JUnit file, and annotations of a workflow on GitHub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.schema import TableSchema, columns_from
from tracelane.core.tables.table import Table


@dataclass(frozen=True)
class CheckResult:
    """One limit: what is held to it, what came out in words, and whether it failed."""

    name: str
    text: str
    failed: bool


LIMITS = TableSchema("limits", "Limits", columns_from("verdict: text, metric: text, result: text"))


def results_table(results: Sequence[CheckResult], scope: str) -> Table:
    """Return a row for each limit."""
    rows = [
        {"verdict": "exceeded" if one.failed else "ok", "metric": one.name, "result": one.text}
        for one in results
    ]
    return Table.from_rows(LIMITS, scope, rows)


def report_results(suite: str, results: Sequence[CheckResult], junit: str | None, github: bool) -> None:
    """Write the JUnit file and print annotations where they are asked for; UnreadableError where the file
    cannot be written.
    """
    if github:
        for result in results:
            if result.failed:
                # The line is a command of the workflow: a line break or :: of a trace must not begin another.
                text = safe(f"{suite}: {result.text}").replace("%", "%25").replace("::", ":\u200b:")
                print_text(f"::error title={suite}::{safe(text)}", error=True)
    if junit is None:
        return
    failures = sum(result.failed for result in results)
    root = ElementTree.Element(
        "testsuite", name=suite, tests=str(len(results)), failures=str(failures), errors="0"
    )
    for result in results:
        case = ElementTree.SubElement(root, "testcase", classname=suite, name=safe(result.name))
        if result.failed:
            ElementTree.SubElement(case, "failure", message=safe(result.text)).text = safe(result.text)
        else:
            ElementTree.SubElement(case, "system-out").text = safe(result.text)
    ElementTree.indent(root)
    try:
        ElementTree.ElementTree(root).write(junit, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise UnreadableError(f"cannot write {junit}: {error.strerror or error}") from error
