"""From a kernel back to its launch, from a launch on to its kernels: flows first, then what the ids tell."""

from __future__ import annotations

from dataclasses import dataclass

from tracelane.core.base.kineto import ANNOTATIONS, OPS
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.core.trace.arrows import device_work_of_id

from .scene import Refusal

MOST = 1000
"""The most targets that are looked up; the list says when there are more."""


@dataclass(frozen=True)
class Target:
    """A slice that can be gone to, and how it is known: a flow's category, "correlation", "external id", or
    "launch" for one made within the slice.
    """

    id: SliceId
    via: str


def back_from(trace: Trace, identity: SliceId) -> list[Target]:
    """Return what launched a slice, or what its flows come from; Refusal where nothing is known."""
    targets = [
        Target(arrow.source, arrow.category)
        for arrow in trace.flows_in(identity, MOST)
        if arrow.source is not None and arrow.source != identity
    ]
    if not targets:
        links = trace.chain(identity)
        if len(links) > 1 and links[0].role == "kernel" and links[1].via != "enclosing":
            targets = [Target(links[1].id, links[1].via)]
    if not targets:
        raise Refusal("the trace does not say what launched this")
    return _distinct(targets)


def on_from(trace: Trace, identity: SliceId) -> list[Target]:
    """Return what a slice launched, itself or by launches within it, and what its flows lead to; Refusal
    where nothing is known.
    """
    targets = [
        Target(arrow.target, arrow.category)
        for arrow in trace.flows_out(identity, MOST)
        if arrow.target is not None and arrow.target != identity
    ]
    detail = trace.detail(identity)
    if detail is not None and detail.category in OPS | ANNOTATIONS | {"python_function"}:  # through others
        launched = trace.kernels_under(identity)
        positions = [] if launched is None else launched.kernels[:MOST].tolist()
        targets += [Target(trace.slice_id_of(identity.source, position), "launch") for position in positions]
    if not targets:
        targets = [Target(*work) for work in device_work_of_id(trace, identity, MOST)]
    if not targets:
        raise Refusal("the trace does not say that this launched anything")
    return _distinct(targets)


def _distinct(targets: list[Target]) -> list[Target]:
    return list({target.id: target for target in reversed(targets)}.values())[::-1]
