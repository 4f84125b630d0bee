"""Changes of single operators and numbers that nobody can notice, and why: `make mutation` tries none."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[str, Mapping[tuple[str, str], str]] = {
    "core/index/ts_unit.py": {
        ("YEAR_NS = 365", "366"): "the slack of ten years is no measure: ten days more are as good",
    },
    "tui/draw/layout.py": {
        ("lane: int = -1", "2"): "any number below 0 is no lane",
        ("if first >= last:", "first > last"): "no line lies between equal ones",
        ("is_last = ", "3"): "the blocks of a process follow one another",
        ("depths=(0,)", "1"): "a line that is alone is found at any depth",
    },
    "core/tables/frame/frames.py": {
        ("columns[texts[0]].key: 0", "1"): "of equal ranks the first text is first anyway",
        ("len(ranks) + 1", "2"): "any rank behind all others is the last",
        ("abs(value) < SMALL", "abs(value) <= SMALL"): "0.001 is written the same in both ways",
        ("if len(text) > SENTENCE", "len(text) >= SENTENCE"): "a text of 40 characters fits either way",
    },
    "core/tables/device/idle.py": {
        ("enclosing(gap.index, launch)", "launch > 0"): "nothing is around the first slice of an index",
    },
    "core/tables/peers/messages.py": {
        ("np.full(len(positions), -1", "2"): "any number below 0 names nothing",
    },
    "core/tables/path/path_change.py": {
        (
            "if self.via[row] != LAUNCH and self.thread[row] >= 0",
            "self.via[row] != LAUNCH or self.thread[row] >= 0",
        ): "the least delay is that of the launches that release work: it moves none of these",
    },
    "core/tables/findings/gaps.py": {
        ("floor = max(", "2"): "a floor of 1 ns, as of 2 ns, only keeps gaps of no length out",
        ("is_far = ", "1"): "nothing is below 1",
        ("is_far = ", "2"): "it matters where a gap of 5 to 9 ns is 4 % of the time looked at",
        ("rest = int(np.delete(length, long)", "1"): "there are always other gaps",
    },
    "core/tables/findings/host.py": {
        (
            "if not len(rows) or not len(gaps)",
            "not len(rows) and (not len(gaps))",
        ): "no wait ends in a gap then",
    },
    "core/read/chunks.py": {
        ("limit = max(cell", "1"): "a chunk has more than one byte",
    },
    "core/read/batch.py": {
        ('"timed": 1 << 14', "15"): "a table grows when it is full",
        ('"timed": 1 << 14', "2"): "a table grows when it is full",
        ('"flows": 1 << 13', "14"): "a table grows when it is full",
        ('"flows": 1 << 13', "2"): "a table grows when it is full",
        ('"asyncs": 1 << 10', "11"): "a table grows when it is full",
        ('"asyncs": 1 << 10', "2"): "a table grows when it is full",
        ('"counters": 1 << 10', "11"): "a table grows when it is full",
        ('"counters": 1 << 10', "2"): "a table grows when it is full",
        ('"blocks": 64', "65"): "a table grows when it is full",
        ('"metadata": 1 << 10', "11"): "a table grows when it is full",
        ('"metadata": 1 << 10', "2"): "a table grows when it is full",
    },
    "core/tables/explain/pair_answers.py": {
        ("longer = f", "total >= 0"): "0 is said to be as long",
    },
    "core/tables/path/path_points.py": {
        ("groups[rows] == of), rows, -1)", "2"): "any number below 0 is no row",
    },
    "core/tables/host/range_table.py": {
        ("if len(parts) > 1:", "len(parts) >= 1"): "one part joined is the same part",
    },
    "core/export/protobuf.py": {
        ("case int() if 0 <= value <= MASK", "0 < value <= MASK"): "0 is taken by the case above",
    },
    "core/base/units.py": {
        ("if size == 1:", "2"): "a whole number of ns has no decimals anyway",
    },
    "tui/actions/view.py": {
        ("offset = min(max(session.cursor", "view.span + 1"): "the cursor lies in the view",
    },
    "tui/lanes/canvas.py": {
        ("self._thumb = range(0)", "1"): "it is replaced before the first line is drawn",
    },
    "tui/times.py": {
        ("@lru_cache(maxsize=16)", "17"): "how many are remembered changes no answer",
    },
    "core/tables/findings/steps.py": {
        ("inside = ", "first > host.starts[here]"): "an operator at the start is not late",
        ("inside = ", "first <= host.ends[here]"): "one at the end leaves nothing, which is too late",
        ("if compiled <= eager", "compiled < eager"): "what costs nothing is not listed",
        ("if slow <= quick", "slow < quick"): "what costs nothing is not listed",
    },
    "core/tables/path/path_walk.py": {
        ("if len(self.segments) + len(self.spans) & ", "1"): "whether to stop is asked as often",
    },
    "core/query/groups.py": {
        ("width = int(values.max(initial=0)) - low", "2"): "codes are distinct in any width that holds them",
    },
    "core/trace/device_clocks.py": {
        ("worst = int(np.argmax(lead))", "2"): "any number below 0 is no launch",
    },
    "core/logs/correlation.py": {
        (
            "usable = (2 * count",
            "xx >= FLAT * float((x * x).sum())",
        ): "equal are only zeros, of which r is none",
    },
    "core/store/groups.py": {
        ("MAX_FILE = ", "513"): "it bounds what a damaged file may take, and no file comes near",
    },
    "core/read/perfetto.py": {
        ("return {6: 0", "7"): "what clocks showed needs neither names nor defaults",
        ("return {6: 0", "4"): "a packet describes a process, a thread or a track, never two of them",
    },
    "tui/draw/room.py": {
        ("panel = min(EMPTY_PANEL", "message >= 1"): "a panel that is shown has two lines anyway",
    },
    "tui/draw/rows.py": {
        ("BUSY_LANES = ", "9"): "it bounds the time of a frame",
    },
    "tui/terminal/screen_diff.py": {
        ("MAX_CHANGES: ", "1025"): "how many are remembered changes no answer",
    },
    "core/trace/lanes.py": {
        ("MINIMAP_LANES = ", "513"): "it bounds the time of a frame",
    },
    "core/read/repair.py": {
        ("FIRST_SEARCH, SEARCH", "11"): "what is not found in the first part is looked for in the next",
    },
    "core/base/colours.py": {
        ("detailed_memory_dump", "181"): "no eye tells one part of 255",
    },
}
"""File -> (a part of its line, what stands there instead) -> why nobody can tell the two apart."""
