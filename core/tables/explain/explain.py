"""Explanations of names in a trace, a line for each with its source."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ...base.held import held_by_name
from ...trace import Trace
from ...trace.devices import is_aiu

SPYRE_GUIDE = "kineto-spyre user guide"
SPYRE_PLUGIN = "torch-spyre's profiler"
CUDA_RUNTIME = "CUDA and HIP APIs"
CUDA_DRIVER = "CUDA driver API"
HIP = "HIP runtime API"
CUPTI = "CUPTI and Kineto"
DYNAMO = "torch.compiler docs"
TORCH = "PyTorch's API"
INDUCTOR = "TorchInductor's sources"


class Explanation(NamedTuple):
    """A pattern for whole names in any case, what slices of such names do, and who says so."""

    pattern: str
    line: str
    source: str
    aiu: bool = False  # means this on an AIU only


TABLE = (
    Explanation(
        "aiuLaunchControlBlocks", "starts control blocks (kernels, copies) on the device", SPYRE_GUIDE
    ),
    Explanation(
        "aiuLaunchComputeStream",
        "starts a stream of control blocks and waits until they are done",
        SPYRE_GUIDE,
    ),
    Explanation("aiuInitGraph", "sets up a sendnn graph that is to run on the device", SPYRE_GUIDE),
    Explanation("aiuCompileGraph", "compiles the graph, as part of a sendnn operation", SPYRE_GUIDE),
    Explanation("aiuGraphExecution", "runs the whole graph, that is all its supernodes", SPYRE_GUIDE),
    Explanation(
        "aiuLaunchSuperNode", "starts a supernode: a unit made of several operations' nodes", SPYRE_GUIDE
    ),
    Explanation(
        "aiuSuperNodeExecution",
        "runs a supernode on the device; without autopilot every node is one",
        SPYRE_GUIDE,
    ),
    Explanation("aiuNodeCompute", "computes one node of the graph, on the CPU or on the AIU", SPYRE_GUIDE),
    Explanation(
        "aiuDataConvert", "converts data between formats, such as float16 and the AIU's sen_fp16", SPYRE_GUIDE
    ),
    Explanation("aiuMalloc", "allocates memory on the device", SPYRE_GUIDE),
    Explanation("aiuResizeTensorAllocation", "changes the size of a tensor's memory", SPYRE_GUIDE),
    Explanation(
        "aiuCreateVirtualAddresses", "makes the virtual addresses that memory is managed by", SPYRE_GUIDE
    ),
    Explanation("aiuInitScheduler", "sets up the scheduler that runs the graph", SPYRE_GUIDE),
    Explanation("aiuLaunchScheduleCompute", "starts a computation that was scheduled", SPYRE_GUIDE),
    Explanation("aiuScheduleWait", "waits until what was scheduled is done", SPYRE_GUIDE),
    Explanation("aiuPrepareDMAs", "prepares transfers by DMA", SPYRE_GUIDE),
    Explanation(
        "aiuPrepareAndSyncRDMA",
        "prepares transfers by RDMA and agrees on them with the other cards",
        SPYRE_GUIDE,
    ),
    Explanation("aiuClearCache", "empties the device's scratchpad", SPYRE_GUIDE),
    Explanation("aiuPreloadCache", "loads data into the device's scratchpad ahead of its use", SPYRE_GUIDE),
    Explanation(
        "aiuRDMABarrier[123]",
        "waits until all cards have come to this barrier (several AIUs only)",
        SPYRE_GUIDE,
    ),
    Explanation(
        "aiuPostRDMAKeys", "tells the other cards the keys to its memory (several AIUs only)", SPYRE_GUIDE
    ),
    Explanation(
        "aiuFetchRDMAKeys", "gets the keys to the other cards' memory (several AIUs only)", SPYRE_GUIDE
    ),
    Explanation(
        "aiuUpdateRDMACBs", "brings the control blocks for RDMA up to date (several AIUs only)", SPYRE_GUIDE
    ),
    Explanation(
        "aiuCheckRDMADeadlock",
        "looks for RDMA transfers that wait for each other (FLEX_HDMA_CHECK_FOR_DEADLOCK)",
        SPYRE_GUIDE,
    ),
    Explanation("aiuFileTransferDtoF", "writes data of the device to a file", SPYRE_GUIDE),
    Explanation("aiuFileTransferMtoF", "writes data of the host's memory to a file", SPYRE_GUIDE),
    Explanation("aiuFileTransferFtoD", "reads data from a file to the device", SPYRE_GUIDE),
    Explanation("aiuFileTransferFtoM", "reads data from a file to the host's memory", SPYRE_GUIDE),
    Explanation("aiuDataTransferDtoH", "copies data from the device to the host", SPYRE_GUIDE),
    Explanation("aiuDataTransferHtoD", "copies data from the host to the device", SPYRE_GUIDE),
    Explanation("aiuClockCalibration", "the profiler relates the device's clock to the host's", SPYRE_GUIDE),
    Explanation(
        "aiuLaunchDMIControlBlocks", "starts control blocks that copy from host to device", SPYRE_PLUGIN
    ),
    Explanation(
        "aiuLaunchDMOControlBlocks", "starts control blocks that copy from device to host", SPYRE_PLUGIN
    ),
    Explanation(r"aiuCommsColl\w+Setup", "sets up a collective over several cards", SPYRE_PLUGIN),
    Explanation(r"aiuCommsColl\w+", "a collective over several cards, as the host sees it", SPYRE_PLUGIN),
    Explanation("aiuCommsWorkSchedWait", "waits for a collective's schedule", SPYRE_PLUGIN),
    Explanation(
        r"aiuComms\w+", "a part of spyre-comms, the library for collectives, on the host", SPYRE_PLUGIN
    ),
    Explanation(
        r"Unknown CBID \d+",
        "a call of the AIU runtime that this version of the profiler has no name for",
        SPYRE_PLUGIN,
    ),
    Explanation(
        r"Memset \(Device\)|Memory \(Allocation\)", "memory is allocated on the AIU", SPYRE_GUIDE, aiu=True
    ),
    Explanation(r"Memory \(Release\)", "memory of the AIU is freed", SPYRE_GUIDE, aiu=True),
    Explanation(
        r"Memcpy \(HtoD\)", "data goes from the host's memory to the AIU (DMI)", SPYRE_GUIDE, aiu=True
    ),
    Explanation(
        r"Memcpy \(DtoH\)", "data goes from the AIU to the host's memory (DMO)", SPYRE_GUIDE, aiu=True
    ),
    Explanation(
        r"Memcpy \(DtoD\)", "data goes from AIU to AIU by way of the host's memory", SPYRE_GUIDE, aiu=True
    ),
    Explanation(r"Memcpy \(PtoP\)", "data goes straight from AIU to AIU", SPYRE_GUIDE, aiu=True),
    Explanation(
        "(?:cuda|hip)(?:Ext)?LaunchKernel(?:ExC)?(?:_ptsz)?",
        "queues a kernel and returns: the kernel runs later",
        CUDA_RUNTIME,
    ),
    Explanation(
        "(?:cuda|hip)GraphLaunch", "replays a captured graph: one call starts all its kernels", CUDA_RUNTIME
    ),
    Explanation(
        r"(?:cuda|hip)GraphInstantiate\w*",
        "makes a captured graph ready to be replayed: costly, done once",
        CUDA_RUNTIME,
    ),
    Explanation(
        "(?:cuda|hip)Stream(?:Begin|End)Capture",
        "records what is queued into a graph instead of running it",
        CUDA_RUNTIME,
    ),
    Explanation(
        r"(?:cuda|hip)StreamIsCapturing|(?:cuda|hip)StreamGetCaptureInfo\w*",
        "asks if a graph is being recorded",
        CUDA_RUNTIME,
    ),
    Explanation("(?:cuda|hip)DeviceSynchronize", "the host waits for all work of the device", CUDA_RUNTIME),
    Explanation(
        "(?:cuda|hip)StreamSynchronize",
        "the host waits for all work of one stream, as .item() and .cpu() make it",
        CUDA_RUNTIME,
    ),
    Explanation("(?:cuda|hip)EventSynchronize", "the host waits until an event is reached", CUDA_RUNTIME),
    Explanation(
        "(?:cuda|hip)StreamWaitEvent",
        "a stream waits for an event of another; the host does not",
        CUDA_RUNTIME,
    ),
    Explanation(
        "(?:cuda|hip)EventRecord(?:WithFlags)?",
        "puts a mark into a stream that others can wait for",
        CUDA_RUNTIME,
    ),
    Explanation("(?:cuda|hip)EventQuery", "asks whether an event was reached, without waiting", CUDA_RUNTIME),
    Explanation("(?:cuda|hip)EventElapsedTime", "asks for the time between two events", CUDA_RUNTIME),
    Explanation(
        "(?:cuda|hip)MemcpyAsync",
        "queues a copy; with pageable host memory it may wait all the same",
        CUDA_RUNTIME,
    ),
    Explanation("(?:cuda|hip)Memcpy(?:WithStream)?", "copies and waits until that is done", CUDA_RUNTIME),
    Explanation("(?:cuda|hip)MemsetAsync", "queues filling memory with a value", CUDA_RUNTIME),
    Explanation(
        "(?:cuda|hip)Malloc(?:Async)?",
        "asks the driver for device memory: costly, PyTorch keeps what it has",
        CUDA_RUNTIME,
    ),
    Explanation(
        "(?:cuda|hip)Free(?:Async)?", "gives device memory back; may wait for the device", CUDA_RUNTIME
    ),
    Explanation(
        "(?:cuda|hip)Host(?:Alloc|Malloc|Register)",
        "gets page-locked host memory: costly, copies from it are faster",
        CUDA_RUNTIME,
    ),
    Explanation(
        r"(?:cuda|hip)OccupancyMaxActiveBlocksPerMultiprocessor\w*",
        "asks how many blocks fit at once, before a kernel whose shape adapts (GEMM, convolution)",
        CUDA_RUNTIME,
    ),
    Explanation(
        "(?:cuda|hip)FuncSetAttribute", "sets a kernel's limits, such as its shared memory", CUDA_RUNTIME
    ),
    Explanation(
        "(?:cuda|hip)FuncGetAttributes", "asks for a kernel's properties, such as its registers", CUDA_RUNTIME
    ),
    Explanation("(?:cuda|hip)PointerGetAttributes?", "asks whose memory an address is", CUDA_RUNTIME),
    Explanation(
        r"(?:cuda|hip)(?:GetDeviceProperties\w*|DeviceGetAttribute)",
        "asks for the device's properties",
        CUDA_RUNTIME,
    ),
    Explanation(
        "(?:cuda|hip)(?:PeekAtLastError|GetLastError)", "asks whether a call before it failed", CUDA_RUNTIME
    ),
    Explanation(
        "(?:cuda|hip)ThreadExchangeStreamCaptureMode",
        "sets which calls are allowed while a graph is recorded",
        CUDA_RUNTIME,
    ),
    Explanation(
        "cuLaunchKernel(?:Ex)?",
        "queues a kernel of a loaded module, as Triton and newer libraries do",
        CUDA_DRIVER,
    ),
    Explanation(
        "hip(?:Ext)?ModuleLaunchKernel", "queues a kernel of a loaded module, as Triton and libraries do", HIP
    ),
    Explanation("Activity Buffer Request", "the profiler gets memory for its own records", CUPTI),
    Explanation("Buffer Flush", "the profiler writes its records out", CUPTI),
    Explanation("Instrumentation", "the profiler prepares a module for measuring", CUPTI),
    Explanation("Lazy Function Loading", "a kernel's code is loaded at its first launch", CUPTI),
    Explanation("Command Buffer Full", "the launch waits because the device's queue is full", CUPTI),
    Explanation(
        "(?:Context|Stream|Event) Sync", "a wait for the device, as the device's side records it", CUPTI
    ),
    Explanation(
        "Torch-Compiled Region: .*",
        "runs compiled code (frame id / compile id); one in another: graph break or disabled region",
        DYNAMO,
    ),
    Explanation("TorchDynamo Cache Lookup", "Dynamo checks guards to find compiled code for a frame", DYNAMO),
    Explanation(
        "Pregraph bytecode", "what Dynamo's rewritten bytecode does before it calls the graph", DYNAMO
    ),
    Explanation(
        "AOTDispatcher Runtime Wrapper Prologue",
        "AOTAutograd prepares the inputs before it calls the compiled graph",
        DYNAMO,
    ),
    Explanation("CompiledFunction", "AOTAutograd's forward graph, with autograd around it", DYNAMO),
    Explanation("CompiledFunctionBackward", "AOTAutograd's backward graph", DYNAMO),
    Explanation(
        r"_compile\.compile_inner \(dynamo_timed\)|entire_frame_compile",
        "compiles one Python frame, from its bytecode to code that runs",
        DYNAMO,
    ),
    Explanation(
        r"compile_attempt_\d+(?: \(dynamo_timed\))?",
        "one try to compile a frame; Dynamo restarts after some graph breaks",
        DYNAMO,
    ),
    Explanation(
        r"bytecode_tracing \(dynamo_timed\)", "Dynamo goes through the bytecode and builds the graph", DYNAMO
    ),
    Explanation(
        r"build_guards \(dynamo_timed\)",
        "makes the checks under which the compiled code may be used again",
        DYNAMO,
    ),
    Explanation(
        r"OutputGraph\.call_user_compiler \(dynamo_timed\)|backend_compile",
        "Dynamo hands the graph to the back end",
        DYNAMO,
    ),
    Explanation(
        r"create_aot_dispatcher_function(?: \(dynamo_timed\))?",
        "AOTAutograd traces forward and backward",
        DYNAMO,
    ),
    Explanation(r"aot_\w+(?: \(dynamo_timed\))?", "a step of AOTAutograd's tracing", DYNAMO),
    Explanation(
        r"min_cut_rematerialization_partition(?: \(dynamo_timed\))?",
        "decides what the forward keeps and what the backward computes again",
        DYNAMO,
    ),
    Explanation(
        r"(?:backward\._backward_impl \(dynamo_timed\)|entire_backward_compile)",
        "compiles a backward graph at its first use",
        DYNAMO,
    ),
    Explanation(
        "## Call CompiledFxGraph .* ##",
        "calls the code that Inductor wrote for a graph, named by the graph's hash",
        INDUCTOR,
    ),
    Explanation(
        r"triton_poi_\w+",
        "Inductor's Triton kernel: pointwise operations fused, their names in its own",
        INDUCTOR,
    ),
    Explanation(
        r"triton_red_\w+", "Inductor's Triton kernel: a reduction that loops over its input", INDUCTOR
    ),
    Explanation(
        r"triton_per_\w+",
        "Inductor's Triton kernel: a persistent reduction, its input held at once",
        INDUCTOR,
    ),
    Explanation(
        r"triton_tem_\w+", "Inductor's Triton kernel from a template, such as a matrix product", INDUCTOR
    ),
    Explanation(
        r"triton_for_\w+", "Inductor's Triton kernel: several lists of tensors at once (foreach)", INDUCTOR
    ),
    Explanation(
        r"(?:.*/)?sdsc_\w+(?:/bundle\.mlir)?",
        "a kernel that Inductor had made for Spyre, its operations in its name",
        INDUCTOR,
    ),
    Explanation(
        r"_recursive_(?:pre|post)_grad_passes \(dynamo_timed\)|pass\..*",
        "Inductor's passes over the graph",
        INDUCTOR,
    ),
    Explanation(
        r"_recursive_joint_graph_passes \(dynamo_timed\)",
        "passes over forward and backward together",
        INDUCTOR,
    ),
    Explanation(
        r"(?:compile_fx_inner|fx_codegen_and_compile)(?: \(dynamo_timed\))?|inductor_compile",
        "Inductor turns a graph into code",
        INDUCTOR,
    ),
    Explanation(
        r"GraphLowering\.\S+(?: \(dynamo_timed\))?",
        "Inductor lowers the graph to its own operations and writes code",
        INDUCTOR,
    ),
    Explanation(
        r"Scheduler\.\S+ \(dynamo_timed\)", "Inductor decides what is fused, and writes the kernels", INDUCTOR
    ),
    Explanation(r"compile_file(?: \(dynamo_timed\))?", "the C++ compiler builds a generated file", INDUCTOR),
    Explanation(
        r"PyCodeCache\.\S+ \(dynamo_timed\)",
        "loads the generated module, and waits for kernels still being built",
        INDUCTOR,
    ),
    Explanation(
        r"async_compile\.\S+(?: \(dynamo_timed\))?",
        "waits for kernels that are compiled in other processes",
        INDUCTOR,
    ),
    Explanation(r"extern_kernels\.\w+", "a library's operator that Inductor calls as it is", INDUCTOR),
    Explanation(
        "aten::addmm", "matrix product plus a bias in one call; mm and add do the same in two", TORCH
    ),
    Explanation("aten::mm", "product of two matrices, without a bias (addmm) or a batch (bmm)", TORCH),
    Explanation("aten::bmm", "product of two batches of matrices; mm is that of a single pair", TORCH),
    Explanation("aten::baddbmm", "product of two batches of matrices plus a third, in one call", TORCH),
    Explanation(
        "aten::_local_scalar_dense|aten::item",
        "brings one value to Python: on a device, the host waits for it",
        TORCH,
    ),
    Explanation("aten::to", "changes type or device; a copy only where that is needed", TORCH),
    Explanation("aten::copy_", "copies into a tensor, between devices or types if need be", TORCH),
    Explanation("aten::contiguous", "copies a tensor into one piece of memory, unless it is one", TORCH),
)
"""In order: the first entry that fits counts."""


def explain(name: str, trace: Trace, source: int) -> Explanation | None:
    """Return what a slice of a name does in this source, None where the table has nothing on it."""
    return _entry(name, is_aiu(trace.indexes[source]))


@held_by_name
def _entry(name: str, aiu: bool) -> Explanation | None:
    for entry, pattern in _compiled():
        if (aiu or not entry.aiu) and pattern.fullmatch(name):
            return entry
    return None


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Explanation, re.Pattern[str]], ...]:
    return tuple((entry, re.compile(entry.pattern, re.IGNORECASE)) for entry in TABLE)
