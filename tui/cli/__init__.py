"""The command line: a command per file; only `view` reaches the App, and only when it opens one."""
