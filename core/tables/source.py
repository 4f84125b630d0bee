"""From a kernel to its source: the lines, FX nodes and ops that it was made of, as the compiler says."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from ..base.arrays import sum_of
from .artefacts import Artefacts, KernelOrigin, read_artefacts
from .kernels import kernels
from .metrics import ratio
from .range_table import range_table
from .schema import schema_from
from .scope import Scope
from .table import Table, Tables

SOURCE = schema_from("""
    source: Kernels and their source; keys name; chief name total_ns line code;
    name: text = kernel (is_name), count, total_ns, line: text, code: text, ops: text, nodes: text = FX
    nodes, graphs: text = graph, function: text (detail), files: text (detail), artefact: text = said by
    (detail)
""")
REASONS = schema_from("""
    reasons: Why graphs broke or were compiled again; chief kind graph line reason;
    kind: text = what, graph: text, line: text, reason: text, explanation: text (detail), file: text (detail)
""")
NOTHING = (
    "no artefact of a compiler beside the trace: --artefacts DIR names the folder of TORCH_TRACE, tlparse, "
    "TORCH_COMPILE_DEBUG, or spyre_provenance.json"
)


def analyse_source(scope: Scope, artefacts: str = "") -> Tables:
    """Return the source of the kernels of a scope, and why graphs broke or were compiled again."""
    read = cache(partial(read_artefacts, artefacts, [source.path for source in scope.trace.sources]))
    return Tables(
        scope.text,
        scope.origin,
        {"source": lambda: source_table(scope, read()), "reasons": lambda: reason_table(scope, read())},
    )


def source_table(scope: Scope, artefacts: Artefacts) -> Table:
    """Return a row per kernel that the artefacts know: those of the scope by device time, where a name has
    none by the slices of that name on the host, then those that did not run.
    """
    on_device = kernels(scope)
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int | None]] = []
    met = set[KernelOrigin]()
    known_ns = 0
    for table in (on_device, range_table(scope)):
        names = {str(row["name"]) for row in rows}
        for at, row in enumerate(table.rows()):
            origin = artefacts.origin_of(str(row["name"]))
            if origin is None or row["name"] in names:
                continue
            rows.append(_row(str(row["name"]), int(row["count"]), int(row["total_ns"]), origin))
            jumps.append(table.jump(at) or (0, None))
            met.add(origin)
            known_ns += int(row["total_ns"]) if table is on_device else 0
    for name, origin in artefacts.origins.items():
        if origin not in met:
            rows.append(_row(name, 0, 0, origin))
            jumps.append((0, None))
    device_ns = sum_of(on_device.numbers("total_ns"))
    is_empty = not artefacts.origins and not artefacts.reasons
    return Table.from_rows(
        SOURCE,
        scope.text,
        rows,
        jumps,
        totals={"device_ns": device_ns, "known_ns": known_ns, "known_share": ratio(known_ns, device_ns)},
        notes=(*artefacts.notes, *((NOTHING,) if is_empty else ())),
    )


def _row(name: str, count: int, total_ns: int, origin: KernelOrigin) -> dict[str, Any]:
    lines = origin.lines
    return {
        "name": name,
        "count": count,
        "total_ns": total_ns,
        "line": ", ".join(dict.fromkeys(map(str, lines))),
        "code": " · ".join(dict.fromkeys(one.code for one in lines if one.code)),
        "ops": ", ".join(origin.ops),
        "nodes": ", ".join(origin.nodes),
        "graphs": ", ".join(origin.graphs),
        "function": ", ".join(dict.fromkeys(one.function for one in lines if one.function)),
        "files": ", ".join(dict.fromkeys(one.file for one in lines)),
        "artefact": origin.artefact,
    }


def reason_table(scope: Scope, artefacts: Artefacts) -> Table:
    """Return a row for each reason why a graph broke or was compiled again, in the order of the files."""
    rows = [
        {
            "kind": one.kind,
            "graph": one.graph,
            "line": "" if one.line is None else str(one.line),
            "reason": one.reason,
            "explanation": one.explanation,
            "file": "" if one.line is None else one.line.file,
        }
        for one in artefacts.reasons
    ]
    return Table.from_rows(REASONS, scope.text, rows)
