"""The command line: a command per file; only `view` reaches the App, and only when it opens one."""

from tracelane.core.base.threads import collect_rarely

collect_rarely()  # here, not in `main`: a third of the modules are loaded before that runs
