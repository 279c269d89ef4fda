"""LibreTranslate's routes: translate, detect, languages, settings, suggestions and health."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.documents.markup_rules import TagHandling
from heedful.documents.table import FORMATS
from heedful.errors import ResourceError
from heedful.serving import deepl
from heedful.serving.bodies import read_fields, text_field, wants_faults, whole_field
from heedful.serving.catalog import Catalog
from heedful.serving.detection import Guess
from heedful.serving.languages import name_of
from heedful.serving.schemas import DETECT, ERRORS, SUGGEST, TRANSLATE, TRANSLATED
from heedful.serving.service import AUTO, Order, ServedText, Service
from heedful.serving.waiting import while_connected

_FRONTEND_MILLISECONDS: Final = 500


def make_router(service: Service) -> APIRouter:
    """Make the routes.

    Args:
        service: the server's models and limits.
    """
    router = APIRouter(tags=["translation"])

    @router.post("/", include_in_schema=False)
    @router.post("/translate", openapi_extra=TRANSLATE, responses=TRANSLATED)
    async def translate(request: Request) -> Response:
        """Translate a text or a list of texts; a body with `text` in place of `q` is answered as DeepLX does."""
        fields = await read_fields(request)
        service.keys.check(request, fields)
        if "text" in fields and "q" not in fields:
            return await while_connected(request, deepl.answer_deeplx(service, fields))
        order = _order(fields)
        answers = await while_connected(request, service.translate(order))
        return JSONResponse(_body(fields["q"], order, answers))

    @router.post("/detect", openapi_extra=DETECT, responses=ERRORS)
    async def detect(request: Request) -> Response:
        """Detect the source language of a text, best first."""
        fields = await read_fields(request)
        service.keys.check(request, fields)
        text = text_field(fields, "q")
        service.check_size(Order([text], AUTO, AUTO))
        guesses = service.detector.detect(text)
        return JSONResponse([_guess(guess) for guess in guesses])

    @router.post("/suggest", openapi_extra=SUGGEST, responses=ERRORS)
    async def suggest(request: Request) -> Response:
        """Store a better translation in the file of suggestions, and correct the model where the server does so.

        Raises:
            HTTPException: 403, the server takes no suggestions, or its file is full or cannot be written; 400, it is
                no correction.
        """
        fields = await read_fields(request)
        service.keys.check(request, fields)
        if service.suggestions is None and not service.takes_corrections:
            raise HTTPException(403, "Suggestions are disabled on this server.")
        text, better = text_field(fields, "q"), text_field(fields, "s")
        source, target = text_field(fields, "source"), service.language(text_field(fields, "target"))
        service.check_size(Order([text, better], source, target))
        known = AUTO if source == AUTO else service.language(source)
        if service.takes_corrections:  # before it is stored, because it may be refused
            await service.correct(text, better, known, target)
        outcome = "; the model was corrected all the same" if service.takes_corrections else ""
        if service.suggestions is not None:
            try:
                is_stored = await asyncio.to_thread(service.suggestions.add, text, better, known, target)
            except ResourceError:
                raise HTTPException(403, f"The suggestion cannot be written{outcome}.") from None
            if not is_stored:
                raise HTTPException(403, f"The file of suggestions is full{outcome}.")
        return JSONResponse({"success": True})

    @router.get("/languages")
    async def languages() -> Response:
        """List languages with the targets that can be reached from each."""
        return JSONResponse(service.catalog.languages())

    @router.get("/frontend/settings")
    async def settings() -> Response:
        """List settings for a page."""
        return JSONResponse(_settings(service))

    @router.get("/health")
    async def health() -> Response:
        """Say that the server runs."""
        return JSONResponse({"status": "ok"})

    return router


def _order(fields: Mapping[str, Any]) -> Order:
    """Request for translations from its fields.

    Raises:
        HTTPException: 400, a field is missing or wrong.
    """
    texts = fields.get("q")
    if texts is None or texts in ("", []):
        raise HTTPException(400, "Invalid request: missing q parameter")
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in cast(list[object], texts)):
        raise HTTPException(400, "Invalid request: q is neither a text nor a list of texts")
    source, target = text_field(fields, "source"), text_field(fields, "target")
    kind = fields.get("format") or "text"
    if kind not in ("text", "html"):
        raise HTTPException(400, "Invalid request: format is neither text nor html")
    markup = TagHandling() if kind == "html" else None
    order = Order(cast(list[str], texts), source, target, markup, whole_field(fields, "alternatives"))
    return replace(order, needs_faults=wants_faults(fields))


def _body(q: object, order: Order, answers: list[ServedText]) -> dict[str, object]:
    """Body of the answer: lists for a list of texts, single values for one text."""
    columns: dict[str, list[object]] = {"translatedText": [answer.text for answer in answers]}
    if order.source == AUTO:
        columns["detectedLanguage"] = [_guess(answer.detected) for answer in answers if answer.detected]
    if order.num_alternatives:
        columns["alternatives"] = [[*answer.alternatives] for answer in answers]
    if order.needs_faults:
        columns["faults"] = [answer.fault for answer in answers]
    return {name: values if isinstance(q, list) else values[0] for name, values in columns.items()}


def _guess(guess: Guess) -> dict[str, object]:
    return {"confidence": guess.confidence, "language": guess.language}


def _settings(service: Service) -> dict[str, object]:
    source, target = _first_pair(service.catalog)
    return {
        "apiKeys": service.keys.are_required,
        "charLimit": service.limits.characters,
        "filesTranslation": True,
        "frontendTimeout": _FRONTEND_MILLISECONDS,
        "keyRequired": service.keys.are_required,
        "language": {
            "source": {"code": source, "name": name_of(source)},
            "target": {"code": target, "name": name_of(target)},
        },
        "suggestions": service.suggestions is not None or service.takes_corrections,
        "supportedFilesFormat": [*FORMATS],
    }


def _first_pair(catalog: Catalog) -> tuple[str, str]:
    return next(iter(catalog.models), ("", ""))
