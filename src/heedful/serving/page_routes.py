"""Routes of the page: its files, and the JSON that it asks for."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.errors import HeedfulError
from heedful.pages.bundle import MEDIA_TYPES, page_files
from heedful.predictors.page_requests import PageRequests
from heedful.predictors.translator import Translator
from heedful.serving.bodies import read_fields
from heedful.serving.service import Service

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
    requests = PageRequests(named(list(service.catalog.models.values())))
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
        return JSONResponse(requests.models())

    @router.get("/page/training")
    async def training(request: Request, model: str = "") -> Response:
        service.keys.check(request, request.query_params)
        return await _answered(lambda: requests.training(model))

    @router.post("/page/view")
    async def view(request: Request) -> Response:
        nonlocal num_waiting
        fields = await read_fields(request)
        service.keys.check(request, fields)
        text = fields.get("text")
        if isinstance(text, str) and len(text) > service.limits.characters:
            raise HTTPException(400, f"Invalid request: more than {service.limits.characters} characters")
        if num_waiting >= MOST_WAITING:
            raise HTTPException(503, "Slowdown: too many views are asked for", {"Retry-After": "2"})
        num_waiting += 1
        try:
            async with turn:
                # A page whose reader types on has given up the views that it asked for before.
                if await request.is_disconnected():
                    return Response(status_code=204)
                return await _answered(lambda: requests.view(_without_keys(fields)))
        finally:
            num_waiting -= 1

    return router


def named(translators: Sequence[Translator]) -> dict[str, Translator]:
    """Name models by their folders, with numbers where two folders have one name.

    Args:
        translators: loaded models.

    Returns:
        Models by name, in order.
    """
    models: dict[str, Translator] = {}
    for translator in translators:
        name = translator.folder.path.resolve().name
        number = 2
        while name in models:
            name, number = f"{translator.folder.path.resolve().name} {number}", number + 1
        models[name] = translator
    return models


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
