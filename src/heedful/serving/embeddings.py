"""Routes of OpenAI's embeddings, `/v1/embeddings`, over classifiers, and of its list of models."""

from base64 import b64encode
from typing import Any, Final, cast

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.predictors.classifier import Classifier
from heedful.serving.bodies import read_fields, text_field
from heedful.serving.inference import named_model
from heedful.serving.schemas import EMBED, EMBEDDED
from heedful.serving.service import Service
from heedful.serving.waiting import while_connected
from heedful.serving.work import Encoding

PREFIX: Final = "/v1"
_IDS: Final = (
    "Invalid request: input is neither a text nor a list of texts; a client that sends token ids has a setting against "
    "it, such as check_embedding_ctx_length=False"
)


def make_router(service: Service) -> APIRouter:
    """Make the routes.

    Args:
        service: the server's models and limits.
    """
    router = APIRouter(prefix=PREFIX, tags=["OpenAI"])

    @router.post("/embeddings", openapi_extra=EMBED, responses=EMBEDDED)
    async def embeddings(request: Request) -> Response:
        """Encode texts as vectors, as OpenAI's API does.

        Raises:
            HTTPException: 400, a field is missing or wrong; 404, there is no such model.
        """
        fields = await read_fields(request)
        service.keys.check(request, fields)
        name = text_field(fields, "model")
        model = named_model(service, name)
        if not isinstance(model, Classifier):
            raise HTTPException(400, f"Invalid request: {name[:80]} is for {model.folder.task}, and has no vectors")
        texts, is_packed = _texts(fields.get("input")), _is_packed(fields.get("encoding_format"))
        service.check_texts(texts)
        encoded = await while_connected(request, service.run(Encoding(model), texts))
        size, wanted = len(encoded[0].vector), fields.get("dimensions")
        if wanted not in (None, size):
            raise HTTPException(400, f"Invalid request: dimensions of this model can only be {size}")
        rows = [
            {"object": "embedding", "index": index, "embedding": _written(each.vector, is_packed)}
            for index, each in enumerate(encoded)
        ]
        number = sum(each.num_tokens for each in encoded)
        usage = {"prompt_tokens": number, "total_tokens": number}
        return JSONResponse({"object": "list", "data": rows, "model": name, "usage": usage})

    @router.get("/models")
    async def models(request: Request) -> Response:
        """List the models of the server."""
        service.keys.check(request, request.query_params)
        rows = [
            {"id": name, "object": "model", "created": 0, "owned_by": "heedful", "task": model.folder.task}
            for name, model in service.catalog.named.items()
        ]
        return JSONResponse({"object": "list", "data": rows})

    return router


def _texts(value: Any) -> list[str]:
    """Texts of a request.

    Raises:
        HTTPException: 400, there are none, or token ids in their place.
    """
    rows = [value] if isinstance(value, str) else value
    if rows in (None, [], [""]):
        raise HTTPException(400, "Invalid request: missing input parameter")
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in cast(list[Any], rows)):
        raise HTTPException(400, _IDS)
    return cast(list[str], rows)


def _is_packed(encoding: Any) -> bool:
    """Whether vectors are wanted as base64.

    Raises:
        HTTPException: 400, the encoding is unknown.
    """
    if encoding not in (None, "float", "base64"):
        raise HTTPException(400, "Invalid request: encoding_format is neither float nor base64")
    return encoding == "base64"


def _written(vector: Any, is_packed: bool) -> str | list[float]:
    return b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii") if is_packed else vector.tolist()
