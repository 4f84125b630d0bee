"""Explanations of names in a trace, a line for each with its source."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..trace import Trace
from ..trace.devices import is_aiu

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


_TEXTS = (
    (SPYRE_GUIDE, False, r"""
aiuLaunchControlBlocks = starts control blocks (kernels, copies) on the device
aiuLaunchComputeStream = starts a stream of control blocks and waits until they are done
aiuInitGraph = sets up a sendnn graph that is to run on the device
aiuCompileGraph = compiles the graph, as part of a sendnn operation
aiuGraphExecution = runs the whole graph, that is all its supernodes
aiuLaunchSuperNode = starts a supernode: a unit made of several operations' nodes
aiuSuperNodeExecution = runs a supernode on the device; without autopilot every node is one
aiuNodeCompute = computes one node of the graph, on the CPU or on the AIU
aiuDataConvert = converts data between formats, such as float16 and the AIU's sen_fp16
aiuMalloc = allocates memory on the device
aiuResizeTensorAllocation = changes the size of a tensor's memory
aiuCreateVirtualAddresses = makes the virtual addresses that memory is managed by
aiuInitScheduler = sets up the scheduler that runs the graph
aiuLaunchScheduleCompute = starts a computation that was scheduled
aiuScheduleWait = waits until what was scheduled is done
aiuPrepareDMAs = prepares transfers by DMA
aiuPrepareAndSyncRDMA = prepares transfers by RDMA and agrees on them with the other cards
aiuClearCache = empties the device's scratchpad
aiuPreloadCache = loads data into the device's scratchpad ahead of its use
aiuRDMABarrier[123] = waits until all cards have come to this barrier (several AIUs only)
aiuPostRDMAKeys = tells the other cards the keys to its memory (several AIUs only)
aiuFetchRDMAKeys = gets the keys to the other cards' memory (several AIUs only)
aiuUpdateRDMACBs = brings the control blocks for RDMA up to date (several AIUs only)
aiuCheckRDMADeadlock = looks for RDMA transfers that wait for each other (FLEX_HDMA_CHECK_FOR_DEADLOCK)
aiuFileTransferDtoF = writes data of the device to a file
aiuFileTransferMtoF = writes data of the host's memory to a file
aiuFileTransferFtoD = reads data from a file to the device
aiuFileTransferFtoM = reads data from a file to the host's memory
aiuDataTransferDtoH = copies data from the device to the host
aiuDataTransferHtoD = copies data from the host to the device
aiuClockCalibration = the profiler relates the device's clock to the host's
"""),
    (SPYRE_PLUGIN, False, r"""
aiuLaunchDMIControlBlocks = starts control blocks that copy from host to device
aiuLaunchDMOControlBlocks = starts control blocks that copy from device to host
aiuCommsColl\w+Setup = sets up a collective over several cards
aiuCommsColl\w+ = a collective over several cards, as the host sees it
aiuCommsWorkSchedWait = waits for a collective's schedule
aiuComms\w+ = a part of spyre-comms, the library for collectives, on the host
Unknown CBID \d+ = a call of the AIU runtime that this version of the profiler has no name for
"""),
    (SPYRE_GUIDE, True, r"""
Memset \(Device\)|Memory \(Allocation\) = memory is allocated on the AIU
Memory \(Release\) = memory of the AIU is freed
Memcpy \(HtoD\) = data goes from the host's memory to the AIU (DMI)
Memcpy \(DtoH\) = data goes from the AIU to the host's memory (DMO)
Memcpy \(DtoD\) = data goes from AIU to AIU by way of the host's memory
Memcpy \(PtoP\) = data goes straight from AIU to AIU
"""),
    (CUDA_RUNTIME, False, r"""
(?:cuda|hip)(?:Ext)?LaunchKernel(?:ExC)?(?:_ptsz)? = queues a kernel and returns: the kernel runs later
(?:cuda|hip)GraphLaunch = replays a captured graph: one call starts all its kernels
(?:cuda|hip)GraphInstantiate\w* = makes a captured graph ready to be replayed: costly, done once
(?:cuda|hip)Stream(?:Begin|End)Capture = records what is queued into a graph instead of running it
(?:cuda|hip)StreamIsCapturing|(?:cuda|hip)StreamGetCaptureInfo\w* = asks if a graph is being recorded
(?:cuda|hip)DeviceSynchronize = the host waits for all work of the device
(?:cuda|hip)StreamSynchronize = the host waits for all work of one stream, as .item() and .cpu() make it
(?:cuda|hip)EventSynchronize = the host waits until an event is reached
(?:cuda|hip)StreamWaitEvent = a stream waits for an event of another; the host does not
(?:cuda|hip)EventRecord(?:WithFlags)? = puts a mark into a stream that others can wait for
(?:cuda|hip)EventQuery = asks whether an event was reached, without waiting
(?:cuda|hip)EventElapsedTime = asks for the time between two events
(?:cuda|hip)MemcpyAsync = queues a copy; with pageable host memory it may wait all the same
(?:cuda|hip)Memcpy(?:WithStream)? = copies and waits until that is done
(?:cuda|hip)MemsetAsync = queues filling memory with a value
(?:cuda|hip)Malloc(?:Async)? = asks the driver for device memory: costly, PyTorch keeps what it has
(?:cuda|hip)Free(?:Async)? = gives device memory back; may wait for the device
(?:cuda|hip)Host(?:Alloc|Malloc|Register) = gets page-locked host memory: costly, copies from it are faster
(?:cuda|hip)OccupancyMaxActiveBlocksPerMultiprocessor\w* =
    asks how many blocks fit at once, before a kernel whose shape adapts (GEMM, convolution)
(?:cuda|hip)FuncSetAttribute = sets a kernel's limits, such as its shared memory
(?:cuda|hip)FuncGetAttributes = asks for a kernel's properties, such as its registers
(?:cuda|hip)PointerGetAttributes? = asks whose memory an address is
(?:cuda|hip)(?:GetDeviceProperties\w*|DeviceGetAttribute) = asks for the device's properties
(?:cuda|hip)(?:PeekAtLastError|GetLastError) = asks whether a call before it failed
(?:cuda|hip)ThreadExchangeStreamCaptureMode = sets which calls are allowed while a graph is recorded
"""),
    (CUDA_DRIVER, False, r"""
cuLaunchKernel(?:Ex)? = queues a kernel of a loaded module, as Triton and newer libraries do
"""),
    (HIP, False, r"""
hip(?:Ext)?ModuleLaunchKernel = queues a kernel of a loaded module, as Triton and libraries do
"""),
    (CUPTI, False, r"""
Activity Buffer Request = the profiler gets memory for its own records
Buffer Flush = the profiler writes its records out
Instrumentation = the profiler prepares a module for measuring
Lazy Function Loading = a kernel's code is loaded at its first launch
Command Buffer Full = the launch waits because the device's queue is full
(?:Context|Stream|Event) Sync = a wait for the device, as the device's side records it
"""),
    (DYNAMO, False, r"""
Torch-Compiled Region: .* =
    runs compiled code (frame id / compile id); one in another: graph break or disabled region
TorchDynamo Cache Lookup = Dynamo checks guards to find compiled code for a frame
Pregraph bytecode = what Dynamo's rewritten bytecode does before it calls the graph
AOTDispatcher Runtime Wrapper Prologue = AOTAutograd prepares the inputs before it calls the compiled graph
CompiledFunction = AOTAutograd's forward graph, with autograd around it
CompiledFunctionBackward = AOTAutograd's backward graph
_compile\.compile_inner \(dynamo_timed\)|entire_frame_compile =
    compiles one Python frame, from its bytecode to code that runs
compile_attempt_\d+(?: \(dynamo_timed\))? =
    one try to compile a frame; Dynamo restarts after some graph breaks
bytecode_tracing \(dynamo_timed\) = Dynamo goes through the bytecode and builds the graph
build_guards \(dynamo_timed\) = makes the checks under which the compiled code may be used again
OutputGraph\.call_user_compiler \(dynamo_timed\)|backend_compile = Dynamo hands the graph to the back end
create_aot_dispatcher_function(?: \(dynamo_timed\))? = AOTAutograd traces forward and backward
aot_\w+(?: \(dynamo_timed\))? = a step of AOTAutograd's tracing
min_cut_rematerialization_partition(?: \(dynamo_timed\))? =
    decides what the forward keeps and what the backward computes again
(?:backward\._backward_impl \(dynamo_timed\)|entire_backward_compile) =
    compiles a backward graph at its first use
"""),
    (INDUCTOR, False, r"""
## Call CompiledFxGraph .* ## = calls the code that Inductor wrote for a graph, named by the graph's hash
triton_poi_\w+ = Inductor's Triton kernel: pointwise operations fused, their names in its own
triton_red_\w+ = Inductor's Triton kernel: a reduction that loops over its input
triton_per_\w+ = Inductor's Triton kernel: a persistent reduction, its input held at once
triton_tem_\w+ = Inductor's Triton kernel from a template, such as a matrix product
triton_for_\w+ = Inductor's Triton kernel: several lists of tensors at once (foreach)
(?:.*/)?sdsc_\w+(?:/bundle\.mlir)? = a kernel that Inductor had made for Spyre, its operations in its name
_recursive_(?:pre|post)_grad_passes \(dynamo_timed\)|pass\..* = Inductor's passes over the graph
_recursive_joint_graph_passes \(dynamo_timed\) = passes over forward and backward together
(?:compile_fx_inner|fx_codegen_and_compile)(?: \(dynamo_timed\))?|inductor_compile =
    Inductor turns a graph into code
GraphLowering\.\S+(?: \(dynamo_timed\))? = Inductor lowers the graph to its own operations and writes code
Scheduler\.\S+ \(dynamo_timed\) = Inductor decides what is fused, and writes the kernels
compile_file(?: \(dynamo_timed\))? = the C++ compiler builds a generated file
PyCodeCache\.\S+ \(dynamo_timed\) = loads the generated module, and waits for kernels still being built
async_compile\.\S+(?: \(dynamo_timed\))? = waits for kernels that are compiled in other processes
extern_kernels\.\w+ = a library's operator that Inductor calls as it is
"""),
    (TORCH, False, r"""
aten::addmm = matrix product plus a bias in one call; mm and add do the same in two
aten::mm = product of two matrices, without a bias (addmm) or a batch (bmm)
aten::bmm = product of two batches of matrices; mm is that of a single pair
aten::baddbmm = product of two batches of matrices plus a third, in one call
aten::_local_scalar_dense|aten::item = brings one value to Python: on a device, the host waits for it
aten::to = changes type or device; a copy only where that is needed
aten::copy_ = copies into a tensor, between devices or types if need be
aten::contiguous = copies a tensor into one piece of memory, unless it is one
"""),
)  # fmt: skip
"""(source, whether it is of an AIU only, lines of `pattern = what such a slice does`; indented: goes on)."""


def _entries(source: str, aiu: bool, text: str) -> list[Explanation]:
    lines = (line.partition(" = ") for line in text.replace("\n    ", " ").strip().splitlines())
    return [Explanation(pattern, what, source, aiu) for pattern, _, what in lines]


TABLE = tuple(entry for texts in _TEXTS for entry in _entries(*texts))
"""In order: the first entry that fits counts."""


def explain(name: str, trace: Trace, source: int) -> Explanation | None:
    """Return what a slice of a name does in this source, None where the table has nothing on it."""
    return _entry(name, is_aiu(trace.indexes[source]))


@lru_cache(maxsize=4096)
def _entry(name: str, aiu: bool) -> Explanation | None:
    for entry, pattern in _compiled():
        if (aiu or not entry.aiu) and pattern.fullmatch(name):
            return entry
    return None


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Explanation, re.Pattern[str]], ...]:
    return tuple((entry, re.compile(entry.pattern, re.IGNORECASE)) for entry in TABLE)
