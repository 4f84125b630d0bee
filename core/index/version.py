"""By what an index is known to be one that can be read here; no numpy is needed to look for one."""

from __future__ import annotations

from ..read.promoted import table_hash

FORMAT = 22
"""2: strings are numbered as they are used first, and the read report counts every event once.
3: values of counters that are numbers in quotes are samples.
4: promoted arguments and the read report are called so.
6: each lane has a role.
7: no time lies beyond units.TIME_LIMIT, so that no difference of two overflows.
8: empty objects are counted, lanes without categories may be a device's.
9: no overviews of rows, which nobody read; the span has clamped times as they are drawn.
10: the streams of processes that XLA names "/device:GPU:0" are a device's.
11: work stands below the annotations of its device's lane.
12: values that are no JSON cost no event, flows have a second version, what is packed knows its damage.
13: times may count from an origin.
14: lanes that repeat others have a role of their own, known producers say what theirs are.
15: arrows of 2 lie on the thread "2" where only that has slices.
16: lanes that repeat others are derived, whoever wrote them; without categories arguments tell devices.
17: deflated text is inflated from checkpoints on; streams of TensorFlow's timeline are derived, all of them
together are a device.
18: data behind packed text is a problem of its own kind; lanes of Proton and nsys2json have their roles.
19: text that cannot be read from its middle lies in the index, packed.
20: tasks of CANN 8 have their roles.
21: lanes of MindSpore's timeline have their roles.
22: asynchronous ends close the begin of their name, counters without a value are counted.
"""
FORMAT_VERSION = f"{FORMAT}-{table_hash()}"
MANIFEST = "manifest.json"
DERIVED = "derived"
"""The folder in that of an index for what is computed from it, and may be deleted at any time."""
