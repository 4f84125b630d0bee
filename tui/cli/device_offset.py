"""The option that sets the clocks of devices, by hand or as estimated."""

from __future__ import annotations

import click

DEVICE_OFFSET = click.option(
    "--device-offset",
    "device_offsets",
    metavar="PID=S",
    multiple=True,
    help="Add S seconds to a device's times; PID=auto: as its launches tell; auto: all that are wrong.",
)
