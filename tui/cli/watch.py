"""The command that says a line of each capture that becomes complete in a folder, while a program runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

import click

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.heap import trim_heap
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text, safe
from tracelane.core.base.threads import collect_often
from tracelane.core.base.units import format_ns, format_share
from tracelane.core.index.arrivals import Arrivals
from tracelane.core.index.captures import Capture, ranks_text
from tracelane.core.read.urls import is_url
from tracelane.core.tables.compare.comparable import CANNOT
from tracelane.core.tables.compare.compare import UNKNOWN, WITHIN
from tracelane.core.tables.compare.diff import MetricChange, difference
from tracelane.core.tables.compare.summary import Summary, metrics_named, summarise
from tracelane.core.tables.metric_groups import metric_group_of
from tracelane.core.tables.worker import findings_by_worker

from .comparisons import read_sides
from .completing import DEFAULT_METRICS
from .limits import CheckResult, Limit, check_unit, read_limits
from .main import EXIT_FAILED
from .trace_options import TraceOptions

POLL_S = 1.0
SCHEMA = 1
SIGNALLED = 128
"""A shell's exit code of a program that a signal has ended, less the signal."""


class Report(NamedTuple):
    """What is said of a capture: metrics, the verdict's short form, what changed, the limits held to it."""

    capture: Capture
    steps: int | None = None
    step_ns: float | None = None
    busy: float | None = None
    verdict: str = ""
    changes: tuple[MetricChange, ...] = ()
    results: tuple[CheckResult, ...] = ()
    error: str = ""

    @property
    def is_kept(self) -> bool:
        return all(result.is_kept for result in self.results)

    @property
    def text(self) -> str:
        """One line: when, what, changes beyond noise, limits that are broken."""
        ranks = f"ranks {ranks_text(self.capture.ranks)}" if self.capture.ranks else ""
        name = Path(self.capture.members[0].path).name if len(self.capture.members) == 1 else ""
        parts = [self.capture.when, ranks or name or f"{len(self.capture.members)} files"]
        if self.error:
            return safe("  ".join([*parts, f"not read: {self.error}"]))
        steps = f"{self.steps:,} steps" if self.steps != 1 else "1 step"
        parts += [] if not self.steps else [steps]
        parts += [] if self.step_ns is None else [f"step {format_ns(self.step_ns)}"]
        parts += [] if self.busy is None else [f"busy {format_share(self.busy)}"]
        parts += [self.verdict or "nothing stands out"]
        chief = [one for one in self.changes if one.metric.name in DEFAULT_METRICS]
        parts += [f"{one.metric.name} {one.relative:+.1%} ({one.verdict})" for one in chief if one.relative]
        parts += [f"LIMIT {result.text}" for result in self.results if not result.is_kept]
        return safe("  ".join(parts))

    @property
    def json(self) -> str:
        """The same as one line of JSON, with all changes beyond noise and all limits."""
        value: dict[str, Any] = {
            "schema": SCHEMA,
            "capture": self.capture.when,
            "files": [str(member.path) for member in self.capture.members],
            "ranks": list(self.capture.ranks),
            "steps": self.steps,
            "step_ns": self.step_ns,
            "busy_share": self.busy,
            "verdict": self.verdict,
            "changes": [
                {"metric": one.metric.name, "relative": one.relative, "verdict": one.verdict}
                for one in self.changes
            ],
            "limits": [{"metric": one.name, "result": one.text, "kept": one.is_kept} for one in self.results],
            "error": self.error,
        }
        return json_text(value)


class Judge(NamedTuple):
    """What each capture is held to, and how it is opened."""

    options: TraceOptions
    limits: tuple[Limit, ...] = ()
    earlier: tuple[Summary, ...] = ()

    def report(self, capture: Capture) -> Report:
        """Open a capture and say what it comes to; what cannot be read is said, too."""
        paths = tuple(str(member.path) for member in capture.members)
        try:
            return self._report(capture, replace(self.options, traces=paths))
        except UsageError as error:  # a limit that means nothing for this metric
            return Report(capture, error=str(error), results=(CheckResult("limits", str(error), CANNOT),))
        except (TracelaneError, OSError) as error:  # deleted, rotated, or no trace after all
            return Report(capture, error=str(error))
        except Exception as error:  # a fault of ours must not end the program that runs
            return Report(capture, error=f"this should not have happened: {type(error).__name__}: {error}")
        finally:
            trim_heap()()  # a command that ends keeps memory to its end: this one goes on for days

    def _report(self, capture: Capture, options: TraceOptions) -> Report:
        scope = options.scope()
        try:
            summary = summarise(scope, options.title)
            metrics = metrics_named(scope, [limit.metric for limit in self.limits], summary)
            for limit in self.limits:
                check_unit(limit.metric, limit.typed, metrics[limit.metric].unit)
            leading = findings_by_worker(scope).leading
            changes = difference(list(self.earlier), summary).metrics.values() if self.earlier else ()
            return Report(
                capture,
                int(_value(summary, "step.count") or 0),
                _value(summary, "step.length.median"),
                _busy(summary),
                "" if leading is None else leading.as_leading.short or leading.as_leading.title,
                tuple(one for one in changes if _is_beyond_noise(one)),
                tuple(limit.result(metrics[limit.metric]) for limit in self.limits),
            )
        finally:
            scope.trace.close()


def _value(summary: Summary, name: str) -> float | None:
    metric = summary.metrics.get(name)
    return None if metric is None or metric.value is None else float(metric.value)


def _busy(summary: Summary) -> float | None:
    """Return the share of the time in which devices are busy; without devices, of the steps the host."""
    if share := _value(summary, "device.busy_share"):
        return share
    busy, length = _value(summary, "step.cpu_busy.total"), _value(summary, "step.length.total")
    return busy / length if busy is not None and length else None


def _is_beyond_noise(change: MetricChange) -> bool:
    return bool(change.change) and change.verdict not in (UNKNOWN, CANNOT, WITHIN)


class Program:
    """A program that runs meanwhile: it has the terminal, and gets the signals that are sent to us."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it; UsageError where it cannot be."""
        self._before = {number: signal.signal(number, self._hand_on) for number in HANDED_ON}
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        try:
            self._process = subprocess.Popen(list(command))
        except OSError as error:
            self.__exit__()
            raise UsageError(f"cannot run {command[0]}: {error.strerror or error}") from None
        for number in self._early:
            self._process.send_signal(number)

    def _hand_on(self, number: int, _: FrameType | None) -> None:
        if number in FROM_TERMINAL and _is_in_foreground():
            return  # the terminal has sent it to the program, too
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    @property
    def exit_code(self) -> int:
        """What a shell says of how it ended."""
        code = 0 if self._process is None else self._process.wait()
        return code if code >= 0 else SIGNALLED - code

    def wait(self, seconds: float) -> None:
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
HANDED_ON = (*FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def _is_in_foreground() -> bool:
    """Tell whether the terminal sends its signals to this process and those that it has started."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


def run_watch(
    options: TraceOptions,
    folder: str,
    command: tuple[str, ...],
    against: tuple[str, ...],
    file: str | None,
    as_json: bool,
    from_start: bool,
    count: int | None,
) -> None:
    if command and count is not None:
        raise UsageError("--count ends without a program; with one it is the program's end that counts")
    limits = () if file is None else tuple(read_limits(Path(file)))
    for limit in limits:
        metric_group_of(limit.metric)  # said before anything runs
    judge = Judge(options, limits, tuple(read_sides(against, options)))
    arrivals = Arrivals(folder)
    if not (is_url(folder) or os.path.exists(folder)):  # a program may make it, and a name may be misspelt
        print_text(f"tracelane: {safe(folder)} is not there yet", error=True)
    if not from_start:
        arrivals.skip_present()
    is_kept, said = True, 0

    def say(report: Report) -> None:
        nonlocal is_kept, said
        is_kept, said = is_kept and report.is_kept, said + 1
        try:
            print_text(report.json if as_json else report.text, error=bool(command))
        except OSError:  # nobody reads it: the program goes on, and its limits count
            if not command:
                raise

    collect_often()  # what one capture leaves is garbage before the next
    code = _watch(arrivals, judge, Program(command) if command else None, say, lambda: said == count)
    if code or not is_kept:
        click.get_current_context().exit(code or EXIT_FAILED)


def _watch(
    arrivals: Arrivals,
    judge: Judge,
    program: Program | None,
    say: Callable[[Report], None],
    is_enough: Callable[[], bool],
) -> int:
    """Say of each capture what it comes to until a program has ended, or enough was said; return the exit
    code of the program.
    """
    if program is None:
        while True:
            for capture in arrivals.look().captures:
                say(judge.report(capture))
                if is_enough():
                    return 0
            time.sleep(POLL_S)
    with program:
        while True:
            is_over = program.has_ended  # before the look: what it has written last is seen
            arrived = arrivals.look(is_over)
            for capture in arrived.captures:
                say(judge.report(capture))
            if is_over:
                for one in arrived.awaited:
                    print_text(f"tracelane: {safe(one.text)}", error=True)
                return program.exit_code
            program.wait(POLL_S)
