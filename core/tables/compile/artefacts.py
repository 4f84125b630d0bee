"""What a compiler wrote beside a trace: the source lines, FX nodes and aten ops that each kernel was made of,
and why a graph broke or was compiled again.

Read are, by name and content:
- PyTorch's structured log (TORCH_TRACE) and what tlparse makes of it: torch/_logging/structured.py
- folders of TORCH_COMPILE_DEBUG=1, and output_code.py: get_kernel_metadata in torch/_inductor/utils.py
- logs of TORCH_LOGS=graph_breaks,recompiles,output_code
- spyre_provenance.json of torch-spyre: torch_spyre/_inductor/schemas/spyre_provenance_v1.schema.json
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...base.errors import UnreadableError
from ...base.numbers import json_value, whole_number
from ...base.private import stays_in
from ...base.units import count_of

MAX_FILES, MAX_DEPTH = 5000, 6
MAX_ENTRIES = 20_000
"""How many entries of folders are looked at."""
MAX_NAMED = 3
"""Links that are named in a note."""
HEAD = 64 << 10
"""Bytes in which a log shows that a compiler wrote it."""
MAX_BYTES = 64 << 20
"""Bytes; larger files are left out, with a note. Logs may be longer: they are read line by line."""
MAX_LINE_LENGTH = 16 << 20
SOURCE = re.compile(r'File "([^"\n]{1,4096})", line (\d+), in ([^\n]{1,512})\n[ \t]*([^\n]*)')
COMMENT = re.compile(r"\s*# File: ([^\n]{1,4096}):(\d+) in ([^\n,]{1,512}), code: ([^\n]*)")
NODE = re.compile(r"\s*(\w+)(?:: \"[^\"\n]*\")? = ")
KERNEL = re.compile(r"\s*(?:(\w+) = async_compile\.|.{0,400}?(extern_kernels\.\w+)\()")
META = re.compile(r"\s*# (?:Topologically Sorted|Unsorted) Source Nodes: \[(.*)\], Original ATen: \[(.*)\]")
LOGGED = re.compile(
    r"[VIWEC]\d{4} .*?\] (?:\[(\d+)/(\d+)(?:_\d+)?\] )?\[__(graph_breaks|recompiles|output_code)\] ?(.*)"
)
STRUCTURED = re.compile(r"[VIWEC]\d{4} [^\]]*\] (\{.*\})$")
BREAK = re.compile(r"Graph break (?:\([^)\n]*\) )?in user code at (.+):(\d+)")
WHY = re.compile(r"(?:Graph Break )?Reason: *(.*)")
EXPLAINED = re.compile(r"\s*Explanation: *(.*)")
AGAIN = re.compile(r"Recompiling function (\S+) in (.+):(\d+)")
FRAME = re.compile(r"-?_?(\d+)_(\d+)_(\d+)$")
"""The folder that tlparse makes for a compilation: -_FRAME_COMPILE_ATTEMPT."""
SPYRE = re.compile(r"(spyre_kernel_v1_\w+_([a-z2-7]{16}))(?:#\d+)?$")
ON_CPU = re.compile(r"graph_\d+_(cpp_\w+)$")
HANDLE = re.compile(r":\d+$")
KINDS = (
    "dynamo_graph_break_reason",
    "recompile_reasons",
    "inductor_provenance_tracking_kernel_stack_traces",
    "inductor_provenance_tracking_node_mappings",
    "inductor_output_code",
    "output_code",
    "fx_graph_readable",
)
LOGS = {"graph_breaks": KINDS[0], "recompiles": "recompiles", "output_code": "output_code"}
RUN = re.compile(r"run_\d{4}_\d\d_\d\d_")
"""The folder that TORCH_COMPILE_DEBUG makes for a process."""
NAMES = re.compile(rf"(?:{'|'.join(KINDS)}).*\.(?:txt|json|py)$|.*provenance.*\.json$|.*\.log$")
NEAR = re.compile(r"torch_compile_debug|tl_out|.*tlparse.*|.*torch_trace.*")
"""Folders beside a trace that are looked into."""


@dataclass(frozen=True, order=True)
class CodeLine:
    """A line of a program."""

    file: str
    line: int
    function: str = ""
    code: str = ""

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class KernelOrigin(NamedTuple):
    """What one kernel was made of, as far as the artefacts say."""

    graphs: tuple[str, ...] = ()  # "FRAME/COMPILE"
    lines: tuple[CodeLine, ...] = ()
    nodes: tuple[str, ...] = ()  # of the FX graph
    ops: tuple[str, ...] = ()  # aten.…
    artefact: str = ""  # the file that says so

    def joined(self, other: KernelOrigin) -> KernelOrigin:
        """Return what both say, each thing once, in the order in which it was met."""
        graphs, lines, nodes, ops = (
            tuple(dict.fromkeys((*getattr(self, key), *getattr(other, key))))
            for key in ("graphs", "lines", "nodes", "ops")
        )
        return KernelOrigin(graphs, lines, nodes, ops, self.artefact or other.artefact)


class CompileReason(NamedTuple):
    """Why a graph broke ("graph break") or was compiled again ("recompilation")."""

    kind: str
    graph: str
    line: CodeLine | None
    reason: str
    explanation: str = ""


class Artefact(NamedTuple):
    """One artefact: what it is (one of KINDS, or of LOGS), the graph that it is of, and its text."""

    kind: str
    graph: str
    text: str


@dataclass
class Artefacts:
    """All that the files say."""

    origins: dict[str, KernelOrigin] = field(default_factory=dict)
    reasons: dict[CompileReason, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def origin_of(self, name: str) -> KernelOrigin | None:
        """Return the origin of a kernel of a trace. Names of Spyre end with the number of a command, those of
        kernels for the CPU begin with the number of a graph.
        """
        match = SPYRE.match(name) or ON_CPU.match(name)
        return self.origins.get(match[1] if match else name)

    def add(self, kernel: str, origin: KernelOrigin) -> None:
        """Add what a file says of a kernel, whose name may end with the number of its handle."""
        kernel = HANDLE.sub("", kernel)
        known = self.origins.get(kernel)
        self.origins[kernel] = origin if known is None else known.joined(origin)

    def reasons_of(self, graph: str) -> str:
        """Return why a graph broke and was compiled again, in words; none known: nothing."""
        parts = (f"{one.kind}: {one.reason}" for one in self.reasons if one.graph == graph)
        return "; ".join(dict.fromkeys(parts))


def check_path(path: str) -> None:
    """Raise UnreadableError where a file or folder is named that is not there."""
    if path and not os.path.exists(path):
        raise UnreadableError(f"{path}: no such file or folder")


def read_artefacts(folder: str, traces: Iterable[str]) -> Artefacts:
    """Return what the files of a folder (or one file) say, without one those beside the traces.

    Links that lead out of that folder are named, not followed: who sends a folder of traces could otherwise
    have files read that are not in it. Raises UnreadableError where `folder` is not there.
    """
    result = Artefacts()
    check_path(folder)
    parents = dict.fromkeys(Path(trace).absolute().parent for trace in traces if os.path.isfile(trace))
    roots = [Path(folder)] if folder else [*parents]
    files, outside = list[Path](), list[Path]()
    for root in roots:
        for file in _files(root) if folder else _near(root):
            (files if stays_in(file, root) else outside).append(file)
    if outside:
        names = ", ".join(file.name for file in outside[:MAX_NAMED])
        count = count_of(len(outside), "link")
        result.notes.append(f"not followed: {count} that lead{'s' * (len(outside) == 1)} elsewhere ({names})")
    if len(files) > MAX_FILES:
        result.notes.append(f"{len(files) - MAX_FILES:,} more files of a compiler were not read")
    runs = {part for file in files for part in file.parts if RUN.match(part)}
    if len(runs) > 1:
        result.notes.append(
            f"{len(runs)} runs of a compiler are read together: a kernel has the lines of all that name it"
        )
    lines_of: dict[Path, dict[str, CodeLine]] = {}
    for file in sorted(files, key=lambda one: (one.name.startswith("inductor_prov"), str(one)))[:MAX_FILES]:
        try:
            _take_file(file, result, lines_of.setdefault(file.parent, {}))
        except (OSError, UnreadableError) as error:
            result.notes.append(f"{file.name}: not read: {getattr(error, 'strerror', None) or error}")
    return result


def _near(folder: Path) -> Iterator[Path]:
    """Yield the artefacts in the folder of a trace, and in folders there that a compiler or tlparse made; of
    a link to a folder elsewhere the link itself.
    """
    for entry in _entries(folder):
        if not entry.is_dir():
            if NAMES.match(entry.name):
                yield entry
        elif NEAR.match(entry.name):
            yield from _files(entry) if stays_in(entry, folder) else (entry,)


def _files(folder: Path) -> Iterator[Path]:
    """Yield a file, or the artefacts in a folder and below it, of the first MAX_ENTRIES entries."""
    todo, entries = [(folder, 0)], 0
    while todo and entries < MAX_ENTRIES:
        at, depth = todo.pop()
        if not at.is_dir():
            yield at
            continue
        inside = _entries(at)
        entries += len(inside)
        for entry in inside:
            if not entry.is_dir():
                if NAMES.match(entry.name):
                    yield entry
            elif depth < MAX_DEPTH and not entry.is_symlink() and not entry.name.startswith("."):
                todo.append((entry, depth + 1))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _take_file(file: Path, result: Artefacts, lines_of: dict[str, CodeLine]) -> None:
    """Take one file; `lines_of` are the lines of the nodes that files of its folder name.

    Raises OSError, and UnreadableError for what is no file or too large.
    """
    if not file.is_file():
        raise UnreadableError("no file")
    frame = FRAME.search(file.parent.name)
    graph = f"{frame[1]}/{frame[2]}" if frame else ""
    kind = next((kind for kind in KINDS if file.name.startswith(kind)), "")
    with file.open(encoding="utf-8", errors="replace") as stream:
        head = stream.read(HEAD)
        is_log = any(STRUCTURED.match(line) or LOGGED.match(line) for line in head.splitlines())
        if is_log and not kind and file.suffix != ".json":
            stream.seek(0)
            lines = iter(partial(stream.readline, MAX_LINE_LENGTH), "")
            for logged in _entries_of_log(line.rstrip("\n") for line in lines):
                _take(logged, str(file), result, {})
            return
        if file.suffix == ".log":
            return  # of something else
        if file.stat().st_size > MAX_BYTES:
            raise UnreadableError("larger than 64 MB")
        text = head + stream.read()
    if file.suffix == ".json" and not kind:
        _take_spyre(file, text, result)
    elif kind or "async_compile" in text:
        _take(Artefact(kind or "output_code", graph, text), str(file), result, lines_of)


def _take(entry: Artefact, file: str, result: Artefacts, lines_of: dict[str, CodeLine]) -> None:
    """Take one artefact of PyTorch; `lines_of` are the lines of the nodes of its graph."""
    kind, graph, text = entry
    origin = KernelOrigin((graph,) if graph else (), artefact=file)
    match kind:
        case "dynamo_graph_break_reason":
            _take_break(text, graph, result)
        case "recompile_reasons":
            for reason in _strings(_json_of(text) or text.splitlines()):
                result.reasons[CompileReason("recompilation", graph, None, reason.strip())] = None
        case "inductor_provenance_tracking_kernel_stack_traces":
            for kernel, stacks in _mapping(_json_of(text)).items():
                frames = [SOURCE.findall(stack + "\n") for stack in _strings(stacks)]
                lines = tuple(
                    CodeLine(at[0], whole_number(at[1]), at[2], at[3])
                    for at in (one[-1] for one in frames if one)
                )
                result.add(kernel, origin._replace(lines=lines))
        case "inductor_provenance_tracking_node_mappings":
            for kernel, nodes in _mapping(_mapping(_json_of(text)).get("cppCodeToPost")).items():
                names = tuple(_strings(nodes))
                lines = tuple(dict.fromkeys(lines_of[name] for name in names if name in lines_of))
                result.add(kernel, origin._replace(nodes=names, lines=lines))
        case "recompiles":
            _take_again(text.splitlines(), graph, result)
        case "fx_graph_readable":
            lines_of.update(_node_lines(text))
        case _:
            for kernel, nodes, ops in _comments(text):
                result.add(kernel, origin._replace(nodes=nodes, ops=ops))


def _entries_of_log(lines: Iterable[str]) -> Iterator[Artefact]:
    """Yield the artefacts in a log of TORCH_TRACE, whose text is indented below a line of JSON, or of
    TORCH_LOGS, where each line says what it belongs to.
    """
    kind = graph = ""
    body: list[str] = []
    for line in lines:
        if line.startswith("\t"):
            if kind:
                body.append(line[1:])
            continue
        logged, structured = LOGGED.match(line), STRUCTURED.match(line)
        if logged is not None:
            own = LOGS[logged[3]], f"{logged[1]}/{logged[2]}" if logged[1] else ""
            if own != (kind, graph) or BREAK.match(logged[4]) or AGAIN.match(logged[4]):
                if kind:
                    yield Artefact(kind, graph, "\n".join(body))
                (kind, graph), body = own, []
            body.append(logged[4])
        elif structured is not None:
            if kind:
                yield Artefact(kind, graph, "\n".join(body))
            entry, body = _mapping(_json_of(structured[1])), []
            name = str(_mapping(entry.get("artifact")).get("name", ""))
            is_code = "inductor_output_code" in entry
            kind = "inductor_output_code" if is_code else name if name in KINDS else ""
            graph = f"{entry['frame_id']}/{entry.get('frame_compile_id')}" if "frame_id" in entry else ""
    if kind:
        yield Artefact(kind, graph, "\n".join(body))


def _take_break(text: str, graph: str, result: Artefacts) -> None:
    where, why, explained = (pattern.search(text) for pattern in (BREAK, WHY, EXPLAINED))
    if where is None and why is None:
        return
    line = None if where is None else CodeLine(where[1], whole_number(where[2]))
    words = "" if explained is None else explained[1].strip()
    reason = CompileReason("graph break", graph, line, "" if why is None else why[1].strip(), words)
    result.reasons[reason] = None


def _take_again(body: list[str], graph: str, result: Artefacts) -> None:
    where = AGAIN.match(body[0]) if body else None
    line = None if where is None else CodeLine(where[2], whole_number(where[3]), where[1])
    for text in body[1:]:
        if text.lstrip().startswith("- "):
            result.reasons[CompileReason("recompilation", graph, line, text.strip()[2:])] = None


def _node_lines(text: str) -> dict[str, CodeLine]:
    """Return the source line of each node of a readable graph, which stands in a comment above it."""
    lines: dict[str, CodeLine] = {}
    at: CodeLine | None = None
    for line in text.splitlines():
        if (comment := COMMENT.match(line)) is not None:
            at = CodeLine(comment[1], whole_number(comment[2]), comment[3], comment[4])
        elif at is not None and (node := NODE.match(line)) is not None:
            lines[node[1]] = at
    return lines


def _comments(text: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Yield the kernels of generated code that have a comment: name, nodes, aten ops."""
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    for line in text.splitlines():
        if (meta := META.match(line)) is not None:
            nodes, ops = (tuple(part for part in meta[at].split(", ") if part) for at in (1, 2))
        elif (nodes or ops) and (kernel := KERNEL.match(line)) is not None:
            yield kernel[1] or kernel[2], nodes, ops
            nodes = ops = ()


def _take_spyre(file: Path, text: str, result: Artefacts) -> None:
    """Take a provenance file of torch-spyre; of another JSON file only a note of its keys is left."""
    whole = _mapping(_json_of(text))
    if whole.get("schemaVersion") != 1 or "kernelIdentities" not in whole:
        keys = ", ".join(map(str, list(whole)[:6])) or "none"
        result.notes.append(f"{file.name}: not known; its keys are {keys}")
        return
    handles = _mapping(whole.get("handles"))
    for identity in _mapping(whole["kernelIdentities"]).values():
        entry = _mapping(identity)
        lines: dict[CodeLine, None] = {}
        nodes: dict[str, None] = {}
        todo, seen = list(reversed(_strings(entry.get("directHandleIds")))), set[str]()
        while todo:
            number = todo.pop()
            handle = _mapping(handles.get(number))
            if number in seen:
                continue
            seen.add(number)
            source = _mapping(handle.get("source"))
            if isinstance(source.get("file"), str) and isinstance(source.get("start_line"), int):
                lines[CodeLine(source["file"], source["start_line"])] = None
            nodes.update(dict.fromkeys(_strings(handle.get("ir_chain"))))
            todo += reversed(_strings(handle.get("fused_from")))
        origin = KernelOrigin(
            (), tuple(lines), tuple(nodes), tuple(_strings(entry.get("atenOps"))), str(file)
        )
        result.add(str(entry.get("eventNameBase")), origin)


def _json_of(text: str) -> Any:
    try:
        return json_value(text)
    except ValueError:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
