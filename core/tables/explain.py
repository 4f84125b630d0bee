"""What names in a trace mean, in one plain line each, and who says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..index.store import Index
from .devices import is_aiu

SPYRE_GUIDE = "kineto-spyre user guide"
SPYRE_PLUGIN = "torch-spyre's profiler"
CUDA_RUNTIME = "CUDA and HIP APIs"
CUDA_DRIVER = "CUDA driver API"
HIP = "HIP runtime API"
CUPTI = "CUPTI and Kineto"
DYNAMO = "torch.compiler docs"
TORCH = "PyTorch's API"
INDUCTOR = "TorchInductor's sources"


@dataclass(frozen=True)
class Explanation:
    """A pattern that fits a whole name, case aside; what such a slice does; the source of that."""

    pattern: str
    line: str
    source: str
    aiu: bool = False  # means this on an AIU only


def _e(pattern: str, line: str, source: str, aiu: bool = False) -> Explanation:
    return Explanation(pattern, line, source, aiu)


_GPU = r"(?:cuda|hip)"
TABLE: tuple[Explanation, ...] = (
    # -- AIU: calls of the runtime on the host ------------------------------------------------------------
    _e("aiuLaunchControlBlocks", "starts control blocks (kernels, copies) on the device", SPYRE_GUIDE),
    _e("aiuLaunchDMIControlBlocks", "starts control blocks that copy from host to device", SPYRE_PLUGIN),
    _e("aiuLaunchDMOControlBlocks", "starts control blocks that copy from device to host", SPYRE_PLUGIN),
    _e(
        "aiuLaunchComputeStream",
        "starts a stream of control blocks and waits until they are done",
        SPYRE_GUIDE,
    ),
    _e("aiuInitGraph", "sets up a sendnn graph that is to run on the device", SPYRE_GUIDE),
    _e("aiuCompileGraph", "compiles the graph, as part of a sendnn operation", SPYRE_GUIDE),
    _e("aiuGraphExecution", "runs the whole graph, that is all its supernodes", SPYRE_GUIDE),
    _e("aiuLaunchSuperNode", "starts a supernode: a unit made of several operations' nodes", SPYRE_GUIDE),
    _e(
        "aiuSuperNodeExecution",
        "runs a supernode on the device; without autopilot every node is one",
        SPYRE_GUIDE,
    ),
    _e("aiuNodeCompute", "computes one node of the graph, on the CPU or on the AIU", SPYRE_GUIDE),
    _e(
        "aiuDataConvert", "converts data between formats, such as float16 and the AIU's sen_fp16", SPYRE_GUIDE
    ),
    _e("aiuMalloc", "allocates memory on the device", SPYRE_GUIDE),
    _e("aiuResizeTensorAllocation", "changes the size of a tensor's memory", SPYRE_GUIDE),
    _e("aiuCreateVirtualAddresses", "makes the virtual addresses that memory is managed by", SPYRE_GUIDE),
    _e("aiuInitScheduler", "sets up the scheduler that runs the graph", SPYRE_GUIDE),
    _e("aiuLaunchScheduleCompute", "starts a computation that was scheduled", SPYRE_GUIDE),
    _e("aiuScheduleWait", "waits until what was scheduled is done", SPYRE_GUIDE),
    _e("aiuPrepareDMAs", "prepares transfers by DMA", SPYRE_GUIDE),
    _e(
        "aiuPrepareAndSyncRDMA",
        "prepares transfers by RDMA and agrees on them with the other cards",
        SPYRE_GUIDE,
    ),
    _e("aiuClearCache", "empties the device's scratchpad", SPYRE_GUIDE),
    _e("aiuPreloadCache", "loads data into the device's scratchpad ahead of its use", SPYRE_GUIDE),
    _e(
        r"aiuRDMABarrier[123]",
        "waits until all cards have come to this barrier (several AIUs only)",
        SPYRE_GUIDE,
    ),
    _e("aiuPostRDMAKeys", "tells the other cards the keys to its memory (several AIUs only)", SPYRE_GUIDE),
    _e("aiuFetchRDMAKeys", "gets the keys to the other cards' memory (several AIUs only)", SPYRE_GUIDE),
    _e("aiuUpdateRDMACBs", "brings the control blocks for RDMA up to date (several AIUs only)", SPYRE_GUIDE),
    _e(
        "aiuCheckRDMADeadlock",
        "looks for RDMA transfers that wait for each other (FLEX_HDMA_CHECK_FOR_DEADLOCK)",
        SPYRE_GUIDE,
    ),
    _e("aiuFileTransferDtoF", "writes data of the device to a file", SPYRE_GUIDE),
    _e("aiuFileTransferMtoF", "writes data of the host's memory to a file", SPYRE_GUIDE),
    _e("aiuFileTransferFtoD", "reads data from a file to the device", SPYRE_GUIDE),
    _e("aiuFileTransferFtoM", "reads data from a file to the host's memory", SPYRE_GUIDE),
    _e("aiuDataTransferDtoH", "copies data from the device to the host", SPYRE_GUIDE),
    _e("aiuDataTransferHtoD", "copies data from the host to the device", SPYRE_GUIDE),
    _e("aiuClockCalibration", "the profiler relates the device's clock to the host's", SPYRE_GUIDE),
    _e(r"aiuCommsColl\w+Setup", "sets up a collective over several cards", SPYRE_PLUGIN),
    _e(r"aiuCommsColl\w+", "a collective over several cards, as the host sees it", SPYRE_PLUGIN),
    _e("aiuCommsWorkSchedWait", "waits for a collective's schedule", SPYRE_PLUGIN),
    _e(r"aiuComms\w+", "a part of spyre-comms, the library for collectives, on the host", SPYRE_PLUGIN),
    _e(
        r"Unknown CBID \d+",
        "a call of the AIU runtime that this version of the profiler has no name for",
        SPYRE_PLUGIN,
    ),
    # -- AIU: the device's lanes --------------------------------------------------------------------------
    _e(r"Memset \(Device\)|Memory \(Allocation\)", "memory is allocated on the AIU", SPYRE_GUIDE, True),
    _e(r"Memory \(Release\)", "memory of the AIU is freed", SPYRE_GUIDE, True),
    _e(r"Memcpy \(HtoD\)", "data goes from the host's memory to the AIU (DMI)", SPYRE_GUIDE, True),
    _e(r"Memcpy \(DtoH\)", "data goes from the AIU to the host's memory (DMO)", SPYRE_GUIDE, True),
    _e(r"Memcpy \(DtoD\)", "data goes from AIU to AIU by way of the host's memory", SPYRE_GUIDE, True),
    _e(r"Memcpy \(PtoP\)", "data goes straight from AIU to AIU", SPYRE_GUIDE, True),
    # -- CUDA and HIP -------------------------------------------------------------------------------------
    _e(
        r"(?:cuda|hip)(?:Ext)?LaunchKernel(?:ExC)?(?:_ptsz)?",
        "queues a kernel and returns: the kernel runs later",
        CUDA_RUNTIME,
    ),
    _e(
        r"cuLaunchKernel(?:Ex)?",
        "queues a kernel of a loaded module, as Triton and newer libraries do",
        CUDA_DRIVER,
    ),
    _e(
        r"hip(?:Ext)?ModuleLaunchKernel",
        "queues a kernel of a loaded module, as Triton and libraries do",
        HIP,
    ),
    _e(r"(?:cuda|hip)GraphLaunch", "replays a captured graph: one call starts all its kernels", CUDA_RUNTIME),
    _e(
        r"(?:cuda|hip)GraphInstantiate\w*",
        "makes a captured graph ready to be replayed: costly, done once",
        CUDA_RUNTIME,
    ),
    _e(
        r"(?:cuda|hip)Stream(?:Begin|End)Capture",
        "records what is queued into a graph instead of running it",
        CUDA_RUNTIME,
    ),
    _e(
        rf"{_GPU}StreamIsCapturing|{_GPU}StreamGetCaptureInfo\w*",
        "asks if a graph is being recorded",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}DeviceSynchronize", "the host waits for all work of the device", CUDA_RUNTIME),
    _e(
        rf"{_GPU}StreamSynchronize",
        "the host waits for all work of one stream, as .item() and .cpu() make it",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}EventSynchronize", "the host waits until an event is reached", CUDA_RUNTIME),
    _e(rf"{_GPU}StreamWaitEvent", "a stream waits for an event of another; the host does not", CUDA_RUNTIME),
    _e(
        rf"{_GPU}EventRecord(?:WithFlags)?",
        "puts a mark into a stream that others can wait for",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}EventQuery", "asks whether an event was reached, without waiting", CUDA_RUNTIME),
    _e(rf"{_GPU}EventElapsedTime", "asks for the time between two events", CUDA_RUNTIME),
    _e(
        rf"{_GPU}MemcpyAsync",
        "queues a copy; with pageable host memory it may wait all the same",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}Memcpy(?:WithStream)?", "copies and waits until that is done", CUDA_RUNTIME),
    _e(rf"{_GPU}MemsetAsync", "queues filling memory with a value", CUDA_RUNTIME),
    _e(
        rf"{_GPU}Malloc(?:Async)?",
        "asks the driver for device memory: costly, PyTorch keeps what it has",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}Free(?:Async)?", "gives device memory back; may wait for the device", CUDA_RUNTIME),
    _e(
        rf"{_GPU}Host(?:Alloc|Malloc|Register)",
        "gets page-locked host memory: costly, copies from it are faster",
        CUDA_RUNTIME,
    ),
    _e(
        rf"{_GPU}OccupancyMaxActiveBlocksPerMultiprocessor\w*",
        "asks how many blocks fit at once, before a kernel whose shape adapts (GEMM, convolution)",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}FuncSetAttribute", "sets a kernel's limits, such as its shared memory", CUDA_RUNTIME),
    _e(rf"{_GPU}FuncGetAttributes", "asks for a kernel's properties, such as its registers", CUDA_RUNTIME),
    _e(rf"{_GPU}PointerGetAttributes?", "asks whose memory an address is", CUDA_RUNTIME),
    _e(
        rf"{_GPU}(?:GetDeviceProperties\w*|DeviceGetAttribute)",
        "asks for the device's properties",
        CUDA_RUNTIME,
    ),
    _e(rf"{_GPU}(?:PeekAtLastError|GetLastError)", "asks whether a call before it failed", CUDA_RUNTIME),
    _e(
        rf"{_GPU}ThreadExchangeStreamCaptureMode",
        "sets which calls are allowed while a graph is recorded",
        CUDA_RUNTIME,
    ),
    _e("Activity Buffer Request", "the profiler gets memory for its own records", CUPTI),
    _e("Buffer Flush", "the profiler writes its records out", CUPTI),
    _e("Instrumentation", "the profiler prepares a module for measuring", CUPTI),
    _e("Lazy Function Loading", "a kernel's code is loaded at its first launch", CUPTI),
    _e("Command Buffer Full", "the launch waits because the device's queue is full", CUPTI),
    _e("(?:Context|Stream|Event) Sync", "a wait for the device, as the device's side records it", CUPTI),
    # -- torch.compile: running ---------------------------------------------------------------------------
    _e(
        r"Torch-Compiled Region: .*",
        "runs compiled code (frame id / compile id); one in another: graph break or disabled region",
        DYNAMO,
    ),
    _e("TorchDynamo Cache Lookup", "Dynamo checks guards to find compiled code for a frame", DYNAMO),
    _e("Pregraph bytecode", "what Dynamo's rewritten bytecode does before it calls the graph", DYNAMO),
    _e(
        "AOTDispatcher Runtime Wrapper Prologue",
        "AOTAutograd prepares the inputs before it calls the compiled graph",
        DYNAMO,
    ),
    _e("CompiledFunction", "AOTAutograd's forward graph, with autograd around it", DYNAMO),
    _e("CompiledFunctionBackward", "AOTAutograd's backward graph", DYNAMO),
    _e(
        r"## Call CompiledFxGraph .* ##",
        "calls the code that Inductor wrote for a graph, named by the graph's hash",
        INDUCTOR,
    ),
    _e(
        r"triton_poi_\w+",
        "Inductor's Triton kernel: pointwise operations fused, their names in its own",
        INDUCTOR,
    ),
    _e(r"triton_red_\w+", "Inductor's Triton kernel: a reduction that loops over its input", INDUCTOR),
    _e(
        r"triton_per_\w+",
        "Inductor's Triton kernel: a persistent reduction, its input held at once",
        INDUCTOR,
    ),
    _e(r"triton_tem_\w+", "Inductor's Triton kernel from a template, such as a matrix product", INDUCTOR),
    _e(r"triton_for_\w+", "Inductor's Triton kernel: several lists of tensors at once (foreach)", INDUCTOR),
    _e(
        r"(?:.*/)?sdsc_\w+(?:/bundle\.mlir)?",
        "a kernel that Inductor had made for Spyre, its operations in its name",
        INDUCTOR,
    ),
    # -- torch.compile: compiling -------------------------------------------------------------------------
    _e(
        r"_compile\.compile_inner \(dynamo_timed\)|entire_frame_compile",
        "compiles one Python frame, from its bytecode to code that runs",
        DYNAMO,
    ),
    _e(
        r"compile_attempt_\d+(?: \(dynamo_timed\))?",
        "one try to compile a frame; Dynamo restarts after some graph breaks",
        DYNAMO,
    ),
    _e(r"bytecode_tracing \(dynamo_timed\)", "Dynamo goes through the bytecode and builds the graph", DYNAMO),
    _e(
        r"build_guards \(dynamo_timed\)",
        "makes the checks under which the compiled code may be used again",
        DYNAMO,
    ),
    _e(
        r"OutputGraph\.call_user_compiler \(dynamo_timed\)|backend_compile",
        "Dynamo hands the graph to the back end",
        DYNAMO,
    ),
    _e(
        r"create_aot_dispatcher_function(?: \(dynamo_timed\))?",
        "AOTAutograd traces forward and backward",
        DYNAMO,
    ),
    _e(r"aot_\w+(?: \(dynamo_timed\))?", "a step of AOTAutograd's tracing", DYNAMO),
    _e(
        r"min_cut_rematerialization_partition(?: \(dynamo_timed\))?",
        "decides what the forward keeps and what the backward computes again",
        DYNAMO,
    ),
    _e(
        r"(?:backward\._backward_impl \(dynamo_timed\)|entire_backward_compile)",
        "compiles a backward graph at its first use",
        DYNAMO,
    ),
    _e(
        r"_recursive_(?:pre|post)_grad_passes \(dynamo_timed\)|pass\..*",
        "Inductor's passes over the graph",
        INDUCTOR,
    ),
    _e(
        r"_recursive_joint_graph_passes \(dynamo_timed\)",
        "passes over forward and backward together",
        INDUCTOR,
    ),
    _e(
        r"(?:compile_fx_inner|fx_codegen_and_compile)(?: \(dynamo_timed\))?|inductor_compile",
        "Inductor turns a graph into code",
        INDUCTOR,
    ),
    _e(
        r"GraphLowering\.\S+(?: \(dynamo_timed\))?",
        "Inductor lowers the graph to its own operations and writes code",
        INDUCTOR,
    ),
    _e(
        r"Scheduler\.\S+ \(dynamo_timed\)", "Inductor decides what is fused, and writes the kernels", INDUCTOR
    ),
    _e(r"compile_file(?: \(dynamo_timed\))?", "the C++ compiler builds a generated file", INDUCTOR),
    _e(
        r"PyCodeCache\.\S+ \(dynamo_timed\)",
        "loads the generated module, and waits for kernels still being built",
        INDUCTOR,
    ),
    _e(
        r"async_compile\.\S+(?: \(dynamo_timed\))?",
        "waits for kernels that are compiled in other processes",
        INDUCTOR,
    ),
    # -- operators that stand for each other --------------------------------------------------------------
    _e(
        r"aten::addmm",
        "matrix product plus a bias in one call; mm and add do the same in two",
        TORCH,
    ),
    _e(r"aten::mm", "product of two matrices, without a bias (addmm) or a batch (bmm)", TORCH),
    _e(r"aten::bmm", "product of two batches of matrices; mm is that of a single pair", TORCH),
    _e(r"aten::baddbmm", "product of two batches of matrices plus a third, in one call", TORCH),
    _e(r"extern_kernels\.\w+", "a library's operator that Inductor calls as it is", INDUCTOR),
    _e(
        r"aten::_local_scalar_dense|aten::item",
        "brings one value to Python: on a device, the host waits for it",
        TORCH,
    ),
    _e("aten::to", "changes type or device; a copy only where that is needed", TORCH),
    _e(r"aten::copy_", "copies into a tensor, between devices or types if need be", TORCH),
    _e(r"aten::contiguous", "copies a tensor into one piece of memory, unless it is one", TORCH),
)
"""In order: the first entry that fits counts."""


def explain(name: str, index: Index) -> Explanation | None:
    """Return what a slice of a name does in this source, None where the table has nothing on it."""
    return _entry(name, is_aiu(index))


@lru_cache(maxsize=4096)
def _entry(name: str, aiu: bool) -> Explanation | None:
    for entry, pattern in _compiled():
        if (aiu or not entry.aiu) and pattern.fullmatch(name):
            return entry
    return None


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Explanation, re.Pattern[str]], ...]:
    return tuple((entry, re.compile(entry.pattern, re.IGNORECASE)) for entry in TABLE)
