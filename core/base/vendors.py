"""Whose devices and libraries there are, a row each: what their devices, categories, kernels and calls are
called. What decides by a vendor reads this table; who writes *files* is told in `core/index/producers.py`.

Fields are regular expressions that are searched for, or empty. To add a vendor write a row: kinds of work,
roles of lanes, waits of the host and words for devices follow from it.
"""

from __future__ import annotations

from typing import NamedTuple

from .late_pattern import late_pattern


class Vendor(NamedTuple):
    """A maker of devices or of libraries for them, and its words."""

    name: str
    devices: tuple[str, ...] = ()  # what labels and processes call its devices, before their number
    prefix: str = ""  # how the categories of its runtime begin
    word: str = ""  # what PyTorch calls its devices, where these categories tell
    models: str = ""  # how `deviceProperties` names its devices
    kernels: str = ""  # names that compilers and libraries give to its kernels
    communication: str = ""  # names of device work that communicates
    collectives: str = ""  # how names of operators and annotations begin that start a collective
    collective_calls: str = ""  # what stands before the colon in "nccl:all_reduce"
    collective_kernels: str = ""  # what stands before the kind of collective in a kernel's name
    copying: str = ""  # names of device work that copies
    filling: str = ""  # … that sets memory
    waits: str = ""  # calls in which the host waits for the device
    moves: str = ""  # calls that start a copy for which the operator around them waits
    enqueues: str = ""  # calls that put a collective into a queue
    awaits: str = ""  # calls that wait for a collective
    profiler: str = ""  # its profiler at work
    launches: str = (
        ""  # whole names of calls that start a kernel, where they are no vendor's prefix and a verb
    )
    copies: str = ""  # … that start a copy
    call_prefix: str = ""  # how its runtime's calls begin, of which arrows alone tell the work
    allocates_by_memset: bool = False  # whether an allocation stands as a memset on the device's lanes


VENDORS = (
    Vendor("any", devices=("GPU",), kernels=r"^(void |_Z)\w|<.*>\(.*\)"),
    Vendor(
        "NVIDIA",
        devices=("CUDA",),
        prefix="cuda",
        word="CUDA",
        models=r"NVIDIA|GeForce|Tesla|Quadro|RTX|\b[BGH]+[1-3]00\b",
        kernels=r"^(ampere|sm\d\d|turing|volta|maxwell|hopper|nvjet|cutlass)_\w|^nccl\w*Kernel",
        communication=r"nccl|msccl|nvshmem|multimem_|userbuffers",
        collectives="nccl",
        collective_calls="nccl",
        collective_kernels="nccl|mscclpp|msccl",
    ),
    Vendor(
        "AMD",  # its runtime's categories begin as NVIDIA's
        kernels=r"^Cijk_|^rccl\w*Kernel",
        communication=r"rccl|rocshmem|(?<![a-z])mori(?![a-z])|(?<![a-z])mori_",
        collectives="rccl",
        collective_kernels="rccl",
        copying=r"^\[?hipMemcpy|^copy(host|device|buffer)|rocclr_copy",
        filling=r"^\[?hipMemset|^fillBuffer|rocclr_fill",
    ),
    Vendor(
        "Intel",
        devices=("XPU",),
        prefix="xpu",
        word="XPU",
        communication=r"oneccl|sycl::ccl",
        collectives="oneccl",
        collective_calls="xccl|oneccl",
        copying=r"AppendMemoryCopy|AppendImageCopy",
        filling=r"AppendMemoryFill",
        waits=r"^(ur|pi)(Events?Wait|QueueFinish)$",
    ),
    Vendor(
        "IBM",
        devices=("AIU", "SPYRE"),
        prefix="privateuse1",
        word="PRIVATEUSEONE",
        communication=r"hcoll|aiuComms|SenRdma|^\[\w+,\w*,\d*\]",
        collectives="hcoll|spyreccl",
        copying=r"\bdma[io]\b|^memory \(",
        waits=r"^aiu(Roundtrip|ScheduleWait|WaitForQueueCapacity)$|\bScheduleWait\b"
        r"|\bWaitForCompletionAndReturnStatus\b",
        moves=r"^aiuLaunchDM[IO]ControlBlocks$|^aiu\w*(Send|Recv)Data$",
        enqueues=r"^aiuCommsWorkSchedStart\d*$|\bWorkSchedule::start\b",
        awaits=r"^aiuCommsWorkSchedWait\d*$|\bWorkSchedule::wait\b",
        profiler="aiuClockCalibration",
        call_prefix="aiu",
        allocates_by_memset=True,
    ),
    Vendor(
        "Huawei",
        devices=("NPU",),
        communication=r"hccl|\bhcom_|^reduce_?(async(_v\d)?|inline)$",
        collectives="hccl",
        collective_calls="hccl",
    ),
    Vendor(
        "Meta",
        devices=("MTIA",),
        prefix="mtia",
        word="MTIA",
        launches=r"runFunction( - \w+)?",
        copies=r"enqueueCommand memcpy\w*",
    ),
    Vendor("Google", devices=("TPU",)),
    Vendor("Habana", devices=("HPU",)),
    Vendor("Apple", devices=("MPS",)),
    Vendor("Triton", kernels=r"^triton_\w"),
    Vendor("gloo, MPI, UCC", communication="gloo", collectives="gloo:", collective_calls="gloo|mpi|ucc"),
)


def any_of(field: str) -> str:
    """Return the expression of what any vendor calls so."""
    return "|".join(value for vendor in VENDORS if (value := getattr(vendor, field)))


WHOLE_EXPORT = late_pattern(r"^msprof((?:_\d{1,20})+)\.json$")
"""Files of CANN's export that hold what others with the same numbers in their names, beside them, hold parts
of: task_time_0_1_1.json is in msprof_0_1_1.json.
"""
PART_OF_EXPORT = late_pattern(r"^[a-z][a-z_]*?((?:_\d{1,20})+)\.json$")
FOLDER_OF_DEVICE = late_pattern(r"^device_(\d{1,4})$")
"""Its folders of devices, whose traces lie in `timeline`."""

DEVICE_WORDS = "|".join(word for vendor in VENDORS for word in vendor.devices)
WORDS_OF_PREFIXES = {vendor.prefix: vendor.word for vendor in VENDORS if vendor.prefix}


def vendor_of_device(word: str) -> Vendor | None:
    """Return whose devices are called so, None where nobody's are."""
    return next((vendor for vendor in VENDORS if word.upper() in vendor.devices), None)
