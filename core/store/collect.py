"""Collecting summaries of many ranks: by this process, one of several shards, or workers of a cluster; what a
store keeps of one rank: enough to compare it with all others and to draw it, without its trace.
"""

from __future__ import annotations

import logging
import os
import posixpath
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import AnyArray, distinct
from ..base.errors import TracelaneError, UnreadableError, UsageError
from ..base.installed import install_hint
from ..base.numbers import whole_number
from ..base.private import is_own_folder
from ..index.captures import Choice, captures_of, choose, members_of
from ..index.file_facts import file_facts
from ..index.indexing import cached_index, ingest_index
from ..index.inputs import STDIN, check_there, expanded
from ..index.member import NO_FACTS
from ..index.opening import NEWEST, NO_EVENTS, resolve_files
from ..index.options import DEFAULT_OPTIONS, IndexOptions
from ..index.store import Index
from ..read.source import Source, open_source
from ..read.urls import is_url
from ..tables.compare.comparable import losses_of, working_devices
from ..tables.device.kernels import kernels
from ..tables.findings.forms import findings_object
from ..tables.findings.judge import findings
from ..tables.frame.frame import Frame
from ..tables.frame.frame_columns import work_of
from ..tables.frame.scope import Scope
from ..tables.peers.messages import messages_of
from ..tables.ranks.rank_groups import host_of_source, process_groups
from ..tables.ranks.ranks import RankDevices
from ..tables.steps.steps import steps
from ..trace import Trace, trace_of
from ..trace.alignment import wall_base
from ..trace.collectives import Collectives, collectives_of
from ..trace.step_choice import find_steps
from .groups import (
    IDLE,
    KERNEL_NUMBERS,
    LINE_CELLS,
    NOT_KNOWN,
    NOTHING,
    OTHER,
    STEP_NUMBERS,
    Columns,
    RankSummary,
    update_groups,
)
from .indexes import write_index
from .location import (
    GROUPS,
    INDEXES,
    RANKS,
    UNREADABLE_STATE,
    RecordName,
    StoreLocation,
    records_in,
    short_hash,
    state_hash,
    write_store_manifest,
)

MIN_ROOM = 32 << 10
ROOM_SHARE = 200
"""A summary takes MIN_ROOM or a 200th of its trace, whichever is more; so does its copy in a group."""
MAX_VALUES = 1 << 17
"""Values of a column at most, so that those of a group can be read back (`MAX_PART`)."""
EVIDENCE = 3
SIZES: Sequence[Mapping[str, int]] = (
    {},
    {"kernels": 1000},
    {"kernels": 300},
    {"kernels": 100},
    {"kernels": 30},
    {"kernels": 30, "collectives": 20_000},
    {"kernels": 30, "collectives": 5_000},
    {"kernels": 10, "collectives": 1_000},
)
"""The most rows that a summary holds of a table: tried one after another until it fits."""


def summarised(trace: Trace, facts: Mapping[str, Any], trace_bytes: int) -> RankSummary:
    """Return the summary of a trace of one rank; `facts` say which file it is.

    It takes no more bytes than there is room for: the kernels that take least and the last collectives
    are left out for that, and the facts say so. Raises Cancelled.
    """
    room, whole = max(MIN_ROOM, trace_bytes // ROOM_SHARE), _whole(trace, facts)
    for size in SIZES:
        summary = whole.shortened(size)
        longest = max(len(values) for rows in summary.tables.values() for values in rows.values())
        if longest <= MAX_VALUES and len(summary.to_bytes()) <= room:
            break
    return summary


def _whole(trace: Trace, facts: Mapping[str, Any]) -> RankSummary:
    """Return all that is known of a rank, from which a summary keeps what fits."""
    scope, index, member = Scope(trace), trace.indexes[0], trace.members[0]
    work, span = work_of(scope), trace.opening_span
    level, collectives = collectives_of(index)
    known, device_work = find_steps(trace, 0), kernels(scope)
    facts = {
        **facts,
        "rank": member.rank if member.rank is not None else facts.get("rank"),
        "world": member.world,
        "host": host_of_source(trace, 0),
        "base_ns": wall_base(index),
        "span": list(span),
        "origin_ns": trace.span[0],
        "devices": asdict(RankDevices.of(work)),
        "lacks": losses_of(scope, 0),
        "working_devices": working_devices(scope),
        "level": level,
        "groups": [
            [group.name, group.description, [[run.start, run.stop, run.step] for run in group.runs]]
            for group in process_groups(index.distributed, member.rank)
        ],
        "choice": "" if known is None else known.choice,
        "reason": "" if known is None else known.reason,
    }
    tables: dict[str, Columns] = {
        "steps": NOTHING["steps"],
        **_tables_of_collectives(trace, collectives),
        "line": _device_line(work, span),
        "kernels": {
            **{key: device_work.texts(key) for key in ("name", "type")},
            **{key: device_work.numbers(key) for key in KERNEL_NUMBERS},
        },
    }
    if known is not None:
        table = steps(scope)
        times = {"position": known.positions, "start": known.starts, "end": known.ends}
        every = {key: np.asarray(table.data[key], np.float64) for key in STEP_NUMBERS}
        numbers = {key: np.nan_to_num(every[key], nan=NOT_KNOWN).astype(np.int64) for key in every}
        tables["steps"] = {"label": list(known.labels), "group": list(known.groups), **times, **numbers}
    judged = findings(scope)
    few = tuple(replace(finding, evidence=finding.evidence[:EVIDENCE]) for finding in judged.findings)
    return RankSummary(facts, findings_object(replace(judged, findings=few), 0), tables)


def _tables_of_collectives(trace: Trace, collectives: Collectives) -> dict[str, Columns]:
    """Return when each collective of a rank ran, what it moved and which family it is of."""
    moved = messages_of(trace, 0, collectives.positions)
    messages = list(dict.fromkeys(moved))
    return {
        "collectives": {
            "start": collectives.starts,
            "end": collectives.ends,
            "family": collectives.family,
            "number": collectives.number,
            "position": collectives.positions,
            "message": np.array([messages.index(one) for one in moved], np.int64),
        },
        "messages": {
            "kind": [one.kind for one in messages],
            "dtype": [one.dtype for one in messages],
            "size": np.array([-1 if one.size is None else one.size for one in messages], np.int64),
            "group_size": np.array([one.group_size or -1 for one in messages], np.int64),
        },
        "families": {
            "group": [group for group, _ in collectives.families],
            "name": [name for _, name in collectives.families],
            "sequenced": np.array(collectives.sequenced, np.int64),
        },
    }


def _device_line(work: Frame, span: tuple[int, int]) -> Columns:
    """Return by cell of the span what runs longest on the devices, and for how much of the cell (of 255)."""
    length = max(1, span[1] - span[0])
    edges = np.array([span[0] + length * cell // LINE_CELLS for cell in range(LINE_CELLS + 1)], np.int64)
    low, high = edges[:-1], edges[1:]
    kinds = np.minimum(work.type.astype(np.int64) + 1, OTHER)
    times = np.zeros((OTHER + 1, LINE_CELLS), np.int64)
    for kind in distinct(kinds).tolist():
        times[kind] = work.union(kinds == kind).covered(low, high)
    longest: AnyArray = np.where(times.max(axis=0) > 0, times.argmax(axis=0), IDLE).astype(np.uint8)
    shares = np.ceil(255.0 * work.union().covered(low, high) / np.maximum(high - low, 1))
    return {"kind": longest, "busy": np.clip(shares, 0, 255).astype(np.uint8)}


TEMPORARY = "tracelane-collect-"
TURNS = 3
"""So often traces are collected whose summaries turn out to be damaged."""


class RankJob(NamedTuple):
    """One trace to be collected, as it travels to a worker."""

    path: str
    name: str  # relative to where the traces lie
    rank: int | None  # as its name tells
    layout: str  # in the parallel layout, as its name tells
    store: str
    there: tuple[RecordName, ...]  # its summaries that the store has
    with_index: bool
    options: IndexOptions
    is_named: bool  # by the user, not found in a folder


class Collected(NamedTuple):
    """What became of a trace: the name of its summary, and why it could not be read."""

    name: str
    record: RecordName | None  # None where workers were lost, and of what is no trace
    unreadable: str = ""
    is_new: bool = True
    skipped: str = ""  # why a file of a folder is no trace
    removed: tuple[RecordName, ...] = ()  # summaries of what was a trace before


class Plan(NamedTuple):
    """The traces to collect, and those left out with the reason."""

    jobs: tuple[RankJob, ...]
    notes: tuple[str, ...] = ()
    traces: str = ""  # where they lie, relative to the store; "" where that is no relative path


@dataclass(frozen=True)
class Shard:
    """One of several processes that share the work, numbered from 0."""

    number: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that I/N means. Raises UsageError."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal()) or not whole_number(
            number
        ) < whole_number(count):
            raise UsageError(f"--shard {text}: write I/N with I from 0 to N - 1, as 0/16")
        return cls(whole_number(number), whole_number(count))


ALL_WORK = Shard()
Engine = Callable[[Sequence[RankJob]], Iterator[Collected]]
"""Runs jobs anywhere, and yields what became of each in any order."""


def planned(
    paths: Sequence[str],
    store: str,
    *,
    shard: Shard = ALL_WORK,
    choice: Choice = NEWEST,
    with_index: bool = False,
    options: IndexOptions = DEFAULT_OPTIONS,
) -> Plan:
    """Return what a shard has to collect. Only names are looked at; where they make several captures the
    files are, as what is no trace makes none. Raises UnreadableError, UsageError.
    """
    if STDIN in paths:
        raise UsageError("standard input (-) cannot be collected: name files or folders")
    check_there(paths)
    files = [str(file) for file in expanded(list(paths))]
    members = members_of(files, lambda path: NO_FACTS)
    notes: tuple[str, ...] = ()
    if any(member.rank is not None for member in members) and choice.capture != "all":
        captures = captures_of(members)
        if len(captures) > 1:
            chosen = resolve_files(paths, choice, options.index_dir)
            for member in chosen.members:
                if isinstance(member.source, Source):
                    member.source.close()
        else:
            chosen = choose(captures, choice)
        members, notes = list(chosen.members), chosen.notes
    root = _root(paths, [str(member.path) for member in members])
    location = StoreLocation(store)
    there: dict[str, list[RecordName]] = {}
    for record in records_in(location):
        there.setdefault(record.name, []).append(record)
    ordered = sorted(members, key=lambda member: (member.rank is None, member.rank or 0, str(member.path)))
    jobs = []
    for member in ordered:
        path = str(member.path)
        name = path[len(root) :].lstrip("/") or posixpath.basename(path)
        known = tuple(there.get(short_hash(name.encode()), ()))
        is_named = path in paths
        jobs.append(
            RankJob(path, name, member.rank, member.layout, store, known, with_index, options, is_named)
        )
    return Plan(tuple(jobs[shard.number :: shard.count]), notes, _hint(root, store))


def collect(plan: Plan, store: str, engine: Engine) -> Iterator[Collected]:
    """Collect what is planned; yields what became of each trace as it comes. Groups are written at the end;
    where a summary turns out to be damaged then, its trace is collected, and yielded, once more.

    Raises TracelaneError where the store cannot be written, Cancelled.
    """
    location = StoreLocation(store)
    sweep_leftovers()
    for folder in ("", RANKS, GROUPS, INDEXES):
        location.sweep(folder)
    write_store_manifest(location, plan.traces)
    jobs: Sequence[RankJob] = plan.jobs
    for _ in range(TURNS):
        groups = set()
        for collected in engine(jobs):
            if collected.record is not None:
                groups.add(collected.record.group)
            groups |= {record.group for record in collected.removed}
            yield collected
        damaged = {record.name for record in update_groups(location, groups)}
        jobs = [job._replace(there=()) for job in plan.jobs if short_hash(job.name.encode()) in damaged]
        if not jobs:
            break


def sweep_leftovers() -> None:
    """Remove the indexes that killed workers of this user left in the folder for temporary files."""
    for path in Path(gettempdir()).glob(f"{TEMPORARY}*"):
        number = path.name.removeprefix(TEMPORARY).partition("-")[0]
        if not number.isdecimal() or not is_own_folder(path):
            continue
        try:
            os.kill(whole_number(number), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (OSError, OverflowError):
            continue  # somebody else's process has the number now


def one_after_another(jobs: Sequence[RankJob]) -> Iterator[Collected]:
    return map(collect_rank, jobs)


def collect_rank(job: RankJob) -> Collected:
    """Write the summary of one trace, unless it is there. Raises TracelaneError where that fails. What is no
    trace is skipped, as it is where a folder is opened, unless it was named.
    """
    location, name = StoreLocation(job.store), short_hash(job.name.encode())
    facts: dict[str, Any] = {"name": job.name, "rank": job.rank, "place": job.layout}
    source = None
    try:
        source = open_source(job.path, ts_unit=job.options.ts_unit)
        state = state_hash(source.fingerprint)
        same = next((record for record in job.there if record.state == state), None)
        if same is not None and not job.with_index:
            return Collected(job.name, same, is_new=False)
        if not job.is_named and not file_facts(source, job.options.index_dir).has_events:
            return _skipped(location, job, NO_EVENTS)
        record, summary = _summary(job, source, name, state, facts)
    except UnreadableError as error:
        reason = str(error).removeprefix(f"{job.path}: ")
        if source is None and not job.is_named:
            return _skipped(location, job, reason)
        summary, state = RankSummary({**facts, "unreadable": reason}), UNREADABLE_STATE
        record = RecordName(job.rank, name, state, short_hash(summary.to_bytes()))
    location.write(f"{RANKS}/{record}", summary.to_bytes())
    _remove_others(location, job, record)
    return Collected(job.name, record, str(summary.facts.get("unreadable", "")))


def _skipped(location: StoreLocation, job: RankJob, reason: str) -> Collected:
    _remove_others(location, job, None)
    return Collected(job.name, None, is_new=False, skipped=reason, removed=job.there)


def _remove_others(location: StoreLocation, job: RankJob, record: RecordName | None) -> None:
    """Remove the summaries that the store has of a trace in other states."""
    for other in job.there:
        if other != record:
            location.remove(f"{RANKS}/{other}")


def _summary(
    job: RankJob, source: Source, name: str, state: str, facts: dict[str, Any]
) -> tuple[RecordName, RankSummary]:
    """Return the summary of a trace; an index that is not in the cache is gone afterwards."""
    facts = {**facts, "bytes": source.size}
    with TemporaryDirectory(prefix=f"{TEMPORARY}{os.getpid()}-") as folder:
        index = _index(job, source, Path(folder))
        trace = trace_of(job.path, index)
        try:
            summary = summarised(trace, facts, source.size)
            rank = summary.facts["rank"]
            record = RecordName(rank, name, state, short_hash(summary.to_bytes()))
            if job.with_index:
                write_index(StoreLocation(job.store), record, index)
        finally:
            trace.close()
    return record, summary


def _index(job: RankJob, source: Source, folder: Path) -> Index:
    options = job.options
    index = None if options.force else cached_index(source, options.index_dir)
    if index is not None:
        return index
    own = IndexOptions(folder, options.decoder, options.threads)  # the unit is the source's
    return ingest_index(source, own if options.index_dir is None else options)


def _root(paths: Sequence[str], files: Sequence[str]) -> str:
    """Return the folder that names are relative to: the one named, else the one that holds all files."""
    if (
        len(paths) == 1
        and (is_url(paths[0]) or os.path.isdir(paths[0]))
        and paths[0].rstrip("/") not in files
        and not set("*?[") & set(paths[0])
    ):
        return paths[0].rstrip("/")
    folders = [posixpath.dirname(file) for file in files]
    if len(set(folders)) == 1:
        return folders[0]
    common = posixpath.commonprefix([f"{folder}/" for folder in folders])
    return common[: common.rfind("/")]


def _hint(root: str, store: str) -> str:
    """Return where the traces lie as seen from the store, "" where one of them is far from the other."""
    if is_url(root) != is_url(store):
        return ""
    if is_url(root):
        near = posixpath.dirname(root.rstrip("/")) == posixpath.dirname(store.rstrip("/"))
        return f"../{posixpath.basename(root.rstrip('/'))}" if near else ""
    return os.path.relpath(os.path.realpath(root or "."), os.path.realpath(store))


CLUSTER_EXTRA = "distributed"
LOCAL = "local:"


def cluster_engine(address: str) -> Engine:
    """Return the engine of `--cluster`: local:N for N processes on this machine, else a scheduler's address.

    Raises UsageError where it means nothing, or where the package is missing.
    """
    workers = 0
    if address.startswith(LOCAL):
        text = address.removeprefix(LOCAL)
        if not text.isdecimal() or not 0 < whole_number(text) <= 1024:
            raise UsageError(f"--cluster {address}: write local:N with a number of processes")
        workers = whole_number(text)
    elif "://" not in address:
        raise UsageError(f"--cluster {address}: write local:N, or a scheduler's address as tcp://host:8786")
    try:
        import distributed
    except ImportError:
        raise UsageError(f"--cluster needs dask.distributed: {install_hint(CLUSTER_EXTRA)}") from None

    def run(jobs: Sequence[RankJob]) -> Iterator[Collected]:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with ExitStack() as stack:
            yield from _results(distributed, _client(distributed, address, workers, stack), jobs)

    return run


def _client(distributed: Any, address: str, workers: int, stack: ExitStack) -> Any:
    """Return a client that ends with the stack, and with it the cluster where it has one of its own."""
    try:
        if workers:
            quiet = dict.fromkeys(("dashboard_address", "worker_dashboard_address"))
            quiet |= {"silence_logs": logging.CRITICAL, "threads_per_worker": 1, "processes": True}
            local = distributed.LocalCluster(n_workers=workers, **quiet)
            return stack.enter_context(distributed.Client(stack.enter_context(local)))
        return stack.enter_context(distributed.Client(address, timeout="30s"))
    except (OSError, TimeoutError) as error:
        raise TracelaneError(f"--cluster {address}: no scheduler answers ({error})") from None


def _results(distributed: Any, client: Any, jobs: Sequence[RankJob]) -> Iterator[Collected]:
    """Yield results as they come; a rank whose workers were lost again and again is one that is not read."""
    futures = {
        client.submit(collect_rank, job, pure=False, key=f"rank-{number}-{job.name}"): job
        for number, job in enumerate(jobs)
    }
    for future in distributed.as_completed(list(futures)):
        job = futures.pop(future)
        error = future.exception()
        if error is None:
            yield future.result()
        elif isinstance(error, distributed.scheduler.KilledWorker):
            yield Collected(job.name, None, "the workers that read it were lost, possibly for lack of memory")
        elif isinstance(error, TracelaneError):
            raise error
        else:
            yield Collected(job.name, None, f"{type(error).__name__}: {error}")
        future.release()
