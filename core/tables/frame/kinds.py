"""What a piece of device work is by its name: one table of kinds, for every analysis.

A kind belongs to a type (compute, communication, memory, sync) by which analyses divide time; below compute
it says what is computed. The first row whose pattern fits decides, so that the particular stands before the
general: `flash_fwd_splitkv_kernel` is attention, not GEMM. A name that no row knows is of kind "unknown" and
counts as compute, as in HTA. Users put rows of their own before these.

Names are those of CUDA's, ROCm's, oneAPI's and AIU's libraries and of the engines that write kernels of their
own (vLLM, SGLang, DeepEP, mori, TransformerEngine), as they stand in real traces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from ...base.arrays import AnyArray, distinct
from ...base.cached_per_object import cached_per_object
from ...base.errors import UsageError
from ...base.held import held_by_name
from ...base.kineto import COMMUNICATION, COPY_CATEGORIES, COPYING, FILLING, SYNC_CATEGORIES
from ...base.late_pattern import late_pattern
from ...base.needed_words import text_matches
from ...base.pattern import Pattern
from ...base.private import KERNEL_KINDS, config_path, settings_table
from ...index.store import Index

KernelType: TypeAlias = Literal["compute", "communication", "memory", "sync"]
KERNEL_TYPES: tuple[KernelType, ...] = ("compute", "communication", "memory", "sync")
"""The types; their order gives the numbers that rules return."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class KernelKind:
    """A kind of device work; `pattern` is searched for in the name, upper and lower case alike."""

    name: str
    type: KernelType
    pattern: re.Pattern[str] | Pattern

    def fits(self, name: str, task: str, small: str) -> bool:
        """Tell whether a name is of this kind by its task (`task_of`), `small` in small letters; a pattern of
        the user looks at all of the name.
        """
        if isinstance(self.pattern, Pattern):
            return bool(self.pattern.search(name))
        return text_matches(self.pattern, task, small)


def task_of(name: str) -> str:
    """Return what a kernel's name says that runs: of those that CANN gives to operators the last part, as the
    first is whom it runs for; aclnnMm_MatMulCommon_MemSet clears memory.
    """
    return name.rpartition("_")[2] if name.startswith("aclnn") and name.count("_") > 1 else name


def _kind(name: str, type: KernelType, *patterns: str) -> KernelKind:
    return KernelKind(name, type, late_pattern("|".join(patterns), re.IGNORECASE))


# Mangled names put a length before each part (`_ZN5aiter9pa_bf16`), so that a part begins where no letter
# stands before it rather than at a word's edge. Gaps within patterns are bounded: names may be very long.
KINDS: tuple[KernelKind, ...] = (
    _kind("sync", "sync", r"^(stream|event|context|device) (wait|sync)", r"^wait_?(event|signal)\b",
        r"^event_(wait|record)$"),
    KernelKind("collective", "communication", COMMUNICATION),
    KernelKind("copy", "memory", COPYING),
    KernelKind("fill", "memory", FILLING),
    _kind("triton", "compute", r"^triton_(poi|red|per|tem|for|mm|bmm)_", r"^/.*/triton_\w+"),
    _kind("spyre", "compute", r"sdsc_", r"^spyre_kernel", r"^/.*(bundle|kernel)\.mlir$"),
    _kind(
        "attention", "compute", r"(?<!cache_)(?<!kernel_)flash(?!infer)|fmha|attention|\battn|_attn",
        r"flashinfer.{0,64}(prefill|decode|ragged|cascade|variablelength|merge_?states?)",
        r"paged_kv|(?<![a-z])(?<!cache_)mla_|splitkv|sdpa|\bsdp_|(?<![a-z])pa_(fwd|bf16|fp16|fp8|decode)",
        r"fwd_(grouped_)?kernel_stage|\bbwd_kernel_d[qkv]|kernel_mha|\bmha_|mqa_logits",
    ),
    _kind(
        "moe", "compute", r"(?<![a-z])f?moe|moe_?(sort|rout|align)|fused_experts|_routing_|routing::|expert",
        r"topk_?(gating|softmax)|grouped_topk|group(ed)?_gemm|groupedgemm|GroupProblemShape|expandInputRows",
        r"matmul_ogs|_?permute_kernel\b|permute_tokens",
    ),
    _kind(
        "convolution", "compute", r"conv(?!er)|scudnn|winograd|implicit_gemm|igemm_(fwd|bwd|wrw)",
        r"fprop|(?<![a-z])[dw]grad|compute(Wgrad|Dgrad)?(SplitK)?B?Offsets|im2(d2)?col|col2im|fft2d_",
    ),
    _kind(
        "optimizer", "compute",
        r"multi_tensor_apply|(?<![a-z])(fused_?)?(adam|adafactor|lamb)w?(_|\b|Functor|Math)",
        r"\bsgd\b|FusedSgd|kOptimizer",
    ),
    _kind(
        "norm", "compute", r"(layer|batch|group|rms|instance|l2|weight)_?norm", r"\bnorm_|_norm(_|\b)",
        r"\bbn_(fw|bw)|\bln_(fwd|bwd)|rowwiseMoments|gammaBeta|cuComputeGradInput",
    ),
    _kind(
        "gemm", "compute", r"(?<!fb)gemm|gemv|(?<![a-z])Cijk_|cublas|cutlass|tensile|nvjet|wgmma|splitk",
        r"(?<![a-z])(b|add)?mm(_|\b)|marlin|machete|gptq|matmul|(?<![a-z])awq_|mul_mat|spmm|sddmm",
    ),
    _kind(
        "reduction", "compute", r"reduc|softmax|argm(ax|in)|cumsum|cumprod|\bscan|_scan|scan_|scankernel",
        r"sort|onesweep|radix|topk|welford|nll_?(loss|criterion)|x?entropy|histogram|sampling|_sum_|amax|pool",
        r"\b(mean|sum|amax|amin|max|min)(_\d+)? Cmpt", r"rocprim|hipcub|\bcub::",
    ),
    _kind(
        "elementwise", "compute", r"element_?wise|vectorized|unrolled|functor|catArray|\bcopy_|direct_copy",
        r"index(_|ing_|select|FuncLarge|put)|_indices|gather|scatter|embedding|dropout|rotary|rope|fill",
        r"\bcast|_cast|transpose|permute|pad\b|to_?(nchw|nhwc)|act_and_mul|scale\w{0,64}tensor|quant",
        r"(?<![a-z])op\w{0,8}_?tensor|SubTensorOp|(kv_?|and_)cache|Relayout|Reshape|tri[ul]_|upsample",
        r"interpolate|clamp|silu|gelu|relu|swiglu|sigmoid|token_ids|req_to_token|compute_position|parallel_for",
        r"\b(add|sub|mul|div|neg|exp|tanh)(_\d+)? Cmpt|\b(add|sub|mul|div|neg|exp|tanh)_(fwd|bwd)_",
        r"^(add|sub|mul|(real)?div|neg|exp|log|tanh|r?sqrt|pow|axpy|addc(mul|div)|(zeros|ones)like)$",
        r"^(trans_?data|tensormove)$",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class KindTable:
    """Rows of kinds, the first that fits decides; those of the user come first."""

    rows: tuple[KernelKind, ...] = KINDS

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The kinds, each once, "unknown" among them."""
        return tuple(dict.fromkeys([*(row.name for row in self.rows), UNKNOWN]))

    @property
    def own_rows(self) -> tuple[tuple[str, str], ...]:
        """(kind, pattern) of the rows that are not those of this module."""
        own = ((row.name, row.pattern) for row in self.rows)
        return tuple((name, pattern.text) for name, pattern in own if isinstance(pattern, Pattern))

    def with_patterns(self, patterns: Sequence[tuple[str, str]]) -> KindTable:
        """Return a table with (kind, pattern) pairs before its own rows.

        A kind that the table has keeps its type; another one is compute. Raises UsageError for a pattern
        that is no regular expression.
        """
        types = {row.name: row.type for row in self.rows} | {name: name for name in KERNEL_TYPES}
        own = []
        for name, pattern in patterns:
            expression = Pattern(pattern, ignore_case=True)
            expression.check(f"kernel kind {name!r}: {pattern!r}")
            own.append(KernelKind(name, types.get(name, "compute"), expression))
        return KindTable((*own, *self.rows))

    def look_at(self, names: Sequence[str]) -> None:
        """Look for the user's patterns in many names at once: one by one they take ten times as long."""
        for row in self.rows:
            if isinstance(row.pattern, Pattern):
                row.pattern.matches_in(names)

    def kind_of(self, name: str, category: str = "") -> KernelKind:
        """Return the kind of a device slice, by its category if that tells, else by its name."""
        of_category = kind_of_category(category)
        if of_category is not None:
            return of_category
        task = task_of(name)
        small = task.lower()
        return next((row for row in self.rows if row.fits(name, task, small)), OTHER)


def kind_of_category(category: str) -> KernelKind | None:
    """Return the kind of all that has a category, None where the name decides."""
    if category in COPY_CATEGORIES:
        return FILL if "emset" in category else COPY
    return SYNC if category in SYNC_CATEGORIES else None


OTHER = _kind(UNKNOWN, "compute", r"(?!)")
SYNC, COPY, FILL = (next(row for row in KINDS if row.name == name) for name in ("sync", "copy", "fill"))
DEFAULT_KINDS = KindTable()


def kind_table() -> KindTable:
    """Return the table that analyses use: the rows of the user's settings first, as far as they are sound."""
    path = config_path()
    try:
        stamp = None if path is None else path.stat()
    except OSError:
        stamp = None
    return DEFAULT_KINDS if stamp is None else _table_of_settings(str(path), stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _table_of_settings(path: str, mtime_ns: int, size: int) -> KindTable:
    """Return the table of the settings; path, time and size identify their state for the cache."""
    patterns, _ = patterns_of(settings_table(KERNEL_KINDS))
    return DEFAULT_KINDS.with_patterns(patterns)


def patterns_of(settings: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the (kind, pattern) pairs of the settings' table, and what of it is not understood."""
    pairs: list[tuple[str, str]] = []
    complaints: list[str] = []
    for name, value in settings.items():
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            complaints.append(
                f"{KERNEL_KINDS}.{name} must be a pattern such as 'my_gemm', or a list of patterns"
            )
            continue
        for text in texts:
            try:
                DEFAULT_KINDS.with_patterns([(name, text)])
            except UsageError as error:
                complaints.append(f"{KERNEL_KINDS}.{name}: {error}")
            else:
                pairs.append((name, text))
    return pairs, complaints


def kernel_types(index: Index, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Return the type of each of many device slices as places in KERNEL_TYPES."""
    types = {row.name: row.type for row in (*kind_table().rows, OTHER)}
    numbers = np.array([KERNEL_TYPES.index(types[name]) for name in kind_table().names], np.uint8)
    return numbers[kernel_kinds(index, names, categories)]


def kernel_kinds(index: Index, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Return the kind of each of many device slices as places in the names of the table of kinds. Each name
    of an index is asked once, whoever asks: 15 expressions take 50 µs. So are names that ranks share.
    """
    table = kind_table()
    codes = {name: at for at, name in enumerate(table.names)}
    of_categories = [kind_of_category(category) for category in index.categories]
    decided = np.array([-1 if kind is None else codes[kind.name] for kind in of_categories], np.int16)
    by_category, known = decided[categories], _kinds_of_names(index, table)
    numbers = distinct(names[by_category < 0])
    numbers = numbers[known[numbers] < 0]
    texts = index.strings(numbers)
    table.look_at(texts if table.own_rows else ())
    known[numbers] = [codes[_kind_of_name(text, table)] for text in texts]
    return np.where(by_category < 0, known[names], by_category).astype(np.uint8)


@held_by_name
def _kind_of_name(name: str, table: KindTable) -> str:
    return table.kind_of(name).name


@cached_per_object()
def _kinds_of_names(index: Index, table: KindTable) -> AnyArray:
    """Return the kind of each string of an index as far as it was asked for, else -1."""
    return np.full(index.length("strings.offset"), -1, np.int16)
