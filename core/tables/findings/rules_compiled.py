"""Rules about compiled code: torch.compile, its graphs and Triton."""

from __future__ import annotations

from typing import Final

from .rule import GUIDE, OWN, PYTORCH, Rule

COMPILED_RULES: Final = (
    Rule(
        "graph-breaks",
        "Nested compiled regions",
        "a compiled region lies in another: a graph break or a disabled region; the time of the outer one "
        "outside compiled graphs is claimed",
        PYTORCH,
        "TORCH_LOGS=graph_breaks names the lines; torch.compile(fullgraph=True) refuses them.",
        {},
        always=True,
    ),
    Rule(
        "recompiled",
        "Recompiled",
        "one frame runs with several compile ids (the number after the slash grows)",
        f"{PYTORCH}; TORCH_LOGS=recompiles",
        "TORCH_LOGS=recompiles names the guard that failed: mark sizes dynamic, keep constants constant.",
        {},
        always=True,
    ),
    Rule(
        "compile-time",
        "Compilation in the trace",
        "dynamo, AOT or inductor compile while the trace is recorded",
        PYTORCH,
        "Warm up before recording; keep the caches (FX graph cache, TORCHINDUCTOR_CACHE_DIR) between runs.",
        {},
    ),
    Rule(
        "compiled-overhead",
        "Overhead around compiled graphs",
        "cache lookups, bytecode and wrappers before compiled graphs take at least {share} of the time in "
        "compiled regions",
        f"{GUIDE}; the limit is {OWN}",
        "Compile larger regions (the outermost module), avoid graph breaks; it is a price per call, so "
        "larger batches pay it less often.",
        {"share": 0.1},
    ),
    Rule(
        "compiled-slower",
        "Compiled steps are slower",
        "the median step with compiled regions takes longer than the median step without",
        GUIDE,
        "For tiny work the price of each compiled call exceeds what it saves: compile more at once, or not "
        "this part.",
        {},
    ),
    Rule(
        "fused-ops",
        "Matrix products in compiled graphs",
        "compiled graphs call addmm (a product and a sum in one) or bmm",
        GUIDE,
        "Expected: inductor turns add and mm into addmm, and batched products into bmm.",
        {},
        note=True,
    ),
    Rule(
        "triton",
        "Triton kernels",
        "kernels named triton_… run on the device",
        f"{GUIDE}; {PYTORCH}",
        "The name holds the fused operators; the CPU slice of the same name launched it.",
        {},
        note=True,
    ),
)
