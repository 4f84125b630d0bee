"""Damaged and crafted indexes: every command must answer as from the undamaged index, or say what is wrong.

    python -m tests.fuzz.index_damage [SECONDS] [SEED]

`damaged` flips, overwrites, truncates, extends, removes or replaces any file of an index. Checksums no longer
fit, and each command must print what it prints of the undamaged index (it builds it again), or end with one
clear line. `crafted` changes values and makes every checksum fit; then answers may be others, but nothing may
fail with anything but a clear line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.waiting import PATIENCE_S
from tracelane.core.index.format import LONG, NONE, TABLES
from tracelane.core.index.store import checksum_of, table_file
from tracelane.core.index.version import MANIFEST
from tracelane.core.tables.frame import cached
from tracelane.tui.cli.main import main

OUT = "{out}"
"""In a command's place: a file that it writes, which is compared as well."""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("view", "--width", "120", "--height", "40"),
    ("view", "--width", "90", "--height", "30", "--from", "+40us", "--to", "+90us", "--search", "a"),
    ("view", "--width", "100", "--height", "50", "--where", "dur>1us"),
    ("info", "--json"),
    ("chain", "--name", "kernel|gemm|copy", "--all", "--json"),
    ("cut", "--from", "+10us", "--to", "+200us", "-o", OUT),
    ("range", "--format", "json"),
    ("slices", "--format", "csv"),
    ("slices", "--where", "dur>2us arg.n>1", "--format", "json"),
    ("ops", "--format", "json"),
    ("ops", "--by", "step", "--format", "json"),
    ("steps", "--format", "json"),
    ("breakdown", "--format", "json"),
    ("kernels", "--format", "json"),
    ("idle", "--format", "json"),
    ("launches", "--format", "json"),
    ("sections", "--format", "json"),
    ("ranks", "--format", "json"),
    ("findings", "--format", "json"),
    ("memory", "--format", "json"),
    ("compile", "--format", "json"),
    ("report",),
    ("summary", "--json"),
    ("telemetry", "--json"),
)
NEWS = re.compile(
    r'^ *(?:tracelane: )?\S*: its index was damaged .* rebuilt\n|"[^"]*index was damaged[^"]*"', re.M
)
UNEXPECTED = "should not have happened"
SECONDS_EACH = 30.0
"""A command on a trace as small as these that works longer hangs."""
EXTREMES = (0, 1, 2, 63, 64, 255, 256, LONG, NONE, 1 << 31, (1 << 31) - 1, 1 << 61, (1 << 63) - 1, -1, -2)


@dataclass
class Findings:
    """What was tried and what went wrong."""

    cases: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str
    written: bytes = b""
    seconds: float = 0.0


def event(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def small_trace() -> dict[str, Any]:
    """Return a trace with something of everything that an index has a column for."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
    ]
    for step in range(4):
        at = 100.0 * step
        events.append(event(f"ProfilerStep#{step}", at, 95, cat="user_annotation"))
        for n in range(12):
            start, number = at + 8 * n, 100 * step + n
            args = {"External id": number, "n": n, "Sequence number": number, "Input Dims": [[n, 2]]}
            events.append(event(f"aten::op{n % 5}", start, 7, cat="cpu_op", args=args))
            launch = {"correlation": number}
            events.append(event("cudaLaunchKernel", start + 1, 2, cat="cuda_runtime", args=launch))
            flow = {"cat": "ac2g", "name": "ac2g", "id": number}
            events.append({"ph": "s", "pid": 1, "tid": 1, "ts": start + 1, **flow})
            work = {"correlation": number, "stream": 7, "device": 0, "grid": [1, n, 1], "block": [64, 1, 1]}
            kind = {"cat": "gpu_memcpy" if n % 6 == 5 else "kernel", "pid": 0, "tid": 7}
            events.append(event(f"gemm_kernel{n % 3}", start + 4, 6, args={**work, "bytes": 4096}, **kind))
            events.append({"ph": "f", "bp": "e", "pid": 0, "tid": 7, "ts": start + 4, **flow})
        memory = {
            "Total Allocated": 1000 * step,
            "Bytes": 512,
            "Addr": step,
            "Device Id": 0,
            "Device Type": 1,
        }
        fields = {"pid": 1, "tid": 1, "s": "t", "cat": "cpu_instant_event"}
        events.append({"ph": "i", "name": "[memory]", "ts": at + 9, "args": memory, **fields})
        events.append({"ph": "C", "name": "power", "pid": 0, "ts": at, "args": {"W": 40.5 + step, "V": 1}})
        events.append({"ph": "b", "cat": "net", "name": "request", "id": step, "pid": 1, "ts": at + 3})
        events.append({"ph": "e", "cat": "net", "name": "request", "id": step, "pid": 1, "ts": at + 50})
        events.append({"ph": "B", "name": "outer", "pid": 1, "tid": 2, "ts": at + 1})
        events.append({"ph": "E", "pid": 1, "tid": 2, "ts": at + 60})
        events.append(event("overlaps", at + 55, 20, tid=2))
    events.append({"ph": "B", "name": "unclosed", "pid": 1, "tid": 2, "ts": 390})
    events += [event(f"small{n % 7}", 0.9 * n, 0.5, tid=3, cat=f"c{n % 3}") for n in range(5000)]
    events.append(event("long", 0, 9e9, tid=4))
    return {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}


def write_trace(path: Path) -> Path:
    path.write_text(json.dumps(small_trace()), encoding="utf-8")
    return path


# -- running commands ---------------------------------------------------------------------------------------


def run(command: Sequence[str], trace: Path, index_dir: Path) -> Answer:
    """Run a command in this process; an error that main does not expect is part of its standard error."""
    written = index_dir.parent / "written.json"
    written.unlink(missing_ok=True)
    name, *options = (str(written) if word == OUT else word for word in command)
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    # A picture waits until all is counted, however much else the machine does.
    patient = mock.patch("tracelane.tui.cli.view.MAX_WAIT_S", PATIENCE_S)
    with patient, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([name, str(trace), *options, "--index-dir", str(index_dir)])
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            code = 70
            err.write(f"{UNEXPECTED}: {error!r}")
    data = written.read_bytes() if written.exists() else b""
    return Answer(code, out.getvalue(), err.getvalue(), data, time.process_time() - began)


def judged(before: Answer, now: Answer, crafted: bool) -> str:
    """Return what is wrong with an answer, "" where nothing is."""
    if UNEXPECTED in now.err or "Traceback" in now.err:
        return now.err.strip()[-300:]
    if now.seconds > SECONDS_EACH:
        return f"took {now.seconds:.1f} s"
    if crafted:
        return ""
    if (now.code, _without_news(now.out), now.written) == (before.code, before.out, before.written):
        return ""
    if now.code and not now.out and len(now.err.splitlines()) == 1:
        return ""  # one clear line
    return f"another answer with exit code {now.code}: {now.err.strip()[:200]}"


def _without_news(out: str) -> str:
    """Return an answer without the note that an index was rebuilt."""
    return NEWS.sub("", out)


# -- damaging -----------------------------------------------------------------------------------------------


def index_folder(index_dir: Path) -> Path:
    return next(index_dir.rglob(MANIFEST)).parent


def damaged(folder: Path, chance: random.Random) -> str:
    """Damage one file of an index, whose checksums stay what they were; return what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = chance.choice(files)
    name = str(path.relative_to(folder))
    kind = chance.choice(("flip", "flip", "flip", "overwrite", "truncate", "extend", "remove", "replace"))
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    if kind == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "overwrite":
        length = min(chance.choice((1, 2, 4, 8, 64)), len(data) - at)
        new = chance.choice((b"\0" * length, b"\xff" * length, chance.randbytes(length)))
        if data[at : at + length] == new:
            new = bytes(byte ^ 0xA5 for byte in new)
        data[at : at + length] = new
    elif kind == "truncate":
        del data[at:]
    elif kind == "extend":
        data += chance.randbytes(chance.choice((1, 4, 8, 4096)))
    path.unlink()
    if kind == "replace":
        how = chance.choice(("folder", "link", "pipe", "empty"))
        if how == "folder":
            path.mkdir()
        elif how == "link":
            path.symlink_to("/etc/passwd")
        elif how == "pipe":
            os.mkfifo(path)
        else:
            path.touch()
        return f"{name} replaced by {how}"
    if kind != "remove":
        path.write_bytes(data)
    return f"{name} {kind} at {at}"


# -- crafting -----------------------------------------------------------------------------------------------


def crafted(folder: Path, chance: random.Random) -> str:
    """Change values of an index and make all its checksums fit; return what was done."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    kind = chance.choice(("column", "column", "column", "table", "table", "manifest", "length"))
    if kind == "column":
        what = _craft_column(folder, manifest, chance)
    elif kind == "table":
        what = _craft_table(folder, manifest, chance)
    elif kind == "length":
        what = _craft_length(folder, manifest, chance)
    else:
        what = _craft_manifest(manifest, chance)
    _seal(folder, manifest)
    return what


def sealed_again(folder: Path) -> None:
    """Make all checksums of an index those of what lies there."""
    _seal(folder, json.loads((folder / MANIFEST).read_bytes()))


def _seal(folder: Path, manifest: Any) -> None:
    columns = manifest.get("columns") if isinstance(manifest, dict) else None
    for name, entry in columns.items() if isinstance(columns, dict) else ():
        with contextlib.suppress(OSError, KeyError, TypeError, ValueError):
            raw = (folder / f"{name}.{entry['dtype']}").read_bytes()
            entry["crc"] = [zlib.crc32(raw[at : at + (1 << 20)]) for at in range(0, len(raw), 1 << 20)]
    tables = manifest.get("tables") if isinstance(manifest, dict) else None
    for name, entry in tables.items() if isinstance(tables, dict) else ():
        with contextlib.suppress(OSError, TypeError, ValueError):
            entry["crc"] = zlib.crc32((folder / table_file(name)).read_bytes())
    if isinstance(manifest, dict):
        manifest["checksum"] = checksum_of(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _extreme(dtype: np.dtype[Any], chance: random.Random) -> Any:
    if dtype.kind == "f":
        return chance.choice((0.0, -1.0, 1e308, float("inf"), float("-inf"), float("nan"), 5e-324))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    value = chance.choice((*EXTREMES, low, high, chance.randint(0, 5000)))
    return min(max(value, low), high)


def _craft_column(folder: Path, manifest: dict[str, Any], chance: random.Random) -> str:
    names = [name for name, entry in manifest["columns"].items() if entry["length"]]
    name = chance.choice(names)
    dtype = np.dtype(manifest["columns"][name]["dtype"])
    path = folder / f"{name}.{manifest['columns'][name]['dtype']}"
    values = np.fromfile(path, dtype)
    how = chance.choice(("one", "some", "all", "swap", "shift", "reverse"))
    if how == "one":
        values[chance.randrange(len(values))] = _extreme(dtype, chance)
    elif how == "some":
        for _ in range(min(20, len(values))):
            values[chance.randrange(len(values))] = _extreme(dtype, chance)
    elif how == "all":
        values[:] = _extreme(dtype, chance)
    elif how == "swap":
        a, b = chance.randrange(len(values)), chance.randrange(len(values))
        values[[a, b]] = values[[b, a]]
    elif how == "shift":
        with np.errstate(over="ignore"):
            values += np.array(chance.choice((1, 2, 64))).astype(dtype)
    else:
        values = values[::-1]
    values.tofile(path)
    return f"{name} {how}"


def _craft_table(folder: Path, manifest: dict[str, Any], chance: random.Random) -> str:
    name = chance.choice([name for name in TABLES if manifest["tables"][name]["length"]])
    table = np.fromfile(folder / table_file(name), TABLES[name])
    names = TABLES[name].names
    assert names is not None
    key = chance.choice(names)
    table[key][chance.randrange(len(table))] = _extreme(table[key].dtype, chance)
    table.tofile(folder / table_file(name))
    return f"{name}.{key}"


def _craft_length(folder: Path, manifest: dict[str, Any], chance: random.Random) -> str:
    """Make a column shorter or longer, or leave it out, with a manifest that says so."""
    name = chance.choice([name for name, entry in manifest["columns"].items() if entry["length"]])
    entry = manifest["columns"][name]
    path = folder / f"{name}.{entry['dtype']}"
    values = np.fromfile(path, entry["dtype"])
    how = chance.choice(("shorter", "longer", "none", "left out"))
    if how == "left out":
        del manifest["columns"][name]
        return f"{name} left out"
    if how == "shorter":
        values = values[: chance.randrange(len(values))]
    elif how == "longer":
        values = np.concatenate([values, values[:1]])
    else:
        values = values[:0]
    values.tofile(path)
    entry["length"] = len(values)
    return f"{name} {how}"


def _craft_manifest(manifest: dict[str, Any], chance: random.Random) -> str:
    """Replace a value somewhere in the manifest."""
    deep: Any = []
    for _ in range(chance.choice((1, 900))):
        deep = [deep]
    values = (None, True, -1, 0, 1 << 62, 1 << 70, 10**400, 1e400, "", "x" * 300, [], {}, [1], {"a": 1}, deep)
    value: Any = manifest
    path: list[str] = []
    while isinstance(value, dict | list) and value and (not path or chance.random() < 0.8):
        parent = value
        key: Any = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        path.append(str(key))
        value = parent[key]
    new = chance.choice(values)
    if chance.random() < 0.15:
        del parent[key]
        return f"manifest {'.'.join(path)} removed"
    parent[key] = new
    return f"manifest {'.'.join(path)} = {str(new)[:40]}"


# -- the loop -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def home(folder: Path) -> Iterator[None]:
    """Use no folder of the user's."""
    names = {
        name: str(folder / name.lower()) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    }
    with mock.patch.dict(os.environ, {**names, "HOME": str(folder)}):
        yield


def fuzz(
    seconds: float, seed: int, folder: Path, report: Callable[[str], None] = print, most: int = sys.maxsize
) -> Findings:
    """Damage and craft indexes for so long, `most` of them; what went wrong is reported at once."""
    chance = random.Random(seed)
    findings = Findings()
    trace = write_trace(folder / "trace.json")
    index_dir, pristine = folder / "index", folder / "pristine"
    with home(folder), mock.patch.object(cached, "MIN_SLICES", 1):
        before = {command: run(command, trace, index_dir) for command in COMMANDS}
        before = {command: run(command, trace, index_dir) for command in COMMANDS}  # with derived files
        for command, answer in before.items():
            if UNEXPECTED in answer.err:
                findings.wrong.append(f"{' '.join(command)} of the undamaged index: {answer.err}")
        shutil.copytree(index_dir, pristine, symlinks=True)
        until = time.monotonic() + seconds
        for _ in range(most):
            if time.monotonic() > until:
                break
            case = chance.randrange(1 << 48)
            one = random.Random(case)
            shutil.rmtree(index_dir)
            shutil.copytree(pristine, index_dir, symlinks=True)
            craft = one.random() < 0.5
            what = (crafted if craft else damaged)(index_folder(index_dir), one)
            for command in one.sample(COMMANDS, 3):
                findings.cases += 1
                wrong = judged(before[command], run(command, trace, index_dir), craft)
                if wrong:
                    line = f"case {case}: {what}: {' '.join(command)}: {wrong}"
                    findings.wrong.append(line)
                    report(line)
    return findings


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
    with tempfile.TemporaryDirectory() as name:
        result = fuzz(seconds, seed, Path(name))
    print(f"seed {seed}: {result.cases} answers in {seconds:.0f} s, {len(result.wrong)} wrong")
    sys.exit(bool(result.wrong))
