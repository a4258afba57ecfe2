"""The page at `/`: static files that use the public API like any other client."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
