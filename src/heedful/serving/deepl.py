"""DeepL's routes under /v2, and the bodies of DeepLX."""

from collections.abc import Mapping
from typing import Any, Final, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.documents.markup_rules import TagHandling
from heedful.serving.bodies import read_fields, text_field
from heedful.serving.languages import name_of
from heedful.serving.schemas import DEEPL, DEEPL_ANSWERS, DEEPL_LANGUAGES
from heedful.serving.service import AUTO, Order, Service
from heedful.serving.waiting import while_connected

_DEEPLX_ALTERNATIVES: Final = 3


def make_router(service: Service) -> APIRouter:
    """Make the routes.

    Args:
        service: the server's models and limits.
    """
    router = APIRouter(prefix="/v2", tags=["DeepL"])

    @router.post("/translate", openapi_extra=DEEPL, responses=DEEPL_ANSWERS)
    async def translate(request: Request) -> Response:
        """Translate texts as DeepL does.

        Raises:
            HTTPException: 400, a field is missing or wrong.
        """
        fields = await read_fields(request)
        service.keys.check(request, fields)
        source = fields.get("source_lang") or AUTO
        if not isinstance(source, str):
            raise HTTPException(400, "Invalid request: source_lang is not a text")
        order = Order(_texts(fields), source, text_field(fields, "target_lang"), _tag_handling(fields))
        answers = await while_connected(request, service.translate(order))
        rows = [{"detected_source_language": _upper(answer.source), "text": answer.text} for answer in answers]
        return JSONResponse({"translations": rows})

    @router.get("/languages", openapi_extra=DEEPL_LANGUAGES)
    async def languages(request: Request) -> Response:
        """List source or target languages, by the parameter `type`."""
        catalog = service.catalog
        is_target = request.query_params.get("type") == "target"
        codes = [code for code in catalog.codes if code not in catalog.sources or catalog.targets(code)]
        listed = [code for code in codes if _is_target(code, service)] if is_target else catalog.sources
        return JSONResponse([{"language": _upper(code), "name": name_of(code)} for code in listed])

    return router


async def answer_deeplx(service: Service, fields: Mapping[str, Any]) -> Response:
    """Answer a body of DeepLX.

    Args:
        service: the server's models and limits.
        fields: text, source_lang and target_lang.

    Returns:
        The translation with up to three alternatives, or as many as the server gives.

    Raises:
        HTTPException: 400, a field is missing or wrong.
    """
    source = fields.get("source_lang") or AUTO
    if not isinstance(source, str):
        raise HTTPException(400, "Invalid request: source_lang is not a text")
    source = AUTO if source.lower() == AUTO else source
    num_alternatives = min(_DEEPLX_ALTERNATIVES, service.limits.alternatives)
    order = Order(
        [text_field(fields, "text")], source, text_field(fields, "target_lang"), num_alternatives=num_alternatives
    )
    (answer,) = await service.translate(order)
    return JSONResponse(
        {
            "code": 200,
            "data": answer.text,
            "alternatives": [*answer.alternatives],
            "source_lang": _upper(answer.source),
            "target_lang": _upper(answer.target),
            "method": "Free",
        }
    )


def _texts(fields: Mapping[str, Any]) -> list[str]:
    texts = fields.get("text")
    if isinstance(texts, str) and texts:
        return [texts]
    is_list = isinstance(texts, list) and all(isinstance(text, str) for text in cast(list[object], texts))
    if not texts or not is_list:
        raise HTTPException(400, "Invalid request: text is neither a text nor a list of texts")
    return cast(list[str], texts)


def _tag_handling(fields: Mapping[str, Any]) -> TagHandling | None:
    """Treatment of tags that a request asks for.

    Raises:
        HTTPException: 400, a field is wrong.
    """
    kind = fields.get("tag_handling") or None
    if kind is None:
        return None
    if kind not in ("html", "xml"):
        raise HTTPException(400, "Invalid request: tag_handling is neither html nor xml")
    ignored, splitting = _names(fields, "ignore_tags"), _names(fields, "splitting_tags")
    has_outline = str(fields.get("outline_detection", "1")).lower() not in ("0", "false")
    return TagHandling(kind, ignored, splitting, _names(fields, "non_splitting_tags"), has_outline)


def _names(fields: Mapping[str, Any], name: str) -> frozenset[str]:
    """Names of elements: a list, or separated by commas.

    Raises:
        HTTPException: 400, they are neither.
    """
    value = fields.get(name) or []
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(one, str) for one in cast(list[object], names)):
        raise HTTPException(400, f"Invalid request: {name} is no list of names")
    return frozenset(one.strip() for one in cast(list[str], names) if one.strip())


def _is_target(code: str, service: Service) -> bool:
    return any(code in service.catalog.targets(source) for source in service.catalog.sources)


def _upper(code: str) -> str:
    """Spelling of DeepL, such as ``EN`` or ``ZH-HANS``; plain ``ZH`` for simplified Chinese."""
    return "ZH" if code == "zh-Hans" else code.upper()
