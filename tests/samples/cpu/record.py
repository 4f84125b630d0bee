"""Records the samples of this folder with the PyTorch that runs it, each with what key_averages says of it.

    python record.py [training] [compiled] [first_call] [threads] [ranks]

Each program writes RELEASE_NAME.pt.trace.json.gz and RELEASE_NAME.averages.json.gz where it is started;
zopfli packed them smaller. Recorded were 2.1.2 (with numpy below 2), 2.13.0, and 2.14.1 without `first_call`,
on a CPU with Python 3.11. `ranks` are two processes that talk over gloo; `compiled` and `first_call` need a
C++ compiler.

A row of the averages is [key, user annotation, count, total ns, own ns, bytes, own bytes], by input shapes or
stack with these as text at its end. Times are those of PyTorch, rounded to ns.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

RELEASE = "torch_" + ".".join(torch.__version__.split("+")[0].split(".")[:2])
CPU = [ProfilerActivity.CPU]


def averages(rows: Any, more: str = "") -> list[list[Any]]:
    """Return the rows of key_averages as they are kept, with one more attribute as text."""
    return [
        [
            row.key,
            bool(getattr(row, "is_user_annotation", False)),
            row.count,
            round(row.cpu_time_total * 1000),
            round(row.self_cpu_time_total * 1000),
            getattr(row, "cpu_memory_usage", 0),
            getattr(row, "self_cpu_memory_usage", 0),
            *([";".join(row.stack) if more == "stack" else str(row.input_shapes)] if more else []),
        ]
        for row in rows
    ]


def written(recording: Any, name: str, *more: str) -> None:
    """Write a recording and its averages; the trace as PyTorch wrote it, packed as small as gzip can."""
    trace = Path(f"{RELEASE}_{name}.pt.trace.json")
    recording.export_chrome_trace(str(trace))
    trace.with_name(f"{trace.name}.gz").write_bytes(gzip.compress(trace.read_bytes(), 9, mtime=0))
    trace.unlink()
    tables = {"averages": averages(recording.key_averages())}
    if "input_shapes" in more:
        rows = recording.key_averages(group_by_input_shape=True)
        tables["averages_by_shape"] = averages(rows, "input_shapes")
    if "stack" in more:
        tables["averages_by_stack5"] = averages(recording.key_averages(group_by_stack_n=5), "stack")
    text = json.dumps({"torch": torch.__version__, **tables}, indent=0)
    Path(f"{RELEASE}_{name}.averages.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def training() -> None:
    """Three steps of a small model, of which two are recorded, with stacks, shapes, memory and modules."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    with profile(
        activities=CPU,
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda recording: written(recording, "training", "input_shapes", "stack"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as recording:
        for _ in range(3):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(inputs), labels)
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            recording.step()


class Broken(nn.Module):
    """A model whose graph breaks once."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(48, 48), nn.Linear(48, 48)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Two layers with a graph break between them."""
        between = self.first(inputs).relu()
        torch._dynamo.graph_break()
        return self.second(between).relu()


def compiled() -> None:
    """Two calls of a compiled model with a graph break, and two of one that is compiled again."""
    import torch._dynamo

    model = torch.compile(Broken(), dynamic=False)
    model(torch.randn(16, 48)).sum().backward()
    with profile(activities=CPU, record_shapes=True) as recording:
        for _ in range(2):
            with record_function("warm"):
                model(torch.randn(16, 48)).sum().backward()
        recompiled = torch.compile(lambda value: value.sin() + value.cos(), dynamic=False, backend="eager")
        for size in (3, 4):
            with record_function("recompiles"):
                recompiled(torch.randn(size))
    written(recording, "compiled", "input_shapes")


def first_call() -> None:
    """The first call of a compiled function, in which it is compiled."""
    import torch._dynamo

    function = torch.compile(lambda value: value.sin().relu())
    with profile(activities=CPU) as recording, record_function("first call"):
        function(torch.rand((2, 2), requires_grad=True)).sum().backward()
    written(recording, "first_call")


def threads() -> None:
    """Annotations and operators on two threads besides the first."""

    def work(number: int) -> None:
        with record_function(f"worker {number}"):
            for _ in range(3):
                torch.mm(torch.randn(40, 40), torch.randn(40, 40)).relu()

    options: dict[str, Any] = {}
    with contextlib.suppress(TypeError):  # an early release records the first thread alone
        options["experimental_config"] = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(activities=CPU, **options) as recording:
        workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for worker in workers:
            worker.start()
        work(9)
        for worker in workers:
            worker.join()
    written(recording, "threads")


def rank(number: int, ranks: int) -> None:
    """One rank of data-parallel training over gloo; the second is slower in each step."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=number, world_size=ranks)
    torch.manual_seed(number)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        activities=CPU,
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda recording: written(recording, f"rank{number}", "input_shapes"),
        record_shapes=True,
    ) as recording:
        for _ in range(3):
            if number == 1:
                torch.mm(torch.randn(500, 500), torch.randn(500, 500))
            model(torch.randn(16, 64)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            dist.all_reduce(torch.ones(100))
            dist.barrier()
            recording.step()
    dist.destroy_process_group()


def ranks() -> None:
    """Two ranks in processes of their own."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29544", "GLOO_SOCKET_IFNAME": "lo"}
    torch.multiprocessing.spawn(rank, args=(2,), nprocs=2)


PROGRAMS = {program.__name__: program for program in (training, compiled, first_call, threads, ranks)}

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
