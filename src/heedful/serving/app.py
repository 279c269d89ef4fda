"""Application of a server: all routes behind the guard."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from heedful.errors import DataError, FileRefused, ResourceError, is_lost_device, is_out_of_memory
from heedful.serving import deepl, embeddings, files, inference, libretranslate, page_routes
from heedful.serving.guard import Guard, Hosts
from heedful.serving.service import Service
from heedful.version import __version__


def make_app(service: Service, extra_routers: Sequence[APIRouter] = ()) -> FastAPI:
    """Make the routes.

    Args:
        service: models, limits, keys and queue.
        extra_routers: further routes, such as those of the page.

    Returns:
        The application, without the guard.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        service.batcher.close()

    app = FastAPI(
        title="heedful",
        version=__version__,
        docs_url=None,  # its page loads scripts from another site
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.add_exception_handler(HTTPException, _answer_refusal)
    app.add_exception_handler(ClientDisconnect, _answer_nobody)
    app.add_exception_handler(FileRefused, _answer_refused_file)
    app.add_exception_handler(DataError, _answer_unreadable)
    app.add_exception_handler(RuntimeError, _answer_lost_device)
    app.add_exception_handler(ResourceError, _answer_exhausted)
    app.add_exception_handler(MemoryError, _answer_exhausted)
    app.add_exception_handler(Exception, _answer_fault)
    for router in (
        libretranslate.make_router(service),
        files.make_router(service),
        deepl.make_router(service),
        inference.make_router(service),
        embeddings.make_router(service),
        _own_router(app, service),
        *extra_routers,
    ):
        app.include_router(router)
    return app


def make_app_with_page(service: Service) -> FastAPI:
    """Make the routes, those of the page among them.

    Args:
        service: models, limits, keys and queue.

    Returns:
        The application, without the guard.
    """
    return make_app(service, [page_routes.make_router(service)])


def guarded(app: FastAPI, service: Service, hosts: Hosts, origins: Sequence[str] = ()) -> ASGIApp:
    """Put the guard before an application.

    Args:
        service: limits, budget and figures.
        origins: origins of other sites that may use the server.
    """
    return Guard(app, service, hosts, origins)


def _own_router(app: FastAPI, service: Service) -> APIRouter:
    """Routes about the server itself."""
    router = APIRouter(tags=["server"])

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Figures for Prometheus."""
        service.keys.check(request, request.query_params)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get("/spec", include_in_schema=False)
    async def spec() -> Response:
        return JSONResponse(app.openapi())

    return router


async def _answer_refusal(request: Request, error: Any) -> Response:
    """Error body of LibreTranslate and of Hugging Face; or of OpenAI, whose clients show no other."""
    message = str(error.detail)
    is_openai = request.url.path.startswith(embeddings.PREFIX)
    body = {"message": message, "type": "invalid_request_error", "param": None, "code": None} if is_openai else message
    return JSONResponse({"error": body}, error.status_code, error.headers)


async def _answer_nobody(_: Request, error: Any) -> Response:
    """Answer that is never sent: the client left while its body was read."""
    return Response(status_code=499)


async def _answer_unreadable(_: Request, error: Any) -> Response:
    """Answer to a text that the model does not read, such as one that lacks a column."""
    return JSONResponse({"error": f"Invalid request: {error}"}, 400)


async def _answer_refused_file(_: Request, error: Any) -> Response:
    """Answer when a file of a model, such as its corrections, is no longer what it was; the server's log says which."""
    _log(str(error))
    return JSONResponse({"error": "A file of the model cannot be read; the server's messages name it"}, 503)


async def _answer_exhausted(request: Request, error: Any) -> Response:
    """Answer when memory or disk is exhausted; the server's log says of what."""
    _log(str(error).partition("\n")[0])
    message = "Slowdown: the server has no memory for this now; send less at once, or try again later"
    return await _answer_refusal(request, HTTPException(503, message, {"Retry-After": "60"}))


async def _answer_lost_device(request: Request, error: Any) -> Response:
    """Answer when the GPU computes nothing more in this process; the server's log says why.

    Raises:
        RuntimeError: another error, passed on.
    """
    if is_out_of_memory(error):
        return await _answer_exhausted(request, error)
    if not is_lost_device(error):
        raise error
    reason = str(error).partition("\n")[0]
    _log(f"the GPU failed: {reason}; start the server again, or with --device cpu")
    message = "The GPU of the server failed; its messages say why; it has to be restarted"
    return await _answer_refusal(request, HTTPException(503, message, {"Retry-After": "60"}))


@cache
def _log(message: str) -> None:
    """Print a message once, however many requests meet it."""
    logging.getLogger("uvicorn.error").error(message)


async def _answer_fault(_: Request, error: Any) -> Response:
    """Answer after a bug: no detail leaves the server."""
    return JSONResponse({"error": "Internal error"}, 500)
