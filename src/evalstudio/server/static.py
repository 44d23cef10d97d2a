"""The web UI as files. Only files that were there when the server started are served, by their exact path."""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from .errors import error_response

WEB = Path(__file__).parent / "web"
_HASHED = re.compile(r"[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
_FOREVER = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>EvalStudio</title>
<style>body{font:16px/1.5 system-ui;max-width:36rem;margin:4rem auto;padding:0 1rem}</style></head>
<body><h1>EvalStudio is running</h1>
<p>The web UI is not part of this installation. Everything it does is available at
<code>/api</code>; the API describes itself at <a href="/api/openapi.json">/api/openapi.json</a>.</p>
<p>To build the UI from a checkout, run <code>make setup</code> and start the server again.</p></body></html>
"""


class Site:
    """The built UI, or a page that says it is not built."""

    def __init__(self, folder: Path = WEB) -> None:
        self._files = {
            f"/{file.relative_to(folder).as_posix()}": file
            for file in sorted(folder.rglob("*"))
            if file.is_file() and not file.is_symlink()
        }
        self._index = self._files.get("/index.html")

    async def answer(self, request: Request) -> Response:
        """A file of the UI; pages of the app itself are all the index."""
        path = request.url.path
        if path == "/api" or path.startswith("/api/"):
            return error_response(404, "There is nothing at this address.")
        if request.method not in ("GET", "HEAD"):
            return error_response(
                405, "This address does not know the method.", headers={"Allow": "GET, HEAD"}
            )
        if (file := self._files.get(path)) is not None and file != self._index:
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            caching = _FOREVER if _HASHED.search(file.name) else "no-cache"
            return FileResponse(file, media_type=kind, headers={"Cache-Control": caching})
        if "." in path.rpartition("/")[2] and path != "/index.html":
            return error_response(404, "There is nothing at this address.")
        if self._index is None:
            return HTMLResponse(_NOT_BUILT)
        return FileResponse(self._index, media_type="text/html", headers={"Cache-Control": "no-cache"})
