"""The option that sets the clocks of devices, by hand or as estimated."""

from __future__ import annotations

import click

DEVICE_OFFSET = click.option(
    "--device-offset",
    "device_offsets",
    metavar="PID=TIME",
    multiple=True,
    help="Shift a device's times: 0=-250ms; PID=auto: by what its launches show; auto: all wrong clocks.",
)
