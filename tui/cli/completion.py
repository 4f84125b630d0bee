"""Completions for shells: the scripts that ask for them, and the answers, both as click makes them but where
that falls short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from tracelane.core.base.output import print_fields, print_text

PROGRAM = "tracelane"
VARIABLE = "_TRACELANE_COMPLETE"
"""What the shell's function sets when it asks for completions."""


FISH = """\
function %(complete_func)s
    set -l words (commandline -cp | string collect)
    set -l word (commandline -ct | string collect)
    for line in (env %(complete_var)s=fish_complete COMP_WORDS=$words COMP_CWORD=$word %(prog_name)s)
        set -l fields (string split -m 2 \\t -- $line)
        switch $fields[1]
            case dir
                __fish_complete_directories $fields[2]
            case file
                __fish_complete_path $fields[2]
            case plain
                string join -- \\t $fields[2..]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class FishCompletion(FishComplete):
    """Completion for fish with a script of our own, whose answers have kind, word and help with tabs between
    them: that of click 8.4.0 does not run, those since cut help at its first comma, and none knows a command
    of several lines.
    """

    source_template = FISH

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line of fish's answer."""
        return "\t".join([item.type, str(item.value), *([" ".join(item.help.split())] if item.help else [])])


SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishCompletion}


def run_completion(shell: str) -> None:
    commands = click.get_current_context().find_root().command
    print_text(SHELLS[shell](commands, {}, PROGRAM, VARIABLE).source())


def answer_shell(
    instruction: str, commands: click.Group, asks_for_help: Callable[[Sequence[str]], bool]
) -> int:
    """Answer the function of a shell that asks for completions; return the exit code. It prints what it
    answers as all of the program does, with nothing in it that a terminal obeys: a trace may be anybody's.
    """
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what not in ("source", "complete"):
        return 1
    answering = SHELLS[shell](commands, {}, PROGRAM, VARIABLE)
    if what == "source":
        print_text(answering.source())
        return 0
    words, incomplete = answering.get_completion_args()
    items = answering.get_completions(words, incomplete)
    if asks_for_help(words):  # for a command by its name, where click would go on with what that takes
        items = [item for item in items if item.type == "plain" and not item.value.startswith("-")]
    print_fields("\n".join(map(answering.format_completion, items)))
    return 0
