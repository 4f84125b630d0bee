"""The command that writes what a performance issue needs."""

from __future__ import annotations

import getpass
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tracelane.core.base.errors import CacheError
from tracelane.core.base.output import print_text, write_new_file
from tracelane.core.base.safe_text import markdown_code, markdown_words, safe
from tracelane.core.export.bundle import Redaction
from tracelane.core.export.bundle import bundle as write_bundle
from tracelane.core.export.report import Example, Printed, example_of, report
from tracelane.core.export.summary_file import summary_json
from tracelane.core.logs.header import nearby_logs
from tracelane.core.logs.overlay import Overlay, excerpt, read_logs
from tracelane.core.logs.stamps import Wall
from tracelane.core.logs.telemetry_tables import NamedRange, describe, ranges_table
from tracelane.core.tables.compare.diff import difference
from tracelane.core.tables.compare.summary import summarise
from tracelane.core.tables.findings.forms import saved_findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.ops import ops
from tracelane.tui.actions.view import first_session, view_of
from tracelane.tui.device_facts import KnownFacts
from tracelane.tui.device_shares import device_facts
from tracelane.tui.read_report import read_report_state
from tracelane.tui.text.diff import compact_tables, side_titles
from tracelane.tui.text.ops_table import ops_text
from tracelane.tui.text.picture import plain_picture
from tracelane.tui.text.telemetry import log_text, steps_text

from .comparisons import raise_incomparable, read_sides, side_names
from .options import check_new
from .trace_options import TraceOptions

PICTURE_WIDTH, PICTURE_HEIGHT = 120, 40
OPS = 30
TOO_LARGE = "the trace has no steps and is too large to come along whole: choose with --from and --to"


def run_report(
    options: TraceOptions, out: Path | None, bundle: Path | None, baseline: str | None, redact: bool
) -> None:
    for path in (out, bundle):
        if path is not None:
            check_new(path)
    sides = () if baseline is None else (baseline,)
    earlier = read_sides(sides, options.of_sides(), options, options.logs)
    scope = options.scope()
    telemetry = Telemetry.of(scope, options)
    example = example_of(scope)
    here = summarise(scope, options.title) if bundle or earlier else None
    named = None if here is None else replace(here, title=side_names(sides, options)[-1])
    result = difference(earlier, named) if earlier and named else None
    text = report(
        scope,
        options.title,
        saved_findings(replace(scope, lanes=None, where=None)),
        Printed(_ops(scope), _picture(scope, example), telemetry.text(example)),
        _read_report(scope),
        None if result is None else (side_titles(result), compact_tables(result)),
    )
    hide = Redaction.of(scope.trace, _this_machine()) if redact else str
    if bundle is None or here is None:
        _write(hide(text), out)
    else:
        texts = {"report.md": hide(text), "summary.json": hide(summary_json(here))}
        logs, hidden = telemetry.lines(example), hide if redact else None
        names = write_bundle(bundle, scope.trace, example, scope.clocks, texts, logs, hidden)
        if out is not None:
            _write(hide(text), out)
        print_text(safe(f"{bundle}: {', '.join(names)}"))
        if not example.label and not any(name.startswith("trace") for name in names):
            print_text(TOO_LARGE)
    if result is not None:
        raise_incomparable(result.reasons)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        print_text(text, end="")
        return
    try:
        write_new_file(out, [text])
    except OSError as error:
        raise CacheError(f"{out} cannot be written: {error.strerror or error}") from error
    print_text(safe(str(out)))


def _read_report(scope: Scope) -> list[str]:
    """Return a line per file: its name, span and what of it was read."""
    return [
        f"{markdown_code(Path(source.path).name)}: {markdown_words(read_report_state([source])[0])}"
        for source in scope.trace.sources
    ]


def _ops(scope: Scope) -> str:
    table = ops(scope)
    return ops_text(table, table.order(table.read_by), OPS)


def _picture(scope: Scope, example: Example) -> str:
    session = first_session(scope.trace, PICTURE_WIDTH)
    viewport = view_of(example.start, example.end, PICTURE_WIDTH)
    session = session._replace(viewport=viewport, clocks=scope.clocks)
    facts = device_facts(Scope(scope.trace, clocks=scope.clocks))
    return plain_picture(
        scope.trace, session, (PICTURE_WIDTH, PICTURE_HEIGHT), known=KnownFacts(facts.states, facts.notes)
    )


class Telemetry(NamedTuple):
    """The logs of a report: a trace with those of its run, and why others beside it were left out."""

    overlay: Overlay | None = None
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, scope: Scope, options: TraceOptions) -> Telemetry:
        """Read the logs named, else those beside the trace; UsageError where one named is of another run."""
        paths = options.logs or nearby_logs(scope.trace)
        if not paths or (not options.logs and Wall(scope.trace).base is None):
            return cls()
        placed, overlay = read_logs(scope.trace, paths, options.log_options, all_match=bool(options.logs))
        return cls(overlay, tuple(f"Left out: {one.refusal}" for one in placed if not one.matches))

    def text(self, example: Example) -> str:
        """Return what was understood of the logs, and whether they cover the example; empty without logs."""
        if self.overlay is None:
            return "\n\n".join(self.left_out)
        logs = [log_text(describe(one.log, one.proposal), {}) for one in self.overlay.placed]
        label = example.label or "the whole"
        table = ranges_table(self.overlay, [NamedRange(label, example.start, example.end)])
        covered = [float(share) for share in table.data["coverage"]]
        verdict = (
            f"The log covers {label} from end to end."
            if covered and min(covered) >= 1
            else f"The log does NOT cover {label} from end to end."
        )
        values = steps_text(table, self.overlay.opening_span[0])
        return "\n\n".join([*logs, *self.left_out, values, verdict])

    def lines(self, example: Example) -> dict[str, bytes]:
        """Return for each log the lines it has of the example, by the file's name in the bundle."""
        if self.overlay is None:
            return {}
        lines = {
            f"telemetry-{number}{_plain_suffix(placed.log.path)}": excerpt(
                self.overlay, placed, example.start, example.end
            )
            for number, placed in enumerate(self.overlay.placed)
        }
        return {name: text for name, text in lines.items() if text}


def _plain_suffix(path: str) -> str:
    """Return the suffix of a file's name where it is one of a few letters, else that of a text."""
    suffix = Path(path).suffix
    return suffix if re.fullmatch(r"\.\w{1,8}", suffix, re.ASCII) else ".txt"


def _this_machine() -> list[str]:
    """Return the names of this host and user: a trace taken here may hold them anywhere."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    host = socket.gethostname()
    return [host, host.partition(".")[0], *([user] if user != "root" else [])]
