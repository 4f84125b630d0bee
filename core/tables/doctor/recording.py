"""One file as the doctor's rules see it; everything is computed when first used."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.kineto import OPS, WORK
from ...base.short_names import short_name
from ...index.store import Index
from ...query.launches import Launches
from ...query.lookup import category_mask
from ...trace.devices import is_aiu
from ..device_clocks import DeviceClock, device_clocks
from ..frame import Frame
from ..frame_columns import work_of
from ..scope import Scope
from ..step_choice import Steps, find_steps
from ..untrusted import LostCalls, Untrusted

FIRST = 3
"""So many places are named as evidence."""
CUDA_12, HOPPER = 12_000, 9
"""`cuda_runtime_version` and `computeMajor` from which on a kernel may begin before the one before ends."""
NVIDIA = re.compile(r"NVIDIA|GeForce|Tesla|Quadro|RTX|\b[BGH]+[1-3]00\b")
"""Names of devices; the capability of others means something else."""


@dataclass(frozen=True)
class Exhibit:
    """A place to look at: trace time in ns, an event's ordinal, a byte of the file as it
    is without compression; None where that is not known.
    """

    label: str
    start: int | None = None
    end: int | None = None
    ordinal: int | None = None
    offset: int | None = None


class Recording:
    """One source of a trace."""

    def __init__(self, scope: Scope, source: int) -> None:
        self.scope = replace(scope, source=source)
        self.source = source
        self.index: Index = scope.trace.indexes[source]

    @property
    def envelope(self) -> Mapping[str, Any]:
        """What the file says of itself beside its events."""
        values = self.index.manifest.get("envelope")
        return values if isinstance(values, dict) else {}

    @cached_property
    def is_pytorch(self) -> bool:
        """Whether PyTorch's profiler recorded ops in it."""
        return bool(OPS & set(self.index.categories))

    @cached_property
    def is_aiu(self) -> bool:
        """Whether an AIU's profiler wrote it."""
        return is_aiu(self.index)

    @cached_property
    def may_overlap(self) -> bool:
        """Whether kernels of a stream overlap by right: from CUDA 12 or capability 9.0 on the next one may
        begin before the one before has ended (programmatic dependent launch). XLA does not say which it is:
        its slices have no categories.
        """
        if not self.is_aiu and not WORK & set(self.index.categories):
            return True
        version = self.envelope.get("cuda_runtime_version")
        properties = self.envelope.get("deviceProperties")
        devices = [one for one in properties if isinstance(one, dict)] if isinstance(properties, list) else []
        nvidia = [one.get("computeMajor") for one in devices if NVIDIA.search(str(one.get("name")))]
        return any(
            type(number) is int and number >= least
            for number, least in ((version, CUDA_12), *((major, HOPPER) for major in nvidia))
        )

    @cached_property
    def span(self) -> tuple[int, int]:
        """From the first to the last moment of the file, ns."""
        manifest = self.index.manifest
        return int(manifest.get("start_ns") or 0), int(manifest.get("end_ns") or 0)

    @cached_property
    def work(self) -> Frame:
        """What its devices did."""
        return work_of(self.scope)

    @cached_property
    def timed_work(self) -> Frame:
        """Its device work by stream and start, without what has lost its times."""
        return self.work[~np.isin(self.work.position, self.lost.untimed)].in_order()

    @cached_property
    def lost(self) -> LostCalls:
        """What of its device work is missing, or has no usable times."""
        return LostCalls(self.scope, self.source)

    @cached_property
    def untrusted(self) -> tuple[Untrusted, ...]:
        """The time of its devices that cannot be trusted."""
        return tuple(self.lost.periods())

    @cached_property
    def kernels(self) -> Frame:
        """The part of it that neither copies nor sets memory."""
        return self.timed_work[~self.timed_work.is_type("memory")]

    @cached_property
    def launches(self) -> Launches:
        """The launches of all its device work."""
        return self.scope.trace.launches(self.source)

    @cached_property
    def clocks(self) -> tuple[DeviceClock, ...]:
        """What the times of its devices' work say of their clocks."""
        return device_clocks(self.scope.trace, self.scope.clocks, self.source)

    @cached_property
    def steps(self) -> Steps | None:
        """Its steps, None where there are none."""
        return find_steps(self.scope.trace, self.source, self.scope.clocks)

    def named(self, *texts: str) -> I64:
        """Return the positions of the slices of these names."""
        numbers = [number for text in texts for number in self.index.string_numbers(text)]
        positions: I64 = np.flatnonzero(np.isin(self.index.column("slices.name"), numbers))
        return positions

    def of_categories(self, categories: Container[str]) -> I64:
        """Return the positions of the slices of these categories."""
        return np.flatnonzero(category_mask(self.index, categories)[self.index.column("slices.category")])

    def starts(self, positions: AnyArray) -> I64:
        """Return when slices begin, trace time in ns."""
        return self.scope.starts(self.source, positions)

    def ends(self, positions: AnyArray) -> I64:
        """Return when slices end, trace time in ns."""
        return self.starts(positions) + self.index.duration(np.asarray(positions))

    def name(self, position: int) -> str:
        """Return the name of a slice for a sentence."""
        number = int(self.index.column("slices.name")[position])
        return short_name(self.index.string(number)) or "(blank name)"

    def exhibit(self, label: str, position: int) -> Exhibit:
        """Return a slice as a place to look at."""
        one = np.array([position], np.int64)
        ordinal = int(self.index.column("slices.ordinal")[position])
        return Exhibit(label, int(self.starts(one)[0]), int(self.ends(one)[0]), ordinal)

    def slices(self, label: str, positions: AnyArray | list[int]) -> tuple[Exhibit, ...]:
        """Return the first slices as places to look at, their names behind the label."""
        return tuple(self.exhibit(f"{label}: {self.name(int(at))}", int(at)) for at in positions[:FIRST])
