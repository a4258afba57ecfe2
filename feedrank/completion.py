"""Shell completion: `feedrank completion bash|zsh|fish` prints a script, which asks the command for completions."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

ASKED = "_FEEDRANK_WORDS"  # the line so far, its words separated by line breaks
BASH = f"""_feedrank() {{
  local IFS=$'\\n'
  COMPREPLY=($({ASKED}="${{COMP_WORDS[*]:1:COMP_CWORD}}" feedrank))
}}
complete -o default -F _feedrank feedrank"""
SCRIPTS = {
    "bash": BASH,
    "zsh": f"autoload -Uz bashcompinit && bashcompinit\n{BASH}",
    "fish": f"""function __feedrank
  set -l words (commandline -opc) (commandline -ct)
  {ASKED}=(string join \\n -- $words[2..-1] | string collect -N) feedrank
end
complete -c feedrank -a '(__feedrank)'""",
}


HELP = """usage: feedrank completion SHELL

Print a script that lets the shell complete commands and options with Tab.

  bash, zsh   eval "$(feedrank completion bash)"
  fish        feedrank completion fish | source"""


def script(arguments: Sequence[str]) -> str:
    """What the shell evaluates, or the help; ValueError where there is no such shell."""
    if arguments and arguments[0] in ("-h", "--help"):
        return HELP
    if len(arguments) != 1 or arguments[0] not in SCRIPTS:
        raise ValueError(f'name a shell: {", ".join(SCRIPTS)}; bash: eval "$(feedrank completion bash)"')
    return SCRIPTS[arguments[0]]


def candidates(commands: Mapping[str, Sequence[str]], environ: Mapping[str, str] = os.environ) -> list[str]:
    """The words that may stand where the line ends: commands, their parts, and options of those."""
    *before, start = environ[ASKED].split("\n")
    names: list[str] = [*commands, "completion"]
    if before:
        names = list(SCRIPTS) if before[0] == "completion" else []
        with suppress(ImportError):
            names += within(commands[before[0]], before[1:]) if before[0] in commands else []
    return sorted(name for name in names if name.startswith(start))


def within(place: Sequence[str], words: Sequence[str]) -> list[str]:
    """The parts and options of a command, as far as its words lead."""
    from typer.main import get_command  # noqa: PLC0415  (an extra)

    command: Any = get_command(getattr(importlib.import_module(place[0]), place[1]))
    for word in words:
        command = vars(command).get("commands", {}).get(word, command)
    options = [name for one in command.params for name in one.opts if name.startswith("--")]
    return [*vars(command).get("commands", {}), *options, "--help"]
