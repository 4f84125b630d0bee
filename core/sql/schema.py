"""The views that queries see: their columns, what these are computed from, and the tables that they need.

In the expressions `b` is a table of the index's own numbers, one per source.
"""

from __future__ import annotations

from collections.abc import Mapping

ALIASES: Mapping[str, str] = {"start_ns": "ts", "duration_ns": "dur", "self_ns": "self"}
"""The names that times have in every other form -> those of before, which queries may go on using."""
SLICE_COLUMNS = {
    "id": ("CAST(b.ordinal AS BIGINT) + {base}", ()),
    "name": ("n.text", ("names",)),
    "short_name": ("n.short", ("names",)),
    "category": ("c.text", ("categories",)),
    "slice_kind": ("f.text", ("slice_kinds",)),
    "ts": ("b.start + r.clock", ("rows",)),
    "dur": ("CAST(b.duration AS BIGINT)", ()),
    "self": ("CAST(b.self AS BIGINT)", ()),
    "depth": ("r.depth", ("rows",)),
    "lane": ("r.lane", ("rows",)),
    "process": ("r.process", ("rows",)),
    "pid": ("r.pid", ("rows",)),
    "tid": ("r.tid", ("rows",)),
    "role": ("r.role", ("rows",)),
    "step": ("s.label", ("steps",)),
    "rank": ("{rank}", ()),
}
SLICE_VIEW = SLICE_COLUMNS | {alias: SLICE_COLUMNS[key] for alias, key in ALIASES.items()}
"""Column of `slices` -> its SQL expression, and the small tables that this needs."""
JOINS = {
    "names": "LEFT JOIN names_{source} n ON n.number = b.name",
    "categories": "LEFT JOIN categories_{source} c ON c.number = b.category",
    "slice_kinds": "LEFT JOIN slice_kinds_{source} f ON f.number = b.slice_kind",
    "rows": "LEFT JOIN rows_{source} r ON r.number = b.row",
    "steps": "LEFT JOIN step_labels s ON s.number = b.step",
}
_USES: Mapping[str, tuple[str, ...]] = {
    "id": ("ordinal",),
    "name": ("name",),
    "short_name": ("name",),
    "category": ("category",),
    "slice_kind": ("slice_kind",),
    "ts": ("start", "row"),
    "dur": ("duration",),
    "self": ("self",),
    **dict.fromkeys(("depth", "lane", "process", "pid", "tid", "role"), ("row",)),
    "step": ("step",),
    "rank": (),
}
USES = {**_USES, **{alias: _USES[key] for alias, key in ALIASES.items()}}
"""Column of `slices` -> the arrays that it is computed from."""
KERNEL_VIEW = {
    "device": "d.text",
    "stream": "t.text",
    "type": "k.text",
    "op_id": "nullif(b.op, -1) + {base}",
    "op": "po.text",
    "module": "pm.text",
    "annotation": "pa.text",
}
OP_VIEW = {key: f"b.{key}" for key in ("device_self_ns", "device_total_ns", "device_busy_ns")}
LAUNCH_VIEW = {"kernel": "CAST(b.kernel AS BIGINT) + {base}", "delay": "b.delay", "via": "v.text"}
_TIMED = {
    "counters": ("id", "name", "series", "ts", "value", "process", "pid", "rank"),
    "steps": ("number", "step", "ts", "dur"),
    "device_states": ("rank", "device", "state", "cause", "ts", "dur"),
    "untrusted": ("rank", "device", "trouble", "ts", "dur", "count"),
}
ALIASED = {
    view: tuple(alias for alias, key in ALIASES.items() if key in keys) for view, keys in _TIMED.items()
}
"""View that is no view of slices -> its columns that have two names."""
VIEWS: Mapping[str, tuple[str, ...]] = {
    "slices": tuple(SLICE_VIEW),
    "ops": (*SLICE_VIEW, *OP_VIEW),
    "kernels": (*SLICE_VIEW, *KERNEL_VIEW),
    "launches": (*SLICE_VIEW, *LAUNCH_VIEW),
    "flows": ("category", "source", "target"),
    **{view: (*keys, *ALIASED[view]) for view, keys in _TIMED.items()},
}
"""The views and their columns; besides there is args('key') with the columns `id` and `value`, and
arg(id, 'key')."""
BY_NUMBER = (
    "names",
    "categories",
    "slice_kinds",
    "rows",
    "step_labels",
    "devices",
    "streams",
    "types",
    "vias",
    "op_names",
    "module_names",
    "annotation_names",
    "names_of_states",
    "causes",
    "arg ",
    "troubles",
)
"""Tables that are looked up by a column of KEYS begin with these."""
KEYS = ("number", "arg id")
