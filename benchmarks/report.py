"""The measurements as Markdown, and into docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN = "<!-- measured: written by benchmarks/run.py --docs -->\n"
END = "<!-- end of measured -->"
HEADING = "## What it costs\n\n"
Row = tuple[str, str]


def markdown(result: dict[str, Any]) -> str:
    """Return all measurements as tables; what was not measured has no row."""
    parts = [_about(result["machine"])]
    if "readers" in result:
        parts.append("\n".join(_readers(result["readers"])))
    for title, rows in (
        ("indexing", [row for facts in result.get("indexing", []) for row in _indexing(facts)]),
        ("a large trace", list(_large(result["large"])) if "large" in result else []),
        ("indexing the same in another form", list(_forms(result.get("forms", [])))),
        ("many of one thing", list(_shapes(result.get("shapes", [])))),
        ("many ranks", list(_ranks(result["ranks"])) if "ranks" in result else []),
        ("reopening", list(_reopening(result.get("reopening", [])))),
        (f"the walk at {_walk_size(result)}", list(_frames(result.get("frames", [])))),
        ("findings", list(_questions(result["findings"])) if "findings" in result else []),
        (_panels_title(result), list(_panels(result["panels"])) if "panels" in result else []),
        ("a slow line", list(_lines(result.get("lines", [])))),
    ):
        if rows:
            table = [
                f"| {title} | measured |",
                "|---|---|",
                *(f"| {what} | {value} |" for what, value in rows),
            ]
            parts.append("\n".join(table))
    return "\n\n".join(parts) + "\n"


def into_document(text: str) -> None:
    """Put the tables between their markers in docs/performance.md, with a heading."""
    document = DOCUMENT.read_text(encoding="utf-8")
    before, rest = document.split(BEGIN, 1)
    DOCUMENT.write_text(
        before + BEGIN + HEADING + text + "\n" + END + rest.split(END, 1)[1], encoding="utf-8"
    )


def _about(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"Measured on {machine['date']} on {machine['processor']} ({machine['architecture']}, "
        f"{machine['cores']} cores, {mb(machine['memory_bytes'])}), {machine['system']}, "
        f"Python {machine['python']}, {versions}; "
        f"load before: {machine['load_before']}."
    )


def _indexing(facts: dict[str, Any]) -> Iterator[Row]:
    size, events, slices = mb(facts["text_bytes"]), facts["events"], facts["slices"]
    yield "trace", f"{facts['trace']}: {size} of JSON, {events:,} events, {slices:,} slices"
    for count, run in facts["workers"].items():
        text = f"{_took(run)}, {mb(run['peak_private_bytes'])} private memory{_of_runs(run)}"
        yield f"index, {count} {'process' if count == '1' else 'workers'}", text
    texts = facts["apart_bytes_per_slice"]
    yield "index", f"{facts['index_bytes_per_slice']} bytes per slice, and {texts} of names and texts"


def _of_runs(run: dict[str, Any]) -> str:
    several = run.get("seconds_of_all", ())
    many = len(several) > 1
    return f"; the median of {len(several)} runs of {several[0]} to {several[-1]} s" if many else ""


def _large(facts: dict[str, Any]) -> Iterator[Row]:
    size, events, slices = mb(facts["bytes"]), facts["events"], facts["slices"]
    yield "trace", f"{size} of JSON, {events:,} events, {slices:,} slices"
    memory = f"{mb(facts['peak_private_bytes'])} private memory"
    yield f"index, {facts['workers']} workers", f"{_took(facts)}, {memory}"
    large, small = facts["cpu_ms_per_mb"], facts["small_cpu_ms_per_mb"]
    times = f"{large / small:.2f} times that of {mb(facts['small_bytes'])}"
    yield "processor time a MB", f"{large} ms, {times}"


def _ranks(facts: dict[str, Any]) -> Iterator[Row]:
    index = facts["index"]
    yield f"index, {facts['ranks']} files, {mb(facts['bytes'])}", _seconds(index)
    for what, key in (("all lanes are drawn", "drawn"), ("all is known", "known")):
        cost = facts[key]
        processor, wall = (cost[unit] / index[unit] for unit in ("cpu_s", "seconds"))
        times = f"{processor:.2f} times the processor time of `index`, {wall:.2f} times its time"
        yield f"viewer without an index, until {what}", f"{_seconds(cost)}; {times}"


def _questions(facts: dict[str, Any]) -> Iterator[Row]:
    size = mb(facts["bytes"])
    yield f"{facts['command']} of {size}, the first time", _seconds(facts["first"])
    yield f"{facts['command']} of {size}, kept beside the index", _seconds(facts["again"])


def _panels(facts: dict[str, Any]) -> Iterator[Row]:
    yield "the viewer until all is known", f"{facts['start_cpu_s']} s"
    for each in facts["panels"]:
        whole = f"complete {each['cpu_s']} s"
        if each.get("rows"):
            whole = f"first rows {each['first_cpu_s']} s, {whole}, {each['rows']:,} rows"
        yield f"`{each['key']}` {each['title']}", whole


def _panels_title(result: dict[str, Any]) -> str:
    slices = result["panels"]["slices"] if "panels" in result else 0
    return f"panels of {slices:,} slices, processor time from the key on"


def _seconds(cost: dict[str, Any]) -> str:
    return f"{cost['seconds']} s ({cost['cpu_s']} s of processor)"


def _readers(rows: list[dict[str, Any]]) -> Iterator[str]:
    titles = ("the same trace, until it can be asked", "version", "seconds", "times the first", "memory")
    yield f"| {' | '.join((*titles, 'lacks', 'is better at'))} |"
    yield "|---|---|---|---|---|---|---|"
    for each in rows:
        if "not_run" in each:
            yield f"| {each['name']} | {each['not_run']} | | | | | |"
            continue
        runs = each["seconds_of_all"]
        spread = f"{runs[0]} to {runs[-1]} in {len(runs)} turns" if len(runs) > 1 else "one run"
        cells = (
            each["name"],
            each["version"],
            f"{each['seconds']} ({spread})",
            f"{each['seconds'] / rows[0]['seconds']:.2f}",
            mb(each["memory_bytes"]),
            each["lacks"],
            each["better"],
        )
        yield f"| {' | '.join(cells)} |"


def _forms(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for each in rows:
        share = each["mb_per_s"] / rows[0]["mb_per_s"]
        yield each["form"], f"{_took(each)} of JSON, {share:.0%} of the first{_of_runs(each)}"


def _shapes(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for each in rows:
        took = f"{each['cpu_s']} s of processor, {mb(each['peak_private_bytes'])} private memory"
        yield f"{each['count']:,} {each['shape']}, {mb(each['bytes'])}", took


def _reopening(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for each in rows:
        size, cpu = mb(each["bytes"]), each["processor_time"]["median_ms"]
        yield f"imports to picture, {size}", f"{_spread(each['to_picture'])}; processor {cpu:.4g} ms"
        for title, took in (("as left", each["reopened"]), ("drawn anew", each["drawn"])):
            text = f"{_spread(took)}; processor {took['processor_ms']:.4g} ms"
            numpy = f"{took['times_numpy']} times `import numpy`, {took['numpy_ms']:.4g} ms"
            yield f"command to picture {title}, {size}", f"{text}; the least is {numpy}"


def _frames(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for each in rows:
        slices = f"{each['slices']:,} slices"
        yield f"key to frame, {slices}", f"{_spread(each['key_to_frame'])} ({each['keys']} keys)"
        yield f"processor time a frame, {slices}", _spread(each["processor_time"])
        size, segments = each["bytes"], each["segments"]
        written = f"{size['mean'] / 1000:.1f} KB, at most {size['most'] / 1000:.1f} KB"
        yield f"written a frame, {slices}", f"{written}; {segments['mean']:.0f} segments"
        yield f"static picture, {slices}", _spread(each["static_picture"])
        yield f"arguments of a slice, {slices}", _spread(each["arguments"])
    if len(rows) > 1:
        small, large = rows[0], rows[-1]
        times = large["slices"] / max(1, small["slices"])
        costs = [each["key_to_frame"]["median_ms"] for each in (large, small)]
        yield f"{times:.0f} times the slices", f"{costs[0] / costs[1]:.2f} times the time to the frame"


def _lines(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for each in rows:
        speed = f"{each['bits_per_s'] / 1e6:g} Mbit/s, {each['delay_s'] * 1000:.0f} ms each way"
        paced = "" if each["answers"] else ", a terminal that does not answer"
        yield (
            f"{speed}{paced}",
            f"{each['lag_s']} s until the picture stands still; viewer {mb(each['viewer_private_bytes'])}",
        )


def _took(cost: dict[str, Any]) -> str:
    return f"{cost['seconds']} s ({cost['cpu_s']} s of processor), {cost['mb_per_s']} MB/s"


def _walk_size(result: dict[str, Any]) -> str:
    return next((str(each["size"]) for each in result.get("frames", [])), "")


def _spread(times: dict[str, float]) -> str:
    return f"{times['median_ms']:.4g} ms, 95 % within {times['p95_ms']:.4g} ms"


def mb(size: float) -> str:
    """Return bytes as MB, for people."""
    return f"{size / 1e6:,.0f} MB" if size >= 10e6 else f"{size / 1e6:,.1f} MB"
