"""A value that is no JSON costs no more than itself, whatever it is, wherever it stands, whoever reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.part_rows import whole
from tests.corpus import in_turn
from tests.reading import index_contents, read_parts, read_text
from tracelane.core.index.file_facts import file_facts
from tracelane.core.index.member import FileFacts
from tracelane.core.read.reader import ReadOptions
from tracelane.core.read.repair import RepairedEvent, repair
from tracelane.core.read.source import open_source

FORMS = (
    "0x7f", "0x7fffe0a1b2c3", "-nan(ind)", "1.#INF", "-1.#QNAN", "1.#IND00", "7,5", "1,048,576", "31%", "",
    "(1, 1, 1)", "fp32", "torch.float32", "<object at 0x7f>", "[1, 1", "(1, (2, 3))", "12 MiB", "1_000",
    "tensor([1., 2.])", "&amp;", "7.5.1", "--", "1e", "\\N", "None (unset)", "'single'", "12us", "1.234,5",
    "undefined", 'unquoted"',
)  # fmt: skip
"""What writers print where a value belongs. One of them opens a bracket that nothing closes."""
BROKEN_BRACKETS = ("[1, 1",)
SPOTS = {
    "first argument": '"args": {"a": %s, "b": 2}',
    "inner argument": '"args": {"x": 1, "a": %s, "b": [1, 2]}',
    "last argument": '"args": {"b": 2, "a": %s}',
    "in an object": '"args": {"o": {"a": %s, "c": 1}, "b": 2}',
    "its last": '"args": {"o": {"c": 1, "a": %s}, "b": 2}',
    "name": '"name": %s, "args": {"b": 2}',
    "category": '"cat": %s, "args": {"b": 2}',
    "tid": '"tid": %s, "args": {"b": 2}',
    "id": '"id": %s, "args": {"b": 2}',
    "unknown key, last": '"args": {"b": 2}, "z": %s',
}
LAYOUTS = {
    "spaced": lambda text: text,
    "compact": lambda text: text.replace('": ', '":').replace(', "', ',"'),
    "lines": lambda text: text.replace(', "', ',\n      "').replace("}", "\n    }"),
}
KEYS = {"ph": '"X"', "name": '"op"', "pid": "1", "tid": "2", "ts": "%d", "dur": "5"}


def event(number: int, fields: str) -> str:
    """Return the text of a slice with some fields in place of, or beside, the usual ones."""
    usual = {key: value for key, value in KEYS.items() if f'"{key}": ' not in fields}
    head = ", ".join(f'"{key}": {value}' for key, value in usual.items())
    return "{" + head.replace("%d", str(1000 + number)) + ", " + fields + "}"


def write(path: Path, events: list[str]) -> Path:
    path.write_text('{"traceEvents": [\n' + ",\n".join(events) + "\n]}", encoding="utf-8")
    return path


def sound(number: int) -> str:
    return event(number, '"args": {"a": 1, "b": 2}')


@pytest.mark.slow
@pytest.mark.parametrize(("spot", "layout"), in_turn(SPOTS, LAYOUTS, 2))
def test_a_bad_value_costs_itself_alone(spot: str, layout: str, tmp_path: Path) -> None:
    """Each form in each spot: all events are read, all other fields kept, the event counts as repaired, and
    both readers make the same index of all forms.
    """
    path, events = tmp_path / "t.json", [sound(0)]
    for number, form in enumerate(form for form in FORMS if form not in BROKEN_BRACKETS):
        damaged = LAYOUTS[layout](event(2 * number + 1, SPOTS[spot] % form))
        (item,) = repair(damaged.encode())
        assert isinstance(item, RepairedEvent), (form, item)
        assert item.value["ts"] == 1001 + 2 * number and item.value["args"]["b"] in (2, [1, 2]), form
        write(path, [sound(0), damaged, sound(2)])
        results = [read_parts(path, ReadOptions(decoder=name))[0] for name in ("native", "python")]
        for result in results:
            assert (result.events, result.counts["phase.X"], result.counts["repaired"]) == (3, 3, 1), form
            assert [problem.kind for problem in result.problems] == ["repaired"], form
        events += [damaged, sound(2 * number + 2)]
    write(path, events)
    assert read_parts(path, ReadOptions())[0].counts["repaired"] == len(events) // 2
    assert index_contents(path, tmp_path, "native") == index_contents(path, tmp_path, "python")


@pytest.mark.parametrize("form", FORMS)
def test_the_text_of_a_bad_value_is_kept(form: str) -> None:
    """What is no number stays as it was written; a decimal comma is one number."""
    (item,) = repair(event(1, SPOTS["inner argument"] % form).encode())
    if form in BROKEN_BRACKETS:
        assert not isinstance(item, RepairedEvent)
        return
    assert isinstance(item, RepairedEvent)
    value = item.value["args"]["a"]
    assert value == (7.5 if form == "7,5" else form.rstrip('"'))
    assert item.why == (
        "decimal commas: LC_NUMERIC of the writer"
        if form == "7,5"
        else "a value that is no JSON, kept as its text"
    )


TIMES = {
    "1234567,891": 1234567.891,
    "0,125": 0.125,
    "7,5": 7.5,
    "-7,25": -7.25,
    "1,048,576": 1048576,
    "1,048.5": 1048.5,
    "1.048,5": 1048.5,
    "0x7f": 127,
    "127UL": 127,
    "7.5f": 7.5,
    "1,234": None,
    "31%": None,
    "-nan(ind)": None,
    "": None,
    "12 us": None,
    "(5)": None,
}


@pytest.mark.parametrize("key", ["ts", "dur"])
@pytest.mark.parametrize("form", TIMES)
def test_a_time_is_read_where_it_can_mean_one_thing_only(form: str, key: str, tmp_path: Path) -> None:
    """A comma before three digits may part thousands, and a word is no time: such an event has none."""
    path = write(tmp_path / "t.json", [sound(0), event(1, f'"{key}": {form}, "args": {{"b": 2}}')])
    contents = []
    for decoder in ("native", "python"):
        result, parts = read_parts(path, ReadOptions(decoder=decoder))
        assert result.counts["repaired"] == 1
        expected = TIMES[form]
        counts = dict(result.counts)
        assert counts.get("no_usable_time", 0) == (expected is None)
        if expected is not None:
            time = whole(parts)["timed"][1][6 if key == "ts" else 7]
            assert time == max(round(expected * 1000), 0 if key == "dur" else -(10**9))
        contents.append(index_contents(path, tmp_path, decoder))
    assert contents[0] == contents[1]


def test_commas_of_one_event_mean_the_same() -> None:
    """Where one comma of an event is a decimal one, those before three digits are, too."""
    (item,) = repair(event(1, '"ts": 6869136,070, "dur": 3,125, "args": {"x": 7,757576}').encode())
    assert isinstance(item, RepairedEvent)
    assert float(item.value["ts"]) == 6869136.070 and float(item.value["dur"]) == 3.125
    assert item.value["args"] == {"x": 7.757576}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key", ["name", "pid", "tid", "ts", "dur", "args", "b"])
def test_a_key_may_lack_its_opening_quote(key: str, layout: str) -> None:
    """The key is read as if its quote stood there, and the event counts as repaired."""
    text = LAYOUTS[layout](sound(1))
    (item,) = repair(text.replace(f'"{key}"', f'{key}"').encode())
    assert isinstance(item, RepairedEvent)
    assert item.value == json.loads(text) and item.why == "a key without its opening quote"


ENVELOPE_FORMS = ("0x7f", "-nan(ind)", "1.#INF", "31%", "(1, 1, 1)", "fp32", "12 MiB", "1,048,576")


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("form", [*ENVELOPE_FORMS, "7,5"])
def test_a_bad_value_around_the_events_costs_itself_alone(form: str, behind: bool) -> None:
    """Beside the events and inside of their keys, a bad value is kept as text, and all others as they are."""
    keys = (
        f'"a": 1, "bad": {form}, "b": {{"c": 2, "bad": {form}, "d": [3, {{"bad": {form}, "e": 4}}]}}, "f": 5'
    )
    events = f'"traceEvents": [{sound(1)}]'
    read = read_text(f"{{{events + ', ' + keys if behind else keys + ', ' + events}}}".encode())
    value: Any = 7.5 if form == "7,5" else form
    inner = {"c": 2, "bad": value, "d": [3, {"bad": value, "e": 4}]}
    assert read.envelope.values == {"a": 1, "bad": value, "b": inner, "f": 5}
    assert len(read.elements) == 1


PG_CONFIGS = (
    "[{pg_name: default, ranks: [0, 1]}]",
    '[{"pg_name": "the "default" one", "ranks": [0, 1]}]',
    "[{'pg_name': 'default', 'ranks': [0, 1]}]",
    "<ProcessGroup>",
    '"unclosed, "x": [',
    "[[[",
)


@pytest.mark.parametrize("where", ["before", "behind", "only behind"])
@pytest.mark.parametrize("config", PG_CONFIGS)
def test_the_rank_is_read_beside_a_broken_value(config: str, where: str, tmp_path: Path) -> None:
    """A rank that stands in readable text is read, whatever is wrong with the values around it."""
    rank = '"rank": 1, "world_size": 2'
    info = f'{{"pg_config": {config}, {rank}}}' if where == "behind" else f'{{{rank}, "pg_config": {config}}}'
    events = f'"traceEvents": [{sound(1)}]'
    keys = f'"distributedInfo": {info}'
    path = tmp_path / "nodea_100.1769071195663459011.pt.trace.json"
    path.write_text(
        f"{{{events}, {keys}}}" if where == "only behind" else f"{{{keys}, {events}}}", encoding="utf-8"
    )
    facts = file_facts(open_source(path))
    assert (facts.rank, facts.world) == (1, 2)
    assert facts != FileFacts()
