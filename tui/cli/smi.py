"""The options that lay telemetry logs over a trace: which, how their clocks and devices relate to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from tracelane.core.base.errors import UsageError

from .values import Duration

if TYPE_CHECKING:
    from tracelane.core.logs.overlay import LogOptions

Wrapped = TypeVar("Wrapped", bound=Callable[..., object])

SMI = click.option(
    "--smi",
    "logs",
    metavar="LOG",
    multiple=True,
    help="An aiu-smi log (text or CSV), or any CSV with a header and times; may be given again.",
)
SMI_TZ = click.option(
    "--smi-tz",
    "log_zone",
    metavar="ZONE",
    help="Time zone of the logs' stamps: Europe/Zurich, -04:00, UTC, local. Else the one that fits.",
)
SMI_OFFSET = click.option(
    "--smi-offset",
    "lag",
    metavar="TIME",
    type=Duration(10**9, -(10**9), 10**9),
    help="Time by which the logs' clock runs ahead of the trace's: 1.5s, 250ms. Else what fits most closely.",
)
SMI_DEVICE = click.option(
    "--smi-device",
    "cards",
    metavar="ID=PID",
    multiple=True,
    help="Which device of a log is which process of the trace; may be given again.",
)


def smi_options(command: Wrapped) -> Wrapped:
    """Give a command the options that say which logs, and how their clocks and devices relate."""
    for option in (SMI_DEVICE, SMI_OFFSET, SMI_TZ, SMI):
        command = option(command)
    return command


def log_options(zone: str | None, lag: float | None, cards: tuple[str, ...]) -> LogOptions:
    """Return what the options say of the logs; UsageError for what is not ID=PID."""
    from tracelane.core.logs.overlay import LogOptions

    pairs = {}
    for text in cards:
        card, equals, pid = text.partition("=")
        if not equals or not card.strip() or not pid.strip():
            raise UsageError(f"--smi-device takes ID=PID, such as 0=0, not {text!r}")
        pairs[card.strip()] = pid.strip()
    return LogOptions(zone or "", lag, pairs)
