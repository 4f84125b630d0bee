"""What a run of tracelane costs: time, processor time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

TRACELANE = (sys.executable, "-m", "tracelane")
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Cost:
    """What a command and the processes below it took."""

    wall_s: float
    processor_s: float
    peak_bytes: int  # of the largest of these processes

    @classmethod
    def of(cls, *arguments: str) -> tuple[Cost, str]:
        """Run tracelane; return what it cost and what it printed. Raises CalledProcessError."""
        began = time.perf_counter()
        process = subprocess.Popen([*TRACELANE, *arguments], stdout=subprocess.PIPE, encoding="utf-8")
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        wall = time.perf_counter() - began
        processor = usage.ru_utime + usage.ru_stime
        return cls(round(wall, 2), round(processor, 2), usage.ru_maxrss * RSS_UNIT), text
