"""Serves the page at `/`: a few static files, read once, that use the public API like any other client.

Nothing may run on the page, or be asked by it, but what comes from this very server; text never becomes markup.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from feedrank.service.contract.faults import NotFound
from feedrank.service.page import STATIC

router = APIRouter(include_in_schema=False)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
FILES = {
    file.name: (file.read_bytes(), TYPES[file.suffix])
    for file in sorted(STATIC.iterdir())
    if file.suffix in TYPES
}


def served(name: str) -> Response:
    """The file of this name."""
    file = FILES.get(name)
    if file is None:
        raise NotFound(f"the page has no file {name!r}")
    data, kind = file
    return Response(
        data, headers={"Content-Type": f"{kind}; charset=utf-8", "Content-Security-Policy": POLICY}
    )


@router.get("/")
async def page() -> Response:
    """The page itself."""
    return served("index.html")


@router.get("/docs")
async def docs() -> Response:
    """The API, to read and to try."""
    return served("docs.html")


@router.get("/page/{file}")
async def part(file: str) -> Response:
    """What it is made of."""
    return served(file)
