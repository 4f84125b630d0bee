"""The options that lay telemetry logs over a trace: which, how their clocks and devices relate to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.errors import UsageError

from .values import Duration

if TYPE_CHECKING:
    from tracelane.core.logs.overlay import LogOptions

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


@dataclass(frozen=True)
class SmiOptions:
    """What these options said: which logs, and how their clocks and devices relate to the trace's."""

    paths: tuple[str, ...]
    zone: str | None
    lag: float | None
    cards: tuple[str, ...]

    @property
    def is_about_clocks(self) -> bool:
        """Whether anything is said of clocks or devices, which means nothing without a log."""
        return self.zone is not None or self.lag is not None or bool(self.cards)

    @property
    def log_options(self) -> LogOptions:
        """How to lay the logs over a trace; UsageError for what is not ID=PID."""
        from tracelane.core.logs.overlay import LogOptions

        pairs = {}
        for text in self.cards:
            card, equals, pid = text.partition("=")
            if not equals or not card.strip() or not pid.strip():
                raise UsageError(f"--smi-device takes ID=PID, such as 0=0, not {text!r}")
            pairs[card.strip()] = pid.strip()
        return LogOptions(self.zone or "", self.lag, pairs)


def smi_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options; it gets them as one value, `smi`."""

    @wraps(command)
    def with_logs(**values: Any) -> None:
        smi = SmiOptions(*(values.pop(name) for name in ("logs", "log_zone", "lag", "cards")))
        command(smi=smi, **values)

    wrapped: Callable[..., None] = with_logs
    for option in (SMI_DEVICE, SMI_OFFSET, SMI_TZ, SMI):
        wrapped = option(wrapped)
    return wrapped
