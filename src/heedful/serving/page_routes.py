"""Routes of the page: its files, and the JSON that it asks for.

They are left out of the OpenAPI description: they change with the page, which the same server sends, and are no
interface for other programs.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.errors import HeedfulError, ResourceError, UsageError
from heedful.pages.bundle import MEDIA_TYPES, page_files
from heedful.predictors.captioner import Captioner
from heedful.predictors.page_requests import PageRequests
from heedful.serving.bodies import PICTURE, read_fields, read_picture_or_fields, text_field
from heedful.serving.inference import checked_picture, named_model
from heedful.serving.service import Service
from heedful.serving.waiting import while_connected

MOST_WAITING: Final = 16
"""Views that may wait for the one that is computed."""


def make_router(service: Service) -> APIRouter:
    """Make the routes.

    Args:
        service: models, limits and keys.

    Returns:
        Routes of the root, `/app/`, and `/page/`; a view is computed in a thread, one at a time.
    """
    router = APIRouter(include_in_schema=False)
    requests = PageRequests(service.catalog.named)
    turn = asyncio.Semaphore(1)
    num_waiting = 0

    @router.get("/")
    async def index() -> Response:
        return _file("index.html")

    @router.get("/app/{name}")
    async def file(name: str) -> Response:
        return _file(name)

    @router.get("/page/models")
    async def models(request: Request) -> Response:
        service.keys.check(request, request.query_params)
        return JSONResponse(requests.models() | {"takesLinks": service.links is not None})

    @router.get("/page/training")
    async def training(request: Request, model: str = "") -> Response:
        service.keys.check(request, request.query_params)
        return await _answered(lambda: requests.training(model))

    @router.get("/page/evaluation")
    async def evaluation(request: Request, model: str = "") -> Response:
        service.keys.check(request, request.query_params)
        return await _answered(lambda: requests.evaluation(model))

    @router.post("/page/links")
    async def links(request: Request) -> Response:
        fields = await read_fields(request)
        service.keys.check(request, fields)
        if service.links is None:
            raise HTTPException(403, "Links are not stored on this server; start it with --links FILE")
        source, target, alignment = (_short_text(fields, name, service) for name in ("source", "target", "links"))
        try:
            is_stored = await asyncio.to_thread(service.links.add, source, target, alignment)
        except ResourceError:
            raise HTTPException(403, "The links cannot be written.") from None
        except UsageError as error:
            raise HTTPException(400, str(error)) from None
        if not is_stored:
            raise HTTPException(403, "The file of links is full.")
        return JSONResponse({"success": True})

    @router.post("/page/view")
    async def view(request: Request) -> Response:
        nonlocal num_waiting
        fields = await read_picture_or_fields(request)
        service.keys.check(request, fields)
        for text in (fields.get("text"), fields.get("question")):
            if isinstance(text, str) and len(text) > service.limits.characters:
                raise HTTPException(400, f"Invalid request: more than {service.limits.characters} characters")
        if PICTURE in fields:
            captioner = named_model(service, text_field(fields, "model"))
            if not isinstance(captioner, Captioner):
                raise HTTPException(400, "Invalid request: this model reads no pictures")
            await checked_picture(service, captioner, fields[PICTURE])
        if num_waiting >= MOST_WAITING:
            raise HTTPException(503, "Slowdown: too many views are asked for", {"Retry-After": "2"})
        num_waiting += 1
        try:
            seconds = service.limits.answer_seconds
            # A page whose reader types on has given up the views that it asked for before.
            work = while_connected(request, _in_turn(turn, lambda stop: requests.view(_without_keys(fields), stop)))
            return JSONResponse(await asyncio.wait_for(work, seconds))
        except TimeoutError:
            raise HTTPException(503, "Slowdown: the view takes too long", {"Retry-After": "2"}) from None
        except HeedfulError as error:
            raise HTTPException(400, str(error)) from None
        finally:
            num_waiting -= 1

    return router


async def _in_turn(turn: asyncio.Semaphore, compute: Callable[[Callable[[], bool]], dict[str, Any]]) -> dict[str, Any]:
    """Result of a computation in a thread, one at a time; when cancelled, it tells the thread and waits for its end.

    Raises:
        CancelledError: it was cancelled.
    """
    stopped = threading.Event()
    async with turn:
        work = asyncio.ensure_future(asyncio.to_thread(compute, stopped.is_set))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.wait((work,))
            work.exception()
            raise


def _short_text(fields: Mapping[str, Any], name: str, service: Service) -> str:
    """Text of a request within the limit of characters.

    Raises:
        HTTPException: 400, it is missing or too long.
    """
    text = text_field(fields, name)
    if len(text) > service.limits.characters:
        raise HTTPException(400, f"Invalid request: more than {service.limits.characters} characters")
    return text


async def _answered(make: Callable[[], dict[str, Any]]) -> Response:
    """Answer computed in a thread; 400 where heedful refuses the request.

    Raises:
        HTTPException: 400, with heedful's reason.
    """
    try:
        return JSONResponse(await asyncio.to_thread(make))
    except HeedfulError as error:
        raise HTTPException(400, str(error)) from None


def _without_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("api_key", "apiKey")}


def _file(name: str) -> Response:
    """File of the page.

    Raises:
        HTTPException: 404, there is no such file.
    """
    if name not in page_files():
        raise HTTPException(404, "Not Found")
    return Response(page_files()[name], media_type=MEDIA_TYPES[f".{name.rpartition('.')[2]}"])
