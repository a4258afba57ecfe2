"""The command `feedrank`. A subcommand is imported only when it is called, so it needs only its own extra."""

import os
import sys

from feedrank import __version__, completion

# command: (module, its typer app, the extra it needs, what the help says)
COMMANDS = {
    "demo": ("feedrank.demo", "app", "service", "watch three learners learn from simulated visitors"),
    "start": ("feedrank.start", "app", "service", "learn from a table of your own and predict its next row"),
    "serve": ("feedrank.service.commands.serve", "serve", "service", "serve learners over HTTP"),
    "keys": ("feedrank.service.commands.serve", "keys", "service", "add, list and revoke keys"),
    "replay": (
        "feedrank.service.commands.rebuild",
        "replay",
        "service",
        "rebuild learners from their logs, optionally with another spec",
    ),
    "sweep": (
        "feedrank.service.commands.sweep",
        "app",
        "service",
        "try other specs on a learner's log and show the best",
    ),
    "evaluate": (
        "feedrank.service.commands.evaluate",
        "app",
        "service",
        "estimate what other specs would have lost or earned on a log",
    ),
    "verify": (
        "feedrank.service.commands.rebuild",
        "verify",
        "service",
        "check that logs are undamaged and snapshots match them",
    ),
    "experiment": (
        "feedrank.service.commands.check_experiments",
        "app",
        "service",
        "measure how often equal arms get a false verdict (aa)",
    ),
    "learners": (
        "feedrank.clients.learners_cli",
        "app",
        "clients",
        "create learners, predict, send feedback",
    ),
    "import": ("feedrank.clients.history_cli", "import_app", "clients", "learn from a file of past events"),
    "predict": ("feedrank.clients.history_cli", "predict_app", "clients", "predict every row of a file"),
    "export": ("feedrank.clients.history_cli", "export_app", "clients", "write a learner's log to a file"),
    "personalizer": (
        "feedrank.personalizer_log",
        "app",
        "service",
        "learn from a log of Azure Personalizer",
    ),
    "ingest": ("feedrank.clients.ingest_cli", "app", "clients", "learn from Kafka, Redis Streams or NATS"),
    "mail": ("feedrank.clients.mail_cli", "app", "mail", "sort mail into folders, learning from every move"),
    "mcp": ("feedrank.clients.mcp_cli", "app", "mcp", "serve learners as tools to an assistant (MCP)"),
    "rank": (
        "feedrank.clients.rank_cli",
        "app",
        "clients",
        "learn to rank from LETOR files, and measure the ranking",
    ),
    "search": (
        "feedrank.clients.search_cli",
        "app",
        "clients",
        "re-rank search results, learning from clicks",
    ),
}
# Modules that one extra alone brings: a command that meets their absence needs that extra beside its own.
EXTRAS = {
    "fastapi": "service",
    "starlette": "service",
    "uvicorn": "service",
    "uvloop": "service",
    "hiredis": "service",
    "httptools": "service",
    "pydantic": "service",
    "orjson": "service",
    "redis": "service",
    "psycopg": "postgres",
    "prometheus_client": "service",
    "httpx": "clients",
    "msgspec": "clients",
    "imapclient": "mail",
    "tantivy": "search",
    "mcp": "mcp",
    "confluent_kafka": "kafka",
    "nats": "nats",
    "pyarrow": "parquet",
    "distributed": "dask",
    "snowballstemmer": "clients",
    "opentelemetry": "otel",
}
INTERRUPTED = 130
"""128 + SIGINT, as shells count it."""


def main() -> None:
    """Run `feedrank COMMAND ...`. Ctrl-C and a reader that stops reading end it without a stack trace."""
    # Replicas must agree bit for bit, and one product is too small to share among threads. NumPy reads it on import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        dispatch(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The interpreter flushes once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def dispatch(arguments: list[str]) -> None:
    """Find the command and run it."""
    if completion.ASKED in os.environ:
        print("\n".join(completion.candidates(COMMANDS)))
        return
    command, *rest = arguments or ["--help"]
    if command == "--version":
        print(f"feedrank {__version__}, {kernel()}")
    elif command in ("--help", "-h", "help"):
        print(usage())
    elif command == "completion":
        try:
            print(completion.script(rest))
        except ValueError as error:
            sys.exit(f"feedrank completion: {error}")
    elif command in COMMANDS:
        run(command, rest)
    else:
        sys.exit(f"feedrank: there is no command {command!r}\n{usage()}")


def kernel() -> str:
    """Which kernel the learners would run on here: all give the same bits, one is faster."""
    try:
        from feedrank.learners.kernel import NAME  # noqa: PLC0415  (NumPy, which nothing else here needs)
    except (ImportError, ValueError) as error:
        return f"no kernel: {error}"
    return f"{NAME} kernel"


def usage() -> str:
    """The list of commands."""
    rows = "\n".join(f"  {name:<12}{text}" for name, (_, _, _, text) in COMMANDS.items())
    rows += "\n  completion  complete commands and options with Tab: bash, zsh, fish"
    return f"usage: feedrank COMMAND [OPTIONS]\n\n{rows}\n\n`feedrank COMMAND -h` says more."


def run(command: str, arguments: list[str]) -> None:
    """Import a command and call it; a missing extra, met on import or later, is one line and not a stack trace."""
    import importlib  # noqa: PLC0415  (the help needs none of it)

    module, attribute, extra, _ = COMMANDS[command]
    try:
        app = getattr(importlib.import_module(module), attribute)
        # Every context below inherits it: -h on each command and each of its parts.
        app(arguments, prog_name=f"feedrank {command}", help_option_names=["-h", "--help"])
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "feedrank"):
            raise
        needed = sorted({extra, EXTRAS.get(missing, extra)})
        sys.exit(f"feedrank: {command} needs {missing}; run: pip install 'feedrank[{','.join(needed)}]'")


if __name__ == "__main__":
    main()
