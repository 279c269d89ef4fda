"""Translation of uploaded files, and their download."""

import asyncio
import os
import re
import secrets
import tempfile
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import IO, Annotated, Final, NamedTuple, final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi import Path as PathField
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from heedful.documents.table import format_of
from heedful.errors import DataError
from heedful.serving.bodies import UploadedFile, read_fields, text_field, wants_faults
from heedful.serving.document_process import DocumentRefused, read_document, write_document
from heedful.serving.limits import client_of
from heedful.serving.schemas import ERRORS, FILE
from heedful.serving.service import Service
from heedful.serving.waiting import while_connected

MOST_FILES: Final = 100
_SECONDS: Final = 1800.0
_MOST_FIELDS: Final = 50
_MOST_FIELD_BYTES: Final = 10_000
"""Bytes of a field beside the file."""
_CHUNK_BYTES: Final = 1 << 16


class Download(NamedTuple):
    """Translated file that waits for its download."""

    file: IO[bytes]
    """Temporary file without a name, which the system removes however this process ends."""
    num_bytes: int
    name: str
    until: float
    """Monotonic time in seconds after which it is deleted."""
    client: str
    """Client that uploaded it."""

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Read the content, for a client that may be one of several, and may outlast the file's time here.

        Yields:
            At most 64 KiB at a time.
        """
        with os.fdopen(os.dup(self.file.fileno()), "rb", buffering=0) as file:
            for start in range(0, self.num_bytes, _CHUNK_BYTES):
                file.seek(start)  # the place in the file is shared with other clients
                yield file.read(_CHUNK_BYTES)


@final
class Downloads:
    """Translated files of the last half hour, at most a hundred, on disk.

    When there are too many, the oldest file of the client with most files goes.
    """

    def __init__(self) -> None:
        """Start without files."""
        self._files: Final[OrderedDict[str, Download]] = OrderedDict()
        weakref.finalize(self, _close, self._files)

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
        file = tempfile.TemporaryFile(buffering=0)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            file.close()
            raise
        self._files[token] = Download(file, len(content), name, time.monotonic() + _SECONDS, client)
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
        self._files.pop(token).file.close()


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
            HTTPException: 400, the file or a field is missing or wrong; 503, the disk is full.
        """
        fields = await read_fields(request, _MOST_FIELDS, _MOST_FIELD_BYTES)
        try:
            service.keys.check(request, fields)
            upload = fields.get("file")
            if not isinstance(upload, UploadedFile) or not upload.name:
                raise HTTPException(400, "Invalid request: missing file parameter")
            source, target = text_field(fields, "source"), text_field(fields, "target")
            ending, limits = format_of(upload.name), service.limits
            async with parsing:  # one process, and one file in memory, at a time
                passages = await read_document(ending, await upload.content(), limits.file_bytes, limits.answer_seconds)
            outputs, faults = await while_connected(request, service.translate_passages(passages, source, target))
            async with parsing:
                written = await write_document(
                    ending, await upload.content(), limits.file_bytes, outputs, limits.answer_seconds
                )
        except (DataError, DocumentRefused) as error:
            raise HTTPException(400, f"Invalid request: {error}") from None
        finally:
            for value in fields.values():
                if isinstance(value, UploadedFile):
                    await value.file.close()
        name = f"{_safe(Path(upload.name).stem)}_{service.language(target)}{ending}"
        try:
            token = downloads.add(name, written, client_of(request.client.host if request.client else ""))
        except OSError:
            raise HTTPException(503, "The server has no room for the translated file") from None
        base = f"{request.url.scheme}://{request.headers['host']}"
        answer: dict[str, object] = {"translatedFileUrl": f"{base}/download_file/{token}/{quote(name)}"}
        return JSONResponse(answer | ({"faults": faults} if wants_faults(fields) else {}))

    @router.get("/download_file/{token}/{name}", responses=ERRORS)
    async def download_file(
        token: Annotated[str, PathField(description="Key of the file, from the answer of /translate_file.")],
        name: Annotated[str, PathField(description="Name of the file, from the same answer.")],
    ) -> Response:
        """Download a translated file.

        Raises:
            HTTPException: 404, there is no such file.
        """
        stored = downloads.find(token)
        if stored is None or stored.name != name:
            raise HTTPException(404, "There is no such file, or no longer")
        headers = {"Content-Length": str(stored.num_bytes), "Content-Disposition": _attachment(stored.name)}
        return StreamingResponse(stored.chunks(), media_type="application/octet-stream", headers=headers)

    return router


def _close(files: Mapping[str, Download]) -> None:
    for stored in files.values():
        stored.file.close()


def _attachment(name: str) -> str:
    encoded = quote(name)
    return f'attachment; filename="{name}"' if encoded == name else f"attachment; filename*=utf-8''{encoded}"


def _safe(stem: str) -> str:
    return re.sub(r"[^\w.-]+", "_", stem)[:80] or "file"
