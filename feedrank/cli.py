"""The command `feedrank`. Each part is imported only when it is called, so that no extra is needed for another."""

import importlib
import os
import sys

from feedrank import __version__

# command: (module, its typer app, the extra it needs, what the help says)
COMMANDS = {
    "serve": ("feedrank.service.commands", "serve", "service", "serve learners over HTTP"),
    "keys": ("feedrank.service.commands", "keys", "service", "add, list and revoke keys"),
    "replay": (
        "feedrank.service.replay_commands",
        "replay",
        "service",
        "fold a log again, under its spec or another",
    ),
    "verify": (
        "feedrank.service.replay_commands",
        "verify",
        "service",
        "check that snapshots are the fold of the log",
    ),
    "experiment": ("feedrank.service.experiments.commands", "app", "service", "check experiments: aa"),
    "mail": ("feedrank.clients.mail_cli", "app", "mail", "sort mail into folders, learning from every move"),
    "rank": ("feedrank.clients.rank_cli", "app", "clients", "learn to rank from LETOR files, and measure it"),
    "search": ("feedrank.clients.search_cli", "app", "clients", "rank search results, learning from clicks"),
}


def main() -> None:
    """Run `feedrank COMMAND ...`."""
    # Replicas must agree bit for bit, and one product is too small to share among threads. NumPy reads it on import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    command, *rest = sys.argv[1:] or ["--help"]
    if command == "--version":
        print(f"feedrank {__version__}")
    elif command in ("--help", "-h", "help"):
        print(usage())
    elif command in COMMANDS:
        run(command, rest)
    else:
        sys.exit(f"feedrank: there is no command {command!r}\n{usage()}")


def usage() -> str:
    """The list of commands."""
    rows = "\n".join(f"  {name:<12}{text}" for name, (_, _, _, text) in COMMANDS.items())
    return f"usage: feedrank COMMAND [OPTIONS]\n\n{rows}\n\n`feedrank COMMAND --help` says more."


def run(command: str, arguments: list[str]) -> None:
    """Import a command and call it; a missing extra is one line, not a stack trace."""
    module, attribute, extra, _ = COMMANDS[command]
    try:
        app = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "feedrank":
            raise
        sys.exit(f"feedrank: {command} needs {error.name}; run: pip install 'feedrank[{extra}]'")
    app(arguments, prog_name=f"feedrank {command}")


if __name__ == "__main__":
    main()
