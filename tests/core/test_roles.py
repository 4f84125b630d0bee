"""What a lane is, a device's or the host's, is decided once: tables, viewer, JSON and SQL say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus, representative
from tests.events import Event, complete, index_of, metadata
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.kineto import GROUPS, RUNTIME
from tracelane.core.base.slice_kinds import SliceKind, slice_kind
from tracelane.core.index.flex import WORK as FLEX_WORK
from tracelane.core.index.format import LaneRole, RowKind
from tracelane.core.query.row_facts import slice_kind_codes
from tracelane.core.sql.query import run_query
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace, open_trace, trace_of
from tracelane.core.trace.devices import devices
from tracelane.core.trace.lane_order import drawn_device_lanes
from tracelane.tui.text.summary import trace_info

SAMPLES = Path(__file__).parent.parent / "samples"
DEVICE, HOST, TELEMETRY, PROFILER = LaneRole.DEVICE, LaneRole.HOST, LaneRole.TELEMETRY, LaneRole.PROFILER


def slice_of(category: str | None, pid: int = 1) -> Event:
    """Return a slice of a category, or without one."""
    event = complete(10, 5, pid=pid)
    return {key: value for key, value in (event | {"cat": category}).items() if value is not None}


@pytest.mark.parametrize(
    ("categories", "labels", "process", "role"),
    [
        (["kernel"], "", "", DEVICE),
        (["kernel", "cpu_op"], "", "python", DEVICE),
        (["gpu_user_annotation"], "", "", DEVICE),
        (["cuda_sync"], "GPU 0", "", DEVICE),
        (["python_function"], "GPU 0", "python3", HOST),
        (["cpu_op", "python_function"], "AIU 3", "", HOST),
        (["mtia_runtime"], "MTIA 17", "MTIA 17", HOST),
        (["overhead"], "GPU 0", "", PROFILER),
        (["overhead", "cuda_runtime"], "", "", HOST),
        (["privateuse1_driver"], "AIU 0", "python", DEVICE),
        (["privateuse1_driver"], "CPU", "python", HOST),
        (["musa_runtime"], "MUSA 1", "", HOST),
        ([None], "GPU 2", "", DEVICE),
        ([None], "", "GPU2", DEVICE),
        ([None], "", "gpu:11", DEVICE),
        ([None], "", "/device:TPU:3", DEVICE),
        ([None], "", "/host:CPU", HOST),
        (["unheard of"], "XPU 1", "", DEVICE),
        ([None], "CPU", "", HOST),
        ([None], "", "GPU Process", HOST),  # of a browser
        ([None], "", "GPU 0 monitor", HOST),
        ([None], "", "device", HOST),
        ([None], "huge image - Google Search", "Renderer", HOST),
        (["devtools.timeline"], "", "GPU Process", HOST),
    ],
)
def test_rules(
    categories: list[str | None], labels: str, process: str, role: LaneRole, tmp_path: Path
) -> None:
    """Categories decide before labels, labels before names, and a name must be a device and its number."""
    events = [slice_of(category) for category in categories]
    events += [metadata("process_labels", labels=labels)] if labels else []
    events += [metadata("process_name", name=process)] if process else []
    trace = trace_of("t.json", index_of(events, tmp_path))
    assert [lane.role for lane in trace.lanes] == [role]


def test_a_vendors_label_needs_its_runtime(tmp_path: Path) -> None:
    """ "MUSA 1" names a device in a file that has calls of MUSA's runtime, and in no other."""
    unknown = [slice_of(None, pid=0), metadata("process_labels", 0, labels="MUSA 1")]
    alone = trace_of("a.json", index_of(unknown, tmp_path / "a"))
    called = trace_of("b.json", index_of([*unknown, slice_of("musa_runtime", pid=9)], tmp_path / "b"))
    assert {lane.pid: lane.role for lane in alone.lanes} == {"0": HOST}
    assert {lane.pid: lane.role for lane in called.lanes} == {"0": DEVICE, "9": HOST}


def plain_role(trace: Trace, number: int, categories: set[str], names: set[str]) -> LaneRole:
    """Return the role of a lane the slow way, from the categories and names of all its slices."""
    lane = trace.lanes[number]
    process = lane.process
    if lane.samples and not lane.slices:
        return TELEMETRY
    if process.pid in ('"Spans"', '"Traces"') and not process.name:
        return PROFILER
    if not any(trace.categories(lane.source)) and any(FLEX_WORK.search(name) for name in names):
        return DEVICE
    if categories & GROUPS["device"]:
        return DEVICE
    host = [category in RUNTIME or category in GROUPS["op"] | GROUPS["python"] for category in categories]
    own = [category in {"overhead", "Trace"} for category in categories]
    if categories and all(own):
        return PROFILER
    if not categories or all(one or other for one, other in zip(host, own)):
        return HOST
    words = process.labels.split() or [
        process.name.rstrip("0123456789") if process.name[-1:].isdigit() else ""
    ]
    return DEVICE if words[0].rstrip(":#") in ("GPU", "AIU", "MTIA") else HOST


TRACES = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*.json*"))


@needs_corpus
@pytest.mark.parametrize("path", representative(TRACES))
def test_everybody_says_the_same_of_every_lane(path: str, corpus_cache: Path) -> None:
    """On real traces the roles are those of the plain rule, and tables, the viewer's device lanes and JSON
    agree on them.
    """
    try:
        trace = open_trace(CORPUS / path, index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    index = trace.indexes[0]
    categories: list[set[str]] = [set() for _ in trace.lanes]
    names: list[set[str]] = [set() for _ in trace.lanes]
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        own = slice(int(row["first"]), int(row["first"] + row["count"]))
        present = set(index.column("slices.category")[own].tolist())
        categories[int(row["lane"])] |= {index.categories[number] for number in present}
        if not any(index.categories):
            names[int(row["lane"])] |= set(index.strings(set(index.column("slices.name")[own].tolist())))
    roles = [lane.role for lane in trace.lanes]
    assert roles == [plain_role(trace, at, *of) for at, of in enumerate(zip(categories, names))]

    ran = {at for at, role in enumerate(roles) if role is DEVICE and trace.lanes[at].slices}
    assert {at for device in devices(trace) for at in device.lanes} == ran
    assert {at for at in drawn_device_lanes(trace) if roles[at] is not TELEMETRY} == {
        at for at, role in enumerate(roles) if role is DEVICE
    }
    in_json = [lane["role"] for process in trace_info(trace)["processes"] for lane in process["lanes"]]
    in_order = [roles[at] for process in trace.processes for at in process.lanes]
    assert in_json == [role.name.lower() for role in in_order]


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("path", ["gpu/hta_a100_resnet_ddp_nccl.json.gz", "aiu/mlp_trace.json"])
def test_kinds_of_slices(path: str, corpus_cache: Path) -> None:
    """Each slice has the kind that its category and name say, in SQL as in the viewer's colours."""
    trace = open_trace(CORPUS / path, index_dir=corpus_cache)
    index = trace.indexes[0]
    numbers = [index.column(f"slices.{key}") for key in ("category", "name")]
    kinds = [list(SliceKind)[code] for code in slice_kind_codes(index, *numbers).tolist()]
    names = index.strings(index.column("slices.name"))
    categories = [index.categories[number] for number in index.column("slices.category").tolist()]
    assert kinds == [slice_kind(category, name) for category, name in zip(categories, names)]
    query = "select slice_kind, count(*) from slices group by 1"
    with run_query(trace, query, "sqlite") as answer:
        assert dict(answer.rows) == {kind: kinds.count(kind) for kind in kinds}


@needs_corpus
def test_a_device_found_by_its_processs_name_has_kernels(tmp_path: Path) -> None:
    """rocprof's exports have neither categories nor labels: what ran on "GPU2" is device work."""
    trace = open_trace(CORPUS / "verdicts" / "rpd_matmul.json.gz", index_dir=tmp_path)
    assert [(device.label, device.number) for device in devices(trace)] == [("GPU2", 2)]


def test_a_trace_of_jax_has_device_work(tmp_path: Path) -> None:
    """XLA names the process of a device "/device:GPU:0": its slices are kernels, which may overlap on an
    H100.
    """
    trace = open_trace(SAMPLES / "jax.trace.json.gz", index_dir=tmp_path)
    assert [(device.label, device.number) for device in devices(trace)] == [("GPU 0", 0)]
    rows = {row["name"]: (row["count"], row["total_ns"]) for row in kernels(Scope(trace)).rows()}
    assert rows["wrapped_tanh"] == (5, 58_306) and len(rows) == 4
    assert not list(analyse_doctor(Scope(trace))["doctor"].rows())


def test_json_has_the_role(tmp_path: Path) -> None:
    """`info --json` says the role of each lane in words."""
    trace = trace_of("t.json", index_of([slice_of("kernel", pid=7)], tmp_path))
    (lane,) = json.loads(json.dumps(trace_info(trace)))["processes"][0]["lanes"]
    assert lane["role"] == "device"
