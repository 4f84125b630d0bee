"""The command table holds everything together: bindings, actions, footer, help, palette, docs/keys.md."""

from __future__ import annotations

from collections import Counter

import pytest

from tracelane.core.base.errors import UsageError
from tracelane.core.tables.registry import PANELS
from tracelane.core.trace import Trace
from tracelane.tui.actions import view
from tracelane.tui.actions.table import MOVES, TOGETHER
from tracelane.tui.app import TracelaneApp
from tracelane.tui.command_line import Order, completions, parse_order
from tracelane.tui.commands.table import COMMANDS, GROUPS, commands_table, with_keys
from tracelane.tui.config import Config
from tracelane.tui.keys import (
    OWN_KEYS,
    PANE_COMMANDS,
    clashes,
    footer_keys,
    keys_text,
    unbound_message,
)
from tracelane.tui.screens.lists import help_rows, listed, pane_rows
from tracelane.tui.screens.main import bindings
from tracelane.tui.session import Session


def test_every_command_does_something() -> None:
    """Every command is either a move of the Session or carried out by a controller, never both."""
    app = TracelaneApp(Trace(()), Session(view.view_of(0, 1, 1), 0), Config())
    for entry in COMMANDS:
        assert (entry.id in MOVES) != (entry.id in app.handlers), entry.id
        assert bool(entry.forms) == (entry.id in app.verbs), entry.id
    assert set(MOVES) <= {entry.id for entry in COMMANDS}
    assert set(TOGETHER) <= set(MOVES)


def test_no_key_and_no_id_twice() -> None:
    """No two commands share an id or a key."""
    ids = [entry.id for entry in COMMANDS]
    assert len(ids) == len(set(ids))
    assert clashes({}) == []


def test_a_key_given_twice_is_told() -> None:
    """A user's key that another command has is complained about, by both names."""
    (complaint,) = clashes({"pin": "w"})
    assert "zoom-in" in complaint and "pin" in complaint


def test_bindings_carry_ids() -> None:
    """Every command is a binding with its id, so that a keymap can change it or give it a key."""
    assert {binding.id for binding in bindings()} == {entry.id for entry in COMMANDS}


def test_footer_has_five_to_eight_keys_that_fit_80_columns() -> None:
    """The footer shows a few keys, all of them on a line of 80 cells."""
    keys = footer_keys({})
    assert 5 <= len(keys) <= 8
    assert len("  ".join(f"{key} {title}" for key, title in keys)) <= 80


def test_help_lists_every_command() -> None:
    """Every command stands in the list once for each way to give it, below the heading of its task."""
    rows = listed(help_rows({}), "")
    assert {row.command_id for row in rows if row.command_id} == {entry.id for entry in COMMANDS}
    assert [row.title for row in rows if row.is_heading] == [
        *(group.task for group in GROUPS),
        "Mouse",
        "Times",
    ]
    keyed = [entry for entry in COMMANDS if keys_text(entry, {})]
    assert len(keyed) > 50
    for entry in keyed:
        assert any(row.keys == keys_text(entry, {}) and row.title == entry.title for row in rows)


def test_help_shows_remapped_keys() -> None:
    """A command whose key the user changed is shown with the user's key."""
    (row,) = [row for row in help_rows({"pin": "z,ctrl+z"}) if row.command_id == "pin"]
    assert row.keys == "z ctrl+z"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("zoom in", "zoom-in"),
        ("thread", "quiet"),
        ("track", "lane-up"),
        ("arrow", "launch"),
        ("power", "details"),
        ("idle", "next-gap"),
        ("slowest", "longest"),
        ("undo", "back"),
        ("screenshot", "save"),
        ("difference", "compare"),
        ("operators", "panel-ops"),
        ("by thread", "panel-tree-threads"),
        ("peak", "panel-memory-peak"),
    ],
)
def test_the_list_is_filtered(query: str, first: str) -> None:
    """What fits best stands first, found by its name or by another word for it."""
    assert listed(help_rows({}), query)[0].command_id == first


def test_what_does_not_fit_is_not_listed() -> None:
    """Letters that merely occur in this order somewhere are no match."""
    assert listed(help_rows({}), "zqxj") == []
    assert len(listed(help_rows({}), "zoom")) < 20


def test_used_most_first() -> None:
    """Without a query the commands used most come first, under their own heading."""
    rows = listed(help_rows({}), "", ["pin", "mark"])
    assert [row.title for row in rows[:3]] == ["Used most", "Pin the lane", "Mark"]


def test_about_45_keys() -> None:
    """Commands with a letter, sign or digit of their own are few enough to be known."""
    chief = {entry.keys[0] for entry in COMMANDS if entry.keys and len(entry.keys[0]) == 1}
    every = {key for entry in COMMANDS for key in entry.keys if len(key) == 1}
    assert len(chief) <= 46
    assert every - chief == set("+-")  # other keys of what w and s do


def test_help_begins_with_the_keys_of_the_pane() -> None:
    """Each part of the screen has its keys first, then come the commands used most, then all by task."""
    rows = help_rows({})
    for part, own in OWN_KEYS.items():
        pane = pane_rows(rows, part)
        assert [row.keys for row in pane[: len(own)]] == [keys for keys, _, _ in own]
        assert [row.command_id for row in pane[len(own) :]] == list(PANE_COMMANDS[part])
        listing = listed(rows, "", ["pin"], pane)
        assert listing[0].title == "Here" and listing[1 : len(pane) + 1] == pane
        assert listing[len(pane) + 1].title == "Used most" and listing[len(pane) + 2].command_id == "pin"


def test_table_has_a_row_per_command() -> None:
    """The Markdown table has every command, its name and group, with five bars a line."""
    table = commands_table()
    titles = (entry.title for entry in COMMANDS)
    for name in (*(group.task for group in GROUPS), *titles, *(f"`{entry.id}`" for entry in COMMANDS)):
        assert name in table
    assert all(line.count("|") == 5 for line in table.splitlines())


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("only nccl|Stream", Order("only", "nccl|Stream")),
        ("only", Order("only", "")),
        (":goto +3ms", Order("go-to", "+3ms")),
        ("goto", Order("go-to")),
        ("hide", Order("hide")),
        ("hide worker", Order("hide", "worker")),
        ("zoom-in-far", Order("zoom-in-far")),
        ("forw", Order("forward")),
        ("q", Order("quit")),
        ("ruler wall", Order("ruler", "wall")),
        ("ruler", Order("ruler")),
        ("show all", Order("show-all")),
        ("copy view", Order("copy-view")),
    ],
)
def test_command_line(line: str, order: Order) -> None:
    """A line is a verb with its argument, or the name of a command, also shortened where that is clear."""
    assert parse_order(line) == order


@pytest.mark.parametrize("line", ["", "frobnicate", "zoom", "pin it"])
def test_command_line_refuses(line: str) -> None:
    """What is no command is refused with what there is."""
    with pytest.raises(UsageError):
        parse_order(line)


def test_every_completion_is_understood() -> None:
    """What the line offers to complete is understood."""
    for word in completions():
        parse_order(f"{word}x" if word.endswith(" ") else word)


def test_unbound_keys_are_told() -> None:
    """A key without a command points to the help, a letter of another alphabet to arrows and palette."""
    assert "{help}" in unbound_message("B", "B")
    foreign = unbound_message("ц", "ц")
    assert "arrows" in foreign and "{palette}" in foreign
    assert "{palette}" not in unbound_message("é", "é")


def test_every_panel_of_an_analysis_has_a_command() -> None:
    """A panel of the registry is shown by a command of its name, without a line of the viewer's."""
    ids = {entry.id for entry in COMMANDS}
    assert not [name for name in PANELS if f"panel-{name}" not in ids]


def test_texts_are_filled_in() -> None:
    """A command without a key is named as it is typed, braces that name none stay."""
    assert with_keys("{search} searches, {marks} lists, {x}", {}) == "/ searches, :marks lists, {x}"
    assert with_keys("{search} searches", {"search": "ctrl+f,/"}) == "ctrl+f searches"


def test_the_beginning_of_several_names_is_answered_with_them() -> None:
    """What several commands begin with is none: three of them are proposed, or all where there are fewer."""
    names = {line.strip() for line in completions() if " " not in line.strip()}
    proposed = Counter[int]()
    for beginning in sorted({name[:size] for name in names for size in (1, 2, 4)} - names):
        alike = sorted(name for name in names if name.startswith(beginning))
        try:
            parse_order(beginning)
        except UsageError as error:
            before, last = str(error).partition("did you mean ")[2].removesuffix("?").rsplit(" or ", 1)
            assert [*before.split(", "), last] == alike[:3]
            proposed[min(len(alike), 3)] += 1
    assert proposed[2] > 3 and proposed[3] > 3
