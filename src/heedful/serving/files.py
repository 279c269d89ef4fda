"""Translation of uploaded files, and their download."""

import asyncio
import re
import secrets
import tempfile
import time
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Final, NamedTuple, final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.documents.table import format_of
from heedful.errors import DataError
from heedful.serving.bodies import UploadedFile, read_fields, text_field
from heedful.serving.document_process import DocumentRefused, read_document, write_document
from heedful.serving.limits import client_of
from heedful.serving.schemas import ERRORS, FILE
from heedful.serving.service import Service
from heedful.serving.waiting import while_connected

MOST_FILES: Final = 100
_SECONDS: Final = 1800.0


class Download(NamedTuple):
    """Translated file that waits for its download."""

    path: Path
    name: str
    until: float
    """Monotonic time in seconds after which it is deleted."""
    client: str
    """Client that uploaded it."""


@final
class Downloads:
    """Translated files of the last half hour, at most a hundred, in a temporary folder.

    When there are too many, the oldest file of the client with most files goes.
    """

    def __init__(self) -> None:
        """Create the folder, which is removed when the process ends."""
        self._folder: Final = tempfile.TemporaryDirectory(prefix="heedful-")
        self._files: Final[OrderedDict[str, Download]] = OrderedDict()

    def add(self, name: str, content: bytes, client: str = "") -> str:
        """Store a file.

        Args:
            client: client that uploaded it (`heedful.serving.limits.client_of`).

        Returns:
            A token that cannot be guessed.
        """
        self._forget()
        if len(self._files) >= MOST_FILES:
            counts = Counter(stored.client for stored in self._files.values())
            most = max(counts, key=lambda each: counts[each])
            self._remove(next(token for token, stored in self._files.items() if stored.client == most))
        token = secrets.token_urlsafe(24)
        path = Path(self._folder.name) / token
        path.write_bytes(content)
        self._files[token] = Download(path, name, time.monotonic() + _SECONDS, client)
        return token

    def find(self, token: str) -> Download | None:
        """Find a file.

        Args:
            token: the file's token.

        Returns:
            The file; None if there is none, or no longer.
        """
        self._forget()
        return self._files.get(token)

    def _forget(self) -> None:
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).until <= now:
            self._remove(next(iter(self._files)))

    def _remove(self, token: str) -> None:
        self._files.pop(token).path.unlink(missing_ok=True)


def make_router(service: Service) -> APIRouter:
    """Make the routes.

    Args:
        service: the server's models and limits.
    """
    router = APIRouter(tags=["files"])
    downloads = Downloads()
    parsing = asyncio.Lock()

    @router.post("/translate_file", openapi_extra=FILE, responses=ERRORS)
    async def translate_file(request: Request) -> Response:
        """Translate a file; the answer names the address of the translated one.

        Raises:
            HTTPException: 400, the file or a field is missing or wrong.
        """
        fields = await read_fields(request)
        service.keys.check(request, fields)
        upload = fields.get("file")
        if not isinstance(upload, UploadedFile) or not upload.name:
            raise HTTPException(400, "Invalid request: missing file parameter")
        source, target = text_field(fields, "source"), text_field(fields, "target")
        limits = service.limits
        try:
            ending = format_of(upload.name)
            document = (ending, upload.content, limits.file_bytes)
            async with parsing:  # one process at a time
                passages = await read_document(*document, limits.answer_seconds)
            outputs = await while_connected(request, service.translate_passages(passages, source, target))
            async with parsing:
                written = await write_document(*document, outputs, limits.answer_seconds)
        except (DataError, DocumentRefused) as error:
            raise HTTPException(400, f"Invalid request: {error}") from None
        name = f"{_safe(Path(upload.name).stem)}_{service.language(target)}{ending}"
        token = downloads.add(name, written, client_of(request.client.host if request.client else ""))
        base = f"{request.url.scheme}://{request.headers['host']}"
        return JSONResponse({"translatedFileUrl": f"{base}/download_file/{token}/{quote(name)}"})

    @router.get("/download_file/{token}/{name}", responses=ERRORS)
    async def download_file(token: str, name: str) -> Response:
        """Download a translated file.

        Raises:
            HTTPException: 404, there is no such file.
        """
        stored = downloads.find(token)
        if stored is None or stored.name != name:
            raise HTTPException(404, "There is no such file, or no longer")
        return FileResponse(stored.path, filename=stored.name, media_type="application/octet-stream")

    return router


def _safe(stem: str) -> str:
    return re.sub(r"[^\w.-]+", "_", stem)[:80] or "file"
