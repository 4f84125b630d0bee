"""A device with work, and why it may be idle: what the first picture knows of frames, without making one."""

from __future__ import annotations

from typing import NamedTuple

from ...trace.devices import Device

GAP_CLASSES = ("host_wait", "kernel_wait", "other")
"""Why nothing runs before a piece of work: it was launched late, hardware between two kernels, unknown."""


class WorkDevice(NamedTuple):
    """A device with work in a frame: its number is that of its label, else of its slices, else its pid."""

    device: Device
    rank: int
    number: int | str

    @property
    def title(self) -> str:
        """What tables call the device: "GPU 0", without a label "device 0"."""
        return self.device.label if self.device.label != "device" else f"device {self.number}"
