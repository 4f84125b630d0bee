"""Who writes traces, a row each: by which signs a tool is known, and what its lanes and names are.

A row is data. To add a producer, write one: what its files say that no other's do, the names of its processes
and lanes as they stand there, and for each what it is. What nobody's row says is told by categories and
labels (core/index/roles.py): many rows only tell who wrote a file.

A *derived* lane repeats or sums up what other lanes show (CANN's Overlap Analysis, XLA's Steps and Modules):
it is drawn, and counted as work nowhere. Names of *waits* are tasks in which a device waits for a peer or an
event; *parts* are tasks that a collective is made of, which its own slice shows as a whole.

Sources of the names: CANN, "msprof export" and torch_npu's trace_view.json; XLA, xplane_schema.cc and
trace_container.cc; rocprof, its tblextr.py; TensorFlow, timeline.py and device_tracer.cc, which saves each
kernel under its stream and under "stream:all"; Proton, TraceDataDump.cpp; RPD, rpd2tracing.py; nsys2json,
nsys2json.py; nsys-ai, export.py; Kineto, output_json.cpp; viztracer, report_builder.py; ONNX Runtime,
profiler.cc; MindSpore, ascend_timeline_generator.py; Node.js, its doc/api/tracing.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray, concatenated_ranges, distinct
from ..base.cached_per_object import cached_per_object
from ..base.kineto import MEMORY_RECORD, NODE
from .flex import is_flex
from .format import LaneRole, RowKind
from .store import Index

NEVER = r"(?!)"
"""Patterns are texts: of most rows none is ever asked, and to compile all would take longer than to look."""


class LaneSign(NamedTuple):
    """Lanes by how their process and they themselves are called, and their slices where that tells, and what
    they are.
    """

    process: str
    lane: str
    role: LaneRole
    slices: str = ""  # the names of all of its slices, in any case
    holding: str = ""  # … and of one at least
    steps: bool = False  # whether its slices are the steps
    collectives: bool = False  # whether its slices are whole collectives


Where = Literal["process", "lane", "category", "name", "beside"]
"""Texts of a file that tell its producer: names of processes and lanes, or their ids where they have none;
categories; the texts that the file has first, of which most are names of slices; what stands beside the
events, each as `key: value`.
"""


class Producer(NamedTuple):
    """A tool that writes traces. The first of its `lanes` that fits a lane decides what the lane is."""

    name: str
    signs: Mapping[Where, str] = MappingProxyType({})
    """It wrote what has one text at least for each of these. What stands beside the events is not known yet
    when lanes get their roles: a row with `lanes` does without.
    """
    lanes: tuple[LaneSign, ...] = ()
    is_told_by_names: Callable[[Index], bool] | None = None
    """In place of signs, for a tool whose files hold nothing but slices."""
    waits: str = NEVER
    peer_waits: str = NEVER
    """Waits that are for a peer within a collective; all others are for an event."""
    tasks: str = NEVER
    """Slices around all that a thread does, of whose own time nothing more is known."""
    parts: str = NEVER
    joined: str = NEVER
    """Processes whose lanes belong to the device of another one, where the file has just one device."""
    step_argument: str = ""
    """What arguments of slices that are steps have, and no others."""
    is_of_memory: bool = False
    """Whether what takes time is not in its files: their slices are stacks of allocations."""


def _is_onnx_runtime(index: Index) -> bool:
    """Tell whether a file is a session's profile: a session's own slices, nodes, and with a device calls and
    kernels, and no other category.
    """
    if not {"Session", NODE, "Api", "Kernel"} >= set(filter(None, index.categories)) >= {"Session"}:
        return False
    names = index.strings(distinct(index.column("slices.name")))
    return any(name in ("session_initialization", "model_run") for name in names)


def _is_mindspore(index: Index) -> bool:
    """Tell whether a file is a timeline of MindSpore's: most names of its first slices are those of its
    operators or streams.
    """
    names = index.strings(distinct(index.column("slices.name")[:MAX_NAMES]))
    known = sum(1 for name in names if re.search(OPERATOR, name) or re.search(STREAMS, name))
    return 2 * known > len(names)


OPERATOR, STREAMS = r"^(?:\w*+/)*+[^\WA-Z]*+[A-Z]\w*+-op\d+$", r"^stream_\d+_parallel_\d+$"
"""What MindSpore calls operators, and the time in which streams work beside each other."""
XLA_DEVICE = r"/device:(?=GPU|TPU)"
"""What stands before a device and its number in XLA's names of processes."""
HCCL = r"^(HCCL|Communication)$"
HCCL_WHOLE = r"^Communication Kernel|\bCommunication$"
"""Lanes of whole collectives."""
HCCL_TASK = (
    r"(NOTIFY|EVENT)[_ ]?(WAIT|RECORD|RESET)|WRITE[_ ]?VALUE|SDMA|RDMA\w*"
    r"|Reduce[_ ]?Inline|REDUCE_ASYNC(_V\d)?"
)
"""Tasks that a collective is made of, which copies are, too; CANN wrote their names with _ before 8.0, and
with blanks since.
"""
PROFILING = r"^PROFILING_(EN|DIS)ABLE$"
"""Tasks that switch the profiler on and off, on a stream of their own."""
CANN = "CANN (msprof)"
CANN_WAITS = r"(?i)^(NOTIFY|EVENT)[_ ]?WAIT([_ ]SQE)?$"
CANN_PEER_WAITS = r"(?i)^NOTIFY[_ ]?WAIT([_ ]SQE)?$"
KINETO = "PyTorch profiler (Kineto)"
TF_TIMELINE = "TensorFlow (timeline)"
SNAPSHOT_DEVICE = r"^memory of device \d+$"
"""What `core/read/snapshot.py` calls a device: the stacks on its streams are of allocations, no work."""
ALLOCATION_EVENT, RELEASE_EVENT = "MemoryAllocation", "MemoryDeallocation"
"""The names of the slices, of no length, that allocators of XLA and TensorFlow record."""
HOST, DEVICE, DERIVED = LaneRole.HOST, LaneRole.DEVICE, LaneRole.DERIVED
PRODUCERS = (
    Producer(
        CANN,
        {"process": r"^(Ascend Hardware|HCCL)$", "lane": HCCL_WHOLE},
        (
            LaneSign(r"^Ascend Hardware$", r"^Step Trace", DERIVED, steps=True),
            LaneSign(
                r"^Ascend Hardware$",
                r"",
                DERIVED,
                slices=rf"^({HCCL_TASK}|MEMCPY_ASYNC)$",
                holding=r"^NOTIFY",
            ),
            LaneSign(r"^Ascend Hardware$", r"", DERIVED, slices=PROFILING),
            LaneSign(r"^Ascend Hardware$", r"", DEVICE),
            LaneSign(HCCL, HCCL_WHOLE, DEVICE, collectives=True),
            LaneSign(HCCL, r"", DERIVED),
            LaneSign(r"^Overlap Analysis$", r"", DERIVED),
        ),
        waits=CANN_WAITS,
        peer_waits=CANN_PEER_WAITS,
        parts=rf"(?i)^({HCCL_TASK})([_ ]SQE)?$",
        joined=HCCL,
    ),
    Producer(
        CANN,
        {"process": r"^Ascend Hardware$"},
        (
            LaneSign(r"^Ascend Hardware$", r"^Step Trace", DERIVED, steps=True),
            LaneSign(r"^Ascend Hardware$", r"", DERIVED, slices=PROFILING),
            LaneSign(r"^Ascend Hardware$", r"", DEVICE),
            LaneSign(r"^Overlap Analysis$", r"", DERIVED),
        ),
        waits=CANN_WAITS,
        peer_waits=CANN_PEER_WAITS,
    ),
    Producer(
        CANN,
        {"process": r"^Task Scheduler$", "lane": r"^Stream \d+$"},
        (
            LaneSign(r"^Task Scheduler$", r"", DERIVED, slices=PROFILING),
            LaneSign(r"^Task Scheduler$", r"", DEVICE),
        ),
        waits=CANN_WAITS,
        peer_waits=CANN_PEER_WAITS,
    ),
    Producer(
        CANN,
        {"process": r"^Step Trace$", "category": r"^Iteration Time$"},
        (LaneSign(r"^Step Trace$", r"", DERIVED, steps=True),),
    ),
    Producer(
        "XLA (TPU)",
        {"process": r"^/device:TPU:\d+"},
        (
            LaneSign(r"^/device:TPU:", r"^XLA Ops$", DEVICE),
            LaneSign(r"^/device:TPU:", r"^Steps$", DERIVED, steps=True),
            LaneSign(r"^/device:TPU:", r"", DERIVED),
        ),
    ),
    Producer(
        "XLA (GPU)",
        {"process": r"^/device:GPU:\d+(?![/\d])"},
        (
            LaneSign(r"^/device:GPU:", r"^Stream #", DEVICE),
            LaneSign(r"^/device:GPU:", r"^Steps$", DERIVED, steps=True),
            LaneSign(r"^/device:GPU:", r"", DERIVED),
        ),
    ),
    Producer("XLA (host)", {"process": r"^/host:(CPU|[A-Z]+_[A-Z]+)$"}, step_argument="step_num"),
    Producer(
        TF_TIMELINE,
        {"process": r"/(device:GPU|gpu):\d+/stream:all Compute$"},
        (
            LaneSign(r"/stream:all Compute$|/memcpy Compute$", r"", DEVICE),
            LaneSign(r"/stream:\d+ Compute$", r"", DERIVED),
        ),
        joined=r"/memcpy Compute$",
    ),
    Producer(TF_TIMELINE, {"process": r"(?i)^/job:\S*/(device:)?[cg]pu:\d+ Compute$"}),
    Producer(
        "rocprof",
        {"process": r"^CPU (HIP|HSA) API$"},
        (LaneSign(r"^COPY$", r"", DEVICE), LaneSign(r"^CPU (HIP|HSA) API$|^Markers and Ranges$", r"", HOST)),
        joined=r"^COPY$",
    ),
    Producer(
        "PyTorch (memory snapshot)",
        {"process": SNAPSHOT_DEVICE},
        (LaneSign(SNAPSHOT_DEVICE, r"^(stream \d+|allocated before)$", DERIVED),),
        is_of_memory=True,
    ),
    Producer("FLEX (AIU job trace)", is_told_by_names=is_flex),
    Producer(
        "Proton (Triton)",
        {"process": r"^(Trace|Proton)$", "lane": r"^(GPU|Graph:) Stream \d+$"},
        (
            LaneSign(r"", r"^GPU Stream \d+$", DEVICE),
            LaneSign(r"", r"^Graph: Stream \d+$", DERIVED),
            LaneSign(r"", r"^CPU Thread \d+$", HOST),
        ),
    ),
    Producer(
        "nsys2json (Nsight Systems)",
        {"process": r"^Device \d+$", "lane": r"^(Stream|NVTX Kernel Thread) \d+$"},
        (
            LaneSign(r"^Device \d+$", r"^Stream \d+$", DEVICE),
            LaneSign(r"^Device \d+$", r"^NVTX Kernel Thread \d+$", DERIVED),
            LaneSign(r"^Device \d+$", r"^(NVTX|CUDA API) Thread \d+$", HOST),
        ),
    ),
    Producer(
        "nsys-ai (Nsight Systems)",
        {"category": r"^gpu_kernel$", "lane": r"^(NVTX Lvl \d+|Stream \d+ \(\w+\))$"},
    ),
    Producer("RPD (rocmProfileData)", {"process": r"^GPU\d+$", "lane": r"^Hip \d+$"}),
    Producer("aiu-trace-analyzer", {"beside": r"^otherData: .*Acelyzer"}),
    *(
        Producer(f"{KINETO}, {device}", {"beside": r"^schemaVersion: ", "category": sign})
        for device, sign in (
            ("PrivateUse1", r"^privateuse1_"),
            ("XPU", r"^xpu_"),
            ("MTIA", r"^mtia_"),
            ("HPU", r"^hpu_op$"),
        )
    ),
    Producer(
        f"{KINETO}, ROCm",
        {"beside": r"^(roctracer|rocprofiler-sdk|hip_driver|hip_runtime)_version: |^deviceProperties: .*AMD"},
    ),
    Producer(
        f"{KINETO}, ROCm",
        {
            "beside": r"^schemaVersion: ",
            "category": r"^(cuda|hip)_(runtime|driver)$",
            "name": r"^hip[A-Z]",
        },
    ),
    Producer(
        f"{KINETO}, CUDA",
        {
            "beside": r"^(schemaVersion|cupti_version): ",
            "category": r"^(cuda_(runtime|driver)|Runtime)$",
        },
    ),
    Producer(
        KINETO,
        {
            "beside": r"^schemaVersion: ",
            "category": r"^(cpu_op|cpu_instant_event|user_annotation|Operator|Trace|[Kk]ernel)$",
        },
    ),
    Producer("Dynamo (chromium events)", {"category": r"^dynamo_timed$"}),
    Producer("ONNX Runtime", is_told_by_names=_is_onnx_runtime),
    Producer(
        "MindSpore (timeline)",
        is_told_by_names=_is_mindspore,
        lanes=(
            LaneSign(r"", r"", DERIVED, slices=STREAMS),
            LaneSign(r"", r"", DEVICE, slices=OPERATOR),
        ),
    ),
    Producer(
        "clang (-ftime-trace)",
        {"process": r"^clang", "name": r"^(Source|Frontend|Backend|OptModule)$"},
        (LaneSign(r"", r"", DERIVED, slices=r"^Total "),),
    ),
    Producer(
        "LLVM (time trace)",  # of rustc, lld, opt and others
        {"name": r"^(OptModule|OptFunction|RunPass|RunLoopPass|ExecuteCompiler|ExecuteLinker)$"},
        (LaneSign(r"", r"", DERIVED, slices=r"^Total "),),
    ),
    Producer(
        "Bazel",
        {
            "category": r"^(general information|build phase marker|action processing)$",
            "lane": r"^(Critical Path|Main Thread)$",
        },
        (LaneSign(r"", r"^Critical Path$", DERIVED),),
        waits=r"^Parallel Evaluator evaluation$|^Waiting |^acquiring ",
    ),
    Producer("Node.js", {"category": r"^node($|[,.])"}),
    Producer("Node.js", {"category": r"^v8($|[,.])", "lane": r"^JavaScriptMainThread$"}),
    Producer(
        "viztracer",
        {"beside": r"^viztracer_metadata: "},
        waits=r"^(time\.sleep|select\.\w+(\.\w+)?|(_thread|_multiprocessing)\.\w+\.(acquire|__enter__)"
        r"|posix\.(waitpid|wait4|poll)|_queue\.SimpleQueue\.get)$",
    ),
    Producer(
        "Chrome",
        {"category": r"devtools\.timeline|^(blink|toplevel|renderer_host)\b|^cc,"},
        tasks=r"^((\w+::|ThreadPool_|TaskScheduler )?RunTask|toplevel|Looper\.dispatch(Message)?"
        r"|ThreadController(Impl)?::(Task|DoWork))$"
        r"|ProcessTaskFromWorkQueue$",
    ),
)
"""The known ones; a file is of the first whose signs it has."""
MAX_NAMES = 4096
"""Of so many texts signs are looked for among names: calls into a runtime are among the first."""
MAX_VALUE = 1000
"""Characters of a value beside the events that signs are looked for in."""


@cached_per_object()
def producer_of(index: Index) -> Producer | None:
    """Return who wrote a file, None where no row of PRODUCERS says."""
    texts: dict[Where, list[str]] = {}
    return next((one for one in PRODUCERS if _has_signs(index, one, texts)), None)


def is_of_memory(index: Index) -> bool:
    """Tell whether a file is a snapshot of memory: no slice of it says what takes time."""
    producer = producer_of(index)
    return producer is not None and producer.is_of_memory


def named_events(index: Index) -> U32:
    """Return the numbers of the names that records of allocators of XLA and TensorFlow have."""
    numbers = [n for name in (ALLOCATION_EVENT, RELEASE_EVENT) for n in index.string_numbers(name)]
    return np.array(numbers, np.uint32)


def may_replay(index: Index) -> bool:
    """Tell whether a file has names that calls which replay graphs hold."""
    return any(index.string_numbers(text, inside=True, limit=1) for text in ("Graph", "CommandBuffer"))


def has_memory_records(index: Index) -> bool:
    """Tell whether a file has records of allocators. Names are looked for only where there are events that
    may have them: this is asked before the first picture.
    """
    may_have = {
        MEMORY_RECORD: index.length("instants.start"),
        ALLOCATION_EVENT: index.length("promoted.allocator.position"),
    }
    return any(count and index.string_numbers(name, limit=1) for name, count in may_have.items())


def _has_signs(index: Index, producer: Producer, texts: dict[Where, list[str]]) -> bool:
    """Tell whether a file has the signs of a producer; `texts` are those looked at before."""
    if producer.is_told_by_names is not None:
        return producer.is_told_by_names(index)
    for where, pattern in producer.signs.items():
        if where == "name" and not _may_be_called(index, pattern):
            return False
        if where not in texts:
            texts[where] = list(_texts(index, where))
        if not any(map(re.compile(pattern).search, texts[where])):
            return False
    return True


def _texts(index: Index, where: Where) -> Iterator[str]:
    if where == "process":
        yield from _called(index, index.processes["pid"], index.processes["name"])
    elif where == "lane":
        yield from _called(index, index.lanes["tid"], index.lanes["name"])
    elif where == "category":
        yield from index.categories
    elif where == "name":
        yield from index.strings(np.arange(min(MAX_NAMES, index.length("strings.offset") - 1)))
    else:
        yield from (f"{key}: {str(value)[:MAX_VALUE]}" for key, value in index.envelope.items())


def _may_be_called(index: Index, pattern: str) -> bool:
    """Tell whether a name may fit a pattern, in which nothing but `^` and `$` depends on what is around it:
    as all texts stand one after another, none does where what is between these is nowhere among them.
    """
    offsets = index.column("strings.offset")
    if not len(offsets):
        return False
    end = int(offsets[min(MAX_NAMES, len(offsets) - 1)])
    text = index.column("strings.blob")[:end].tobytes().decode("utf-8", "replace")
    return re.search(pattern.strip("^$"), text) is not None


def _called(index: Index, ids: AnyArray, names: AnyArray) -> list[str]:
    """Return names, and where there is none an id without its quotes."""
    texts = zip(index.strings(names), index.strings(ids))
    return [name or text.strip('"') for name, text in texts]


def lane_signs(index: Index, producer: Producer) -> dict[int, LaneSign]:
    """Return the sign of each lane of a file that its producer tells of, by the number of the lane."""
    if not producer.lanes:
        return {}
    processes = _called(index, index.processes["pid"], index.processes["name"])
    lanes = _called(index, index.lanes["tid"], index.lanes["name"])
    signs = {}
    for number, (process, lane) in enumerate(zip(index.lanes["process"].tolist(), lanes)):
        for sign in producer.lanes:
            if (
                re.search(sign.process, processes[process])
                and re.search(sign.lane, lane)
                and (not sign.slices or _holds_such(index, number, sign))
            ):
                signs[number] = sign
                break
    return signs


def _holds_such(index: Index, lane: int, sign: LaneSign) -> bool:
    """Tell whether a lane has slices, all of whose names are as its sign says."""
    first, count = int(index.lanes["first_row"][lane]), int(index.lanes["rows"][lane])
    rows = index.rows[first : first + count]
    rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["count"] > 0)]
    names = index.column("slices.name")
    parts = [names[int(row["first"]) : int(row["first"] + row["count"])] for row in rows]
    texts = index.strings(distinct(np.concatenate(parts))) if parts else []
    slices, holding = (re.compile(text, re.IGNORECASE).search for text in (sign.slices, sign.holding))
    return bool(texts) and all(map(slices, texts)) and any(map(holding, texts))


def steps_lanes(index: Index) -> list[int]:
    """Return the lanes whose slices are the steps, by what their producer says."""
    producer = producer_of(index)
    signs = {} if producer is None else lane_signs(index, producer)
    return [number for number, sign in signs.items() if sign.steps and index.lanes["slices"][number]]


def whole_collectives(index: Index) -> I64:
    """Return the positions of the slices of lanes that show whole collectives, ascending."""
    producer = producer_of(index)
    if producer is None or not any(sign.collectives for sign in producer.lanes):
        return np.empty(0, np.int64)
    lanes = [number for number, sign in lane_signs(index, producer).items() if sign.collectives]
    rows = index.rows[np.isin(index.rows["lane"], lanes) & (index.rows["kind"] == RowKind.SLICES)]
    first, count = rows["first"].astype(np.int64), rows["count"].astype(np.int64)
    return np.sort(concatenated_ranges(first, count))


def step_argument(index: Index) -> str:
    """Return which argument tells steps from other slices, "" where the producer has none."""
    producer = producer_of(index)
    return "" if producer is None else producer.step_argument


def waits(index: Index) -> U32:
    """Return the numbers of the names of tasks in which a device waits for a peer or an event, ascending."""
    producer = producer_of(index)
    return _names(index, NEVER if producer is None else producer.waits)


def peer_waits(index: Index) -> U32:
    """Return the numbers of the names of waits that are for a peer within a collective."""
    producer = producer_of(index)
    return _names(index, NEVER if producer is None else producer.peer_waits)


def parts_of_collectives(index: Index) -> U32:
    """Return the numbers of the names of tasks that are no work of their own, ascending: waits and, where a
    lane shows whole collectives, what those are made of.
    """
    producer = producer_of(index)
    if producer is None:
        return _names(index, NEVER)
    signs = lane_signs(index, producer).items()
    has_whole = any(sign.collectives and index.lanes["slices"][number] for number, sign in signs)
    return _names(index, producer.parts if has_whole else producer.waits)


def _names(index: Index, pattern: str) -> U32:
    if pattern == NEVER:
        return np.empty(0, np.uint32)
    numbers = distinct(index.column("slices.name"))
    texts, search = zip(numbers.tolist(), index.strings(numbers)), re.compile(pattern).search
    return np.array([number for number, text in texts if search(text)], np.uint32)
