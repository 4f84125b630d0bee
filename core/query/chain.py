"""What launched this: kernel <- launch <- op <- annotation, each link with how it was found."""

from __future__ import annotations

from dataclasses import dataclass

from ..index.store import Index
from ..ingest.lifted import GROUPS
from .flows import flows_in
from .lookup import ancestors

LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async"})
DEVICE = GROUPS["device"] | {"privateuse1_driver"}
RUNTIME = GROUPS["runtime"] - {"overhead", "privateuse1_driver"}
OPS = frozenset({"cpu_op", "Operator", "operator"})
ANNOTATIONS = frozenset({"user_annotation"})


@dataclass(frozen=True)
class ChainLink:
    """One slice of a chain. `via` says how one came here from the link before: "flow", "correlation",
    "external id", "enclosing"; "" for the first.
    """

    role: str  # "kernel", "launch", "op", "annotation", "slice"
    position: int
    via: str


def chain_of(index: Index, position: int) -> list[ChainLink]:
    """Return the chain of a slice from itself outward; alone in the list when nothing leads further."""
    category = _category(index, position)
    role = "slice"
    if category in RUNTIME:
        role = "launch"
    elif category in DEVICE or (category not in OPS | ANNOTATIONS and _launch_flows(index, position)):
        role = "kernel"
    elif category in OPS:
        role = "op"
    elif category in ANNOTATIONS:
        role = "annotation"
    links = [ChainLink(role, position, "")]
    inner: int | None = position
    if role == "kernel":
        launch, via = launch_of(index, position)
        if launch is not None and via == "external id":
            links.append(ChainLink("op", launch, via))
        elif launch is not None:
            links.append(ChainLink("launch", launch, via))
        inner = launch
    if inner is None:
        return links
    around = ancestors(index, inner)
    if not any(link.role == "op" for link in links):
        op = next((p for p in around if _category(index, p) in OPS | ANNOTATIONS), None)
        if op is not None:
            role = "op" if _category(index, op) in OPS else "annotation"
            links.append(ChainLink(role, op, "enclosing"))
    outer = [p for p in around if _category(index, p) in ANNOTATIONS]
    if outer and outer[-1] != links[-1].position:
        links.append(ChainLink("annotation", outer[-1], "enclosing"))
    return links


def launch_of(index: Index, kernel: int) -> tuple[int | None, str]:
    """Return the slice that launched a kernel and how it is known: by "flow", else by "correlation", else
    the op of the same "external id"; (None, "") where the trace does not say.
    """
    correlation = index.lifted("correlation", kernel)
    launches = _launch_flows(index, kernel)
    if launches:
        same = [p for p in launches if correlation and index.lifted("correlation", p) == correlation]
        return (same or launches)[0], "flow"
    if correlation:  # 0 is what devices write for "none"
        for position in index.lifted_positions("correlation", int(correlation)).tolist():
            if position != kernel and _category(index, position) in RUNTIME:
                return position, "correlation"
    external = index.lifted("external_id", kernel)
    if external:
        for position in index.lifted_positions("external_id", int(external)).tolist():
            if position != kernel and _category(index, position) in OPS | ANNOTATIONS:
                return position, "external id"
    return None, ""


def _launch_flows(index: Index, position: int) -> list[int]:
    flows = flows_in(index, position, limit=16)
    return [
        f.source_position
        for f in flows
        if f.category in LAUNCH_FLOWS and f.source_position is not None and f.source_position != position
    ]


def _category(index: Index, position: int) -> str:
    return index.categories[int(index.column("slices.category")[position])]
