"""What the demo runs: three training steps of a six-layer transformer on two AIUs, with one thing wrong.

Both ranks go through the same code; rank 1 is a little slower. In the second step rank 0's data loader is
late: its device stands still, and rank 1 waits for it in the gradients' all-reduce.
"""

from __future__ import annotations

from .rank import MS, Rank

LAYERS = 6
STEPS = (3, 4, 5)
STALL_STEP, STALL_RANK, STALL_US = 4, 0, 148_000
HIDDEN, INNER, TOKENS, VOCABULARY = 2048, 5504, 512, 32_000
CALL = "torch/nn/modules/module.py(1776): _call_impl"
WRAPPED = "torch/nn/modules/module.py(1765): _wrapped_call_impl"

# kernel, µs on the device, tenths of a watt above idle
FORWARD = {
    "norm": ("sdsc_fused_add_mean_mul_pow_rsqrt_0", 950, 120),
    "qkv": ("sdsc_fused_mm_1", 4_600, 330),
    "attention": ("sdsc_fused_bmm_div_softmax_2", 5_900, 290),
    "out": ("sdsc_fused_add_mm_3", 2_300, 310),
    "gate": ("sdsc_fused_mm_mul_silu_4", 7_800, 350),
    "down": ("sdsc_fused_add_mm_5", 4_100, 340),
}
BACKWARD = {
    "down": ("sdsc_fused_mm_t_6", 7_900, 345),
    "gate": ("sdsc_fused_mm_mul_silu_backward_7", 14_700, 355),
    "out": ("sdsc_fused_mm_t_8", 4_500, 315),
    "attention": ("sdsc_fused_bmm_softmax_backward_9", 11_200, 300),
    "qkv": ("sdsc_fused_mm_t_10", 8_900, 335),
    "norm": ("sdsc_fused_mul_native_layer_norm_backward_11", 1_800, 130),
}
SHAPES = {
    "qkv": ([TOKENS, HIDDEN], [HIDDEN, 3 * HIDDEN]),
    "out": ([TOKENS, HIDDEN], [HIDDEN, HIDDEN]),
    "gate": ([TOKENS, HIDDEN], [HIDDEN, 2 * INNER]),
    "down": ([TOKENS, INNER], [INNER, HIDDEN]),
}
NODES = {
    "norm": "NativeLayerNormBackward0",
    "attention": "ScaledDotProductAttentionBackward0",
}
BUCKETS = {3: 4_194_304 * 9, 0: 4_194_304 * 10}
"""Gradients are reduced after these layers' backward: elements of the bucket."""
REDUCE_NS = 11 * MS
BACKWARD_FRAMES = ("train.py(74): backward_pass", "torch/_tensor.py(625): backward")


def train(ranks: tuple[Rank, ...]) -> None:
    """Let the ranks train; afterwards they hold everything that their profilers saw."""
    for rank in ranks:
        rank.work(900 + 350 * rank.number)
    for step in STEPS:
        _step(ranks, step)


def _step(ranks: tuple[Rank, ...], step: int) -> None:
    starts = [_Open(rank, f"ProfilerStep#{step}") for rank in ranks]
    forward: dict[tuple[int, int, str], int] = {}
    for rank in ranks:
        _load(rank, step)
        _forward(rank, forward)
    outer = [_Open(rank, "## backward ##", BACKWARD_FRAMES) for rank in ranks]
    for rank in ranks:
        rank.tid = rank.autograd
        _backward_of(rank, "loss", "NllLossBackward0", ("sdsc_fused_nll_loss_backward_13", 1_300, 140))
    for layer in reversed(range(LAYERS)):
        for rank in ranks:
            for part in BACKWARD:
                _backward(rank, forward, layer, part)
            rank.allocate(-24)
        if layer in BUCKETS:
            _reduce(ranks, step, layer)
    for rank in ranks:
        rank.tid = rank.main
    for opened in reversed(outer):
        opened.close()
    for rank in ranks:
        _optimize(rank)
    for opened in starts:
        opened.close()


class _Open:
    """An annotation (and Python frames) that spans the work of several functions."""

    def __init__(self, rank: Rank, name: str, frames: tuple[str, ...] = ()) -> None:
        self._rank, self._tid = rank, rank.tid
        self._open = [rank.frame(frame) for frame in frames]
        self._open.append(rank.op(name, "user_annotation"))
        for context in self._open:
            context.__enter__()

    def close(self) -> None:
        """End the annotation on the thread that began it."""
        self._rank.tid = self._tid
        for context in reversed(self._open):
            context.__exit__(None, None, None)


def _load(rank: Rank, step: int) -> None:
    late = step == STALL_STEP and rank.number == STALL_RANK
    with (
        rank.frame("train.py(58): next_batch"),
        rank.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation"),
        rank.frame("torch/utils/data/dataloader.py(741): __next__"),
        rank.frame("torch/utils/data/dataloader.py(801): _next_data"),
    ):
        with rank.frame("dataset.py(33): read_shard" if late else "dataset.py(27): __getitem__"):
            rank.work(STALL_US if late else 2_400)
        with rank.frame("torch/utils/data/_utils/collate.py(398): default_collate"):
            for _ in range(3):
                rank.leaf("aten::stack", 40)
    with rank.op("aten::to"), rank.op("aten::_to_copy"):
        rank.leaf("aten::empty_strided", 9)
        with rank.op("aten::copy_"):
            rank.copy(4, inwards=True)


def _forward(rank: Rank, forward: dict[tuple[int, int, str], int]) -> None:
    with (
        rank.frame("train.py(66): forward_pass"),
        rank.op("## forward ##", "user_annotation"),
        rank.frame(WRAPPED),
        rank.frame(CALL),
        rank.frame("nn.Module: Transformer_0", 0),
        rank.frame("model.py(118): forward"),
    ):
        with rank.frame("nn.Module: Embedding_0", 0), rank.op("aten::embedding"):
            rank.leaf("aten::reshape", 5)
            rank.launch("sdsc_fused_embedding_12", 640, 110)
        for layer in range(LAYERS):
            with (
                rank.frame(WRAPPED),
                rank.frame(CALL),
                rank.frame(f"nn.Module: DecoderLayer_{layer}", layer),
                rank.frame("model.py(84): forward"),
            ):
                rank.allocate(24)
                _part(rank, forward, layer, "norm", "RMSNorm")
                with rank.frame(f"nn.Module: Attention_{layer}", layer), rank.frame("model.py(41): forward"):
                    for part in ("qkv", "attention", "out"):
                        _part(rank, forward, layer, part, "Linear" if part != "attention" else "")
                with rank.frame(f"nn.Module: GatedMLP_{layer}", layer), rank.frame("model.py(63): forward"):
                    for part in ("gate", "down"):
                        _part(rank, forward, layer, part, "Linear")
        with rank.frame("nn.Module: Linear_head", 99), rank.op("aten::linear"):
            rank.launch("sdsc_fused_mm_14", 9_200, 345)
        with rank.frame("torch/nn/functional.py(3458): cross_entropy"), rank.op("aten::cross_entropy_loss"):
            rank.leaf("aten::log_softmax", 12)
            rank.launch("sdsc_fused_log_softmax_nll_loss_15", 2_100, 160)


def _part(rank: Rank, forward: dict[tuple[int, int, str], int], layer: int, part: str, module: str) -> None:
    """One piece of a layer: its module's frame, the operators, the launch, and where the gradient starts."""
    name = f"nn.Module: {module}_{layer}" if module else "torch/nn/functional.py(5907): attention"
    with rank.frame(name, layer if module else None):
        rank.sequence += 1
        number = rank.sequence
        forward[rank.number, layer, part] = number
        shapes = ("Input Dims", SHAPES.get(part, ([TOKENS, HIDDEN],)))
        sequence = ("Sequence number", number)
        if part in SHAPES:
            with rank.op("aten::linear", "cpu_op", sequence, shapes):
                rank.work(30)
                with rank.op("aten::t"), rank.op("aten::transpose"):
                    rank.leaf("aten::as_strided", 3)
                with rank.op("aten::matmul"), rank.op("aten::mm", "cpu_op", sequence, shapes):
                    rank.flow("s", "fwdbwd", number)
                    rank.work(60)
                    rank.launch(*FORWARD[part])
        else:
            op = "aten::rms_norm" if part == "norm" else "aten::scaled_dot_product_attention"
            with rank.op(op, "cpu_op", sequence, shapes):
                rank.flow("s", "fwdbwd", number)
                rank.work(80)
                rank.leaf("aten::empty_like", 7)
                rank.launch(*FORWARD[part])
        rank.work(120)


def _backward(rank: Rank, forward: dict[tuple[int, int, str], int], layer: int, part: str) -> None:
    number = forward[rank.number, layer, part]
    _backward_of(rank, part, NODES.get(part, "MmBackward0"), BACKWARD[part], number)


def _backward_of(
    rank: Rank, part: str, node: str, kernel: tuple[str, int, int], number: int | None = None
) -> None:
    facts = () if number is None else (("Sequence number", number), ("Fwd thread id", 1))
    with rank.op(f"autograd::engine::evaluate_function: {node}", "cpu_op", *facts):
        if number is not None:
            rank.flow("f", "fwdbwd", number)
        with rank.op(node, "cpu_op", *facts):
            rank.work(50)
            if part in SHAPES:
                with rank.op("aten::mm", "cpu_op", ("Input Dims", SHAPES[part])):
                    rank.launch(*kernel)
            else:
                rank.launch(*kernel)
    if part in SHAPES:
        with (
            rank.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"),
            rank.op("torch::autograd::AccumulateGrad"),
        ):
            rank.leaf("aten::detach", 6)
    rank.work(90 + 8 * rank.number)


def _reduce(ranks: tuple[Rank, ...], step: int, layer: int) -> None:
    """All-reduce a bucket: every rank's part starts when it is ready, all end together."""
    ready = [rank.collective_ready() + 30_000 for rank in ranks]
    end = max(ready) + ranks[0].noise.around(REDUCE_NS)
    bucket = 2 * (step - STEPS[0]) + (1 if layer == 0 else 0)
    for rank, start in zip(ranks, ready, strict=True):
        rank.all_reduce(bucket, BUCKETS[layer], start, end)


def _optimize(rank: Rank) -> None:
    rank.after_collectives()
    with (
        rank.frame("train.py(79): update"),
        rank.op("Optimizer.step#AdamW.step", "user_annotation"),
        rank.frame("torch/optim/optimizer.py(517): wrapper"),
        rank.frame("torch/optim/adamw.py(243): step"),
    ):
        for group in range(4):
            with rank.op("aten::_fused_adamw_"):
                rank.leaf("aten::lift_fresh", 4)
                rank.launch(f"sdsc_fused_adamw_{16 + group % 2}", 5_200, 210)
    with rank.frame("train.py(82): log_loss"), rank.op("aten::item"), rank.op("aten::_local_scalar_dense"):
        rank.copy(0, inwards=False)
    rank.wait_for_device()
    rank.work(700)
