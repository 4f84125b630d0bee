"""Texts of a trace are only text: on terminals, in JSON, spreadsheets and Markdown; redaction of names."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.tui.small_file import events
from tracelane.core.base.safe_text import (
    csv_line,
    json_text,
    markdown_block,
    markdown_cell,
    markdown_code,
    markdown_words,
    safe,
)
from tracelane.core.export.bundle import Redaction
from tracelane.core.export.formats import as_markdown, pieces_of_csv
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.table import Table
from tracelane.core.trace import Trace, open_trace

ANYTHING = st.text(alphabet=st.characters(exclude_categories=()))
MARKUP = st.text(alphabet="ab1 `|\\<>[]()*_~#!&;:/.@$-=+\n\x1b\u202e")
PLAIN = {"inline", "text", "code_inline", "softbreak", "strong_open", "strong_close"}
"""What a paragraph may hold: links, images and HTML are not in it."""


@given(ANYTHING)
@example("\x7f\x85\u2028\u00a0\ud800\U000e0041")
def test_json_is_exact_and_printable(text: str) -> None:
    """JSON gives back every character, and holds none that is not printable."""
    written = json_text({text: [text]}, indent=1)
    assert json.loads(written) == {text: [text]}
    assert written.replace("\n", "").isprintable()


@given(st.lists(ANYTHING, min_size=1, max_size=4))
def test_csv_is_one_line_that_reads_back(texts: list[str]) -> None:
    """A row of CSV is one line for any reader; ordinary texts read back as they were."""
    line = csv_line(texts)
    assert line.endswith("\n") and len(line.splitlines()) == 1
    assert not {unicodedata.category(each) for each in line[:-1]} & {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    cells = next(csv.reader(io.StringIO(line)))
    assert len(cells) == len(texts)
    for cell, text in zip(cells, texts):
        if text.isascii() and text.isprintable() and not text.lstrip().startswith(tuple("=+-@")):
            assert cell == text


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", " =1+1", "＝1", "\n@x", "=cmd|' /C calc'!A0"],
)
def test_no_cell_is_a_formula(text: str) -> None:
    """What a spreadsheet would calculate is text to it; numbers stay numbers."""
    cell = next(csv.reader(io.StringIO(csv_line([text]))))[0]
    assert cell.lstrip()[0] not in "=+-@\t\r\n＝＋－＠"
    assert csv_line([-5, 1.5, None, "x"]) == "-5,1.5,,x\n"


def test_line_breaks_are_quoted_and_seen() -> None:
    """A bare carriage return is quoted by every version of Python, and written as its number."""
    assert csv_line(["a\rb", "c\nd"]) == '"a⟨U+000D⟩b","c⟨U+000A⟩d"\n'


def _tokens(text: str) -> list[Token]:
    return MarkdownIt("gfm-like").parse(text)


def _inside(tokens: list[Token]) -> set[str]:
    return {child.type for token in tokens for child in token.children or ()}


@given(MARKUP)
@example("[a](http://evil)")
@example("<script src=//x>")
@example("www.evil.com")
@example("``` `` `")
@example("![](x)")
@example("a**b**c __d__ ~~e~~")
@example("---")
@example("&lt;b&gt;")
def test_prose_has_no_markup(text: str) -> None:
    """Words of a trace in a paragraph make no link, no image, no HTML, no heading and no emphasis."""
    tokens = _tokens(f"Before {markdown_words(text)} after\n")
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert _inside(tokens) <= {"text", "code_inline"}
    lines = _tokens(f"Before\n{markdown_words(text)}\n")
    assert not any(token.type.startswith(("heading", "hr", "html", "fence")) for token in lines)


@given(MARKUP)
@example("a|b\\|c\\")
def test_a_cell_stays_in_its_column(text: str) -> None:
    """A cell of a table holds just its text: a bar, a backtick or a backslash opens no other column."""
    line = f"| {markdown_cell(text)} | next |"
    tokens = _tokens(f"| a | b |\n| --- | --- |\n{line}\n")
    cells = [tokens[at + 1] for at, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 2 and cells[1].content == "next"
    assert _inside(cells) <= {"text", "code_inline"}
    drawn = "".join(child.content for child in cells[0].children or ())
    assert drawn.split() == safe(text).split()


@given(MARKUP)
@example("```\n# x\n```")
def test_a_block_holds_its_lines(text: str) -> None:
    """Lines in a block stand as they are; none of them ends it."""
    tokens = _tokens(markdown_block(text) + "\n\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_code_that_is_blank_stays_blank() -> None:
    """There is nothing to set as code in a blank text."""
    assert markdown_code("") == "" and markdown_cell(" ", code=True) == " "


def test_tables_are_harmless_whole() -> None:
    """Title, scope, heading, cells and notes of a table go through the same functions."""
    evil = "=x\x1b]0;t\x07<b>|\u202e"
    table = Table.from_arrays(
        TableSchema("t", evil, (Column(evil, evil, "text"),)), evil, {evil: [evil]}, notes=(evil,)
    )
    csv = "".join(pieces_of_csv(table))
    for text in (csv, as_markdown(table)):
        assert text.replace("\n", "").isprintable()
    assert csv.splitlines()[1].startswith("'=x⟨U+001B⟩]0;t")
    tokens = _tokens(as_markdown(table))
    assert not any(token.type.startswith("html") for token in tokens) and _inside(tokens) <= PLAIN


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("plain", "plain"),
        ("größe 測試 é", "größe 測試 é"),
        ("a\tb\nc\r\nd", "a b c  d"),
        ("\x1b]0;owned\x07", "⟨U+001B⟩]0;owned⟨U+0007⟩"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("a\u202eb\u2066c\u200fd", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩d"),
        ("x\u200by\ufeffz\u200d", "x⟨U+200B⟩y⟨U+FEFF⟩z⟨U+200D⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\x00\x7f", "⟨U+0000⟩⟨U+007F⟩"),
    ],
)
def test_known_troublemakers(raw: str, escaped: str) -> None:
    """Escapes, direction changers and invisible characters are written as their numbers, real text stays."""
    assert safe(raw) == escaped


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_nothing_harmful_remains(text: str) -> None:
    """Whatever comes in, what goes out is encodable and has no control or format characters."""
    cleaned = safe(text)
    cleaned.encode("utf-8")
    assert not {unicodedata.category(c) for c in cleaned} & {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    assert safe(cleaned) == cleaned


KERNEL = "/tmp/torchinductor_jane/inductor-spyre/sdsc_fused_mm_0_434jgp19/bundle.mlir"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A trace of host `build-7`, taken by jane, whose file torch named."""
    path = tmp_path / "build-7_1234.1781947844789580072.pt.trace.json"
    path.write_text(
        json.dumps({"host_name": "build-7", "tw_user": "jane_d", "traceEvents": events()}), encoding="utf-8"
    )
    return open_trace(path, index_dir=tmp_path / "index")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("on build-7 at 10.2.3.44", "on redacted at redacted"),
        ("build-7_1234.178.pt.trace.json", "redacted_1234.178.pt.trace.json"),
        ("by jane_d in rebuild-70", "by redacted in rebuild-70"),
        ("/home/user1/model/run.py(12): step", "/redacted/run.py(12): step"),
        ('"cwd": "/home/user1/x/y", "user": "user1"', '"cwd": "/redacted/y", "user": "redacted"'),
        (KERNEL, "/redacted/sdsc_fused_mm_0_434jgp19/bundle.mlir"),
        ("torch/nn/modules/linear.py(103): forward", "torch/nn/modules/linear.py(103): forward"),
        ("1/2 of 3/4 s/step", "1/2 of 3/4 s/step"),
        ('"ts": 5533068085033.188, "v": "2.9.1"', '"ts": 5533068085033.188, "v": "2.9.1"'),
    ],
)
def test_what_is_hidden(text: str, hidden: str, trace: Trace) -> None:
    """Each kind goes wherever it stands, whole words only."""
    assert Redaction.of(trace)(text) == hidden


def test_words_of_this_machine(trace: Trace) -> None:
    """More words can be given; those too short to mean anyone are not hidden."""
    hide = Redaction.of(trace, ["login3", "me"])
    assert hide("me on login3") == "me on redacted"
