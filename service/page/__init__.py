"""The page at `/`: its files, which ask the public API like any other client."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
