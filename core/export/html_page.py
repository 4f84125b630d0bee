"""A page of HTML that stands alone: its head, tables that fit every width, and a flame that can be zoomed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape

from ..base.arrays import I64
from ..base.colours import colour_of, hexed, key_of, text_on
from ..base.safe_text import safe
from ..base.units import count_of, format_ns
from ..tables.frame.frames import html_table
from ..tables.frame.table import Table
from ..tables.host.icicle import icicle_of, row_categories
from ..trace import Trace
from .timeline_svg import beginning

STYLE = """
body{font:14px system-ui,sans-serif;max-width:1240px;margin:1.5em auto;padding:0 1em}
body{color:#22262e;background:#fafaf8}
table{border-collapse:collapse;margin:.5em 0}
td,th{padding:2px 10px 2px 0;border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}
h2{margin-top:1.6em}.picture{overflow-x:auto}section{margin-bottom:1.5em}
label{color:#555;font-size:12px;cursor:pointer}
input:not(:checked)~div .d{display:none}
@media(max-width:1000px){input:not(:checked)~div .c{display:none}}
@media(max-width:600px){input:not(:checked)~div .b{display:none}body{padding:0 .5em}}
.all-b,.all-c{display:none}
@media(max-width:1000px){.all-c{display:inline}}
@media(max-width:600px){.all-b{display:inline}}
.flame g{cursor:pointer}.flame text{font:11px system-ui,sans-serif;pointer-events:none}
"""
SCRIPT = """
for (const flame of document.querySelectorAll(".flame")) {
  const width = flame.viewBox.baseVal.width, boxes = [...flame.querySelectorAll("g")];
  const zoom = (start, share) => {
    for (const box of boxes) {
      const left = (box.dataset.start - start) / share * width;
      const right = left + box.dataset.share / share * width;
      const from = Math.max(0, left), to = Math.min(width, right);
      box.style.display = to - from < 0.5 ? "none" : "";
      const [rect, text] = box.children, room = Math.floor((to - from - 4) / 6.1);
      rect.setAttribute("x", from);
      rect.setAttribute("width", Math.max(0, to - from - 0.5));
      text.setAttribute("x", from + 3);
      const name = box.dataset.name;
      text.textContent = room < 3 ? "" : name.length > room ? name.slice(0, room - 1) + "…" : name;
    }
  };
  flame.addEventListener("click", event => {
    const box = event.target.closest("g");
    box ? zoom(+box.dataset.start, +box.dataset.share) : zoom(0, 1);
  });
  zoom(0, 1);
}
"""
ROW = 17
FLAME_WIDTH = 1180
MAX_DEPTH = 40
MIN_SHARE = 0.0015
"""Calls of a smaller share of the whole are left out of a flame."""


def page_head(title: str, has_flame: bool = False) -> str:
    """Return the head of a page. It loads nothing, and runs the script of a flame alone."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
        + f"; script-src 'sha256-{digest}'" * has_flame
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(safe(title))}</title><style>{STYLE}</style></head><body>\n"
    )


def page_end(has_flame: bool = False) -> str:
    return f"<script>{SCRIPT}</script>" * has_flame + "</body></html>\n"


def page_table(table: Table, limit: int | None = None, order: I64 | None = None, number: int = 0) -> str:
    """Return a table that shows the columns for which there is room, and all of them at a click."""
    text = html_table(table, limit, order)
    last = next((level for level in "dcb" if f' class="{level}"' in text), "")
    if not last:
        return f"<section>{text}</section>\n"
    name = f"all-{safe(table.name)}-{number}"
    return (
        f'<section><input type="checkbox" id="{escape(name)}" class="all-{last}">'
        f'<label for="{escape(name)}" class="all-{last}"> all columns</label>{text}</section>\n'
    )


def flame(trace: Trace, tree: Table) -> Iterator[str]:
    """Yield a table of a call tree as a picture: each call as wide as its time. A click zooms to a call."""
    icicle = icicle_of(tree)
    if not icicle.width:
        return
    forms, names, depths = tree.short_forms["name"], tree.texts("name"), icicle.depths.tolist()
    categories = row_categories(trace, tree)
    shares = (icicle.ends - icicle.starts) / icicle.width
    drawn = [row for row in range(len(tree)) if shares[row] >= MIN_SHARE and depths[row] < MAX_DEPTH]
    if not drawn:
        calls = count_of(len(tree), "call")
        yield f'<p class="note">{calls}, each of less than {MIN_SHARE:.2%} of the whole: none is drawn.</p>'
        return
    height = (max(depths[row] for row in drawn) + 1) * ROW
    yield (
        f'<div class="picture"><svg class="flame" xmlns="http://www.w3.org/2000/svg" width="{FLAME_WIDTH}" '
        f'height="{height}" viewBox="0 0 {FLAME_WIDTH} {height}">'
        '<rect width="100%" height="100%" fill="#f2f2ee"/>'
    )
    for row in drawn:
        start, share = icicle.starts[row] / icicle.width, float(shares[row])
        colour = colour_of(key_of(categories[row], names[row]), dark=False)
        label = safe(forms.get(names[row]) or names[row])
        time = format_ns(int(icicle.ends[row] - icicle.starts[row]))
        y, room = depths[row] * ROW, int((share * FLAME_WIDTH - 4.5) / 6.1)
        words = beginning(label, room) if room >= 3 else ""
        x, fill = start * FLAME_WIDTH, hexed(text_on(colour))
        yield (
            f'<g data-start="{start:.6f}" data-share="{share:.6f}" data-name="{escape(label)}">'
            f'<rect x="{x:.1f}" y="{y}" width="{max(0.0, share * FLAME_WIDTH - 0.5):.1f}" '
            f'height="{ROW - 1}" fill="{hexed(colour)}"/>'
            f'<text x="{x + 3:.1f}" y="{y + 12}" fill="{fill}">{escape(words)}</text>'
            f"<title>{escape(safe(names[row]))} · {time} · {share:.1%}</title></g>"
        )
    yield "</svg></div>"
