"""The command that has running processes record, and opens what they wrote."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.output import StatusLine, print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.capture.daemon import SocketHeldError
from tracelane.core.capture.live import PACE, LiveCapture, Outcome, Participant
from tracelane.core.capture.processes import DAEMON, command_line, silent_processes, why_silent
from tracelane.core.capture.protocol import RecordingPlan
from tracelane.core.index.inputs import check_there

from .commands import MS, command_named
from .main import EXIT_FAILED
from .streams import can_draw, take_keyboard
from .trace_options import TraceOptions

TICK_S = 0.1
STEPS_PATIENCE_S = 600.0
"""Steps take as long as they take: a process that records some may write nothing for so long."""


def run_capture(
    options: TraceOptions,
    pids: tuple[int, ...],
    ms: int | None,
    steps: int | None,
    from_step: int | None,
    details: tuple[str, ...],
    timeout: float | None,
    folder: Path,
    no_open: bool,
) -> None:
    if steps is not None and ms is not None:
        raise UsageError("--ms and --steps both say how much is recorded: give one of them")
    if from_step is not None and steps is None:
        raise UsageError("--from-step needs --steps: how many steps are recorded")
    check_there(options.logs)
    options.log_options  # noqa: B018 - wrong ones are said before anything is recorded
    plan = RecordingPlan(ms or MS, steps or 0, from_step or 0, details=tuple(dict.fromkeys(details)))
    patience_s = timeout or (STEPS_PATIENCE_S if plan.steps else PACE.patience_s)
    outcomes = record(LiveCapture(plan, folder, pids, PACE._replace(patience_s=patience_s)))
    paths = [outcome.path for outcome in outcomes if outcome.path is not None]
    for outcome in outcomes:
        if outcome.path is None:
            print_text(f"tracelane: {outcome.pid}: {safe(outcome.why)}", error=True)
    if not paths:
        raise TracelaneError(f"nothing was recorded: {nothing_text(outcomes)}")
    if no_open or not (can_draw() and take_keyboard()):
        for path in paths:
            print_text(safe(str(path)))
        logs = [word for log in options.logs for word in ("--smi", log)]
        print_text(f"open them: tracelane {safe(shlex.join([str(folder), *logs]))}", error=True)
    else:
        view, names = command_named("view"), tuple(map(str, paths))
        click.get_current_context().invoke(view, traces=names, logs=options.logs)
    if len(paths) < len(outcomes):
        click.get_current_context().exit(EXIT_FAILED)


def record(live: LiveCapture) -> list[Outcome]:
    """Return what became of each process; until then say who takes part and what goes on."""
    line, named = StatusLine(), 0
    try:
        with live:
            while not live.is_done:
                live.advance(TICK_S)
                for one in live.participants[named:]:
                    line.clear()
                    print_text(_participant_text(one), error=True)
                named = len(live.participants)
                if line.is_live:
                    line.show(live.text)
            return live.outcomes()
    except SocketHeldError as error:
        command = live.plan.dyno_command(str(live.folder), live.pids)
        instead = f"have it record instead: {command}" if error.is_dynolog else "wait until that has ended"
        raise TracelaneError(f"{error}; {instead}") from None
    finally:
        line.clear()
        if refused := sum(live.daemon.refused.values()):
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in live.daemon.refused.most_common())
            print_text(f"tracelane: {refused:,} messages were not answered: {reasons}", error=True)


def _participant_text(one: Participant) -> str:
    client = one.client
    rank = "" if one.rank is None else f"  rank {one.rank}"
    job = f"  job {client.job}" if client.job else ""
    inside = f"  ({client.own_pid} in its container)" if client.pid not in (0, client.own_pid) else ""
    who = f"process {client.pid or client.own_pid}{inside}{rank}{job}"
    return f"{who}  {safe(command_line(client.pid))}".rstrip()


def nothing_text(outcomes: Sequence[Outcome]) -> str:
    """Return why no process has recorded, as far as that is to be seen."""
    if outcomes:
        return "see above"
    silent = silent_processes(set())
    if not silent:
        return f"no process of yours runs with {DAEMON}=1; start it with this in its environment"
    reasons = (f"process {pid}: {why_silent(pid, PACE.listen_s)}" for pid in silent[:3])
    return "; ".join(reasons) + (f"; and {len(silent) - 3} more" if len(silent) > 3 else "")
