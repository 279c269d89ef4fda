"""Routes of the Hugging Face Inference API: one model by its name, with the task's parameters and results.

The client of `huggingface_hub` takes the address of a model, such as http://localhost:5000/models/reviews.model, as its
`model` or `base_url`. A model that does several tasks has an address for each, which ends in /pipeline/TASK.
"""

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, NamedTuple, cast

import numpy as np
from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from heedful.data.images import check_picture
from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor
from heedful.predictors.translator import Translator
from heedful.serving.bodies import PICTURE, read_fields, read_picture_or_fields
from heedful.serving.catalog import language_pair
from heedful.serving.languages import canonical
from heedful.serving.schemas import INFER, INFERRED
from heedful.serving.service import Service
from heedful.serving.task_pipelines import label_scores, placed_answers, story_about
from heedful.serving.waiting import while_connected
from heedful.serving.work import Answering, Captioning, Classifying, Encoding

_WITHOUT_EFFECT: Final = frozenset(
    (
        "truncation",
        "truncate",
        "clean_up_tokenization_spaces",
        "align_to_words",
        "doc_stride",
        "max_question_len",
        "max_seq_len",
        "padding",
    )
)
"""Parameters that change nothing here: a text that is too long is cut at its end."""
_ENVELOPE: Final = frozenset(("inputs", "parameters", "options", "api_key", "apiKey", "auth_key"))
"""Fields of a request that are no parameters."""


class Question(NamedTuple):
    """Request for a task of a model."""

    service: Service
    model: Any
    """Predictor of the task's class."""
    inputs: Any
    parameters: dict[str, Any]

    def texts(self) -> list[str]:
        """Return the input as texts.

        Raises:
            HTTPException: 400, it is neither a text nor a list of texts.
        """
        rows = [self.inputs] if isinstance(self.inputs, str) else self.inputs
        if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in cast(list[Any], rows)):
            raise HTTPException(400, "Invalid request: inputs is neither a text nor a list of texts")
        texts = cast(list[str], rows)
        self.service.check_texts(texts)
        return texts

    def number(self, name: str) -> int | None:
        """Take a whole number of 1 or more from the parameters.

        Returns:
            The number; None where it is missing.

        Raises:
            HTTPException: 400, it is something else.
        """
        value = self.parameters.pop(name, None)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise HTTPException(400, f"Invalid request: {name} is not a whole number of 1 or more")
        return value

    def refuse_others(self) -> None:
        """Refuse parameters that were not taken.

        Raises:
            HTTPException: 400, there is one that would change the answer elsewhere.
        """
        others = [name for name, value in self.parameters.items() if value is not None and name not in _WITHOUT_EFFECT]
        if others:
            raise HTTPException(400, f"Invalid request: the parameter {others[0][:40]} is not supported here")


ModelName = Annotated[str, Path(description="Name of the model, as /v1/models lists it.")]
TaskName = Annotated[str, Path(description="Task, such as translation, text-classification, feature-extraction.")]


def make_router(service: Service) -> APIRouter:
    """Make the routes.

    Args:
        service: the server's models and limits.
    """
    router = APIRouter(tags=["inference"])

    @router.post("/models/{name}", openapi_extra=INFER, responses=INFERRED)
    async def infer(name: ModelName, request: Request) -> Response:
        """Do the task of a model, as Hugging Face Inference does."""
        return await _answer(service, name, "", request)

    @router.post("/models/{name}/pipeline/{task}", openapi_extra=INFER, responses=INFERRED)
    async def infer_task(name: ModelName, task: TaskName, request: Request) -> Response:
        """Do one of the tasks of a model, such as feature-extraction."""
        return await _answer(service, name, task, request)

    return router


def named_model(service: Service, name: str) -> Predictor:
    """Find a model by its name.

    Raises:
        HTTPException: 404, there is none of this name.
    """
    known = service.catalog.named
    if name not in known:
        raise HTTPException(404, f"There is no model {name[:80]!r} here; known: {', '.join(known)}"[:1000])
    return known[name]


async def _answer(service: Service, name: str, task: str, request: Request) -> Response:
    """Answer to a question.

    Raises:
        HTTPException: 400, a field is missing or wrong; 404, there is no such model.
    """
    model = service.catalog.named.get(name)
    is_picture = isinstance(model, Captioner)
    fields = await (read_picture_or_fields(request) if is_picture else read_fields(request))
    service.keys.check(request, fields)
    model = named_model(service, name)
    known = [each for each, one in TASKS.items() if isinstance(model, one.kind)]
    if (task or known[0]) not in known:
        raise HTTPException(400, f"Invalid request: {name} does not do {task[:40]!r}; it does: {', '.join(known)}")
    inputs = fields.get(PICTURE, fields.get("inputs"))
    if inputs is None or inputs in ("", [], {}):
        raise HTTPException(400, "Invalid request: missing inputs parameter")
    parameters = fields.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise HTTPException(400, "Invalid request: parameters is not an object")
    others = {each: value for each, value in fields.items() if each not in _ENVELOPE | {PICTURE}}
    question = Question(service, model, inputs, others | cast(dict[str, Any], parameters))
    return JSONResponse(await while_connected(request, TASKS[task or known[0]].run(question)))


def _translating(key: str) -> Callable[[Question], Awaitable[Any]]:
    async def translate(question: Question) -> list[dict[str, str]]:
        pair = language_pair(question.model)
        for name, own in zip(("src_lang", "tgt_lang"), pair, strict=True):
            code = question.parameters.pop(name, None) or own
            if not isinstance(code, str) or canonical(code).partition("-")[0] != own.partition("-")[0]:
                raise HTTPException(
                    400, f"Invalid request: {name} is not a language of this model, {' -> '.join(pair)}"
                )
        question.refuse_others()
        outputs = await question.service.translate_with(question.model, question.texts())
        return [{key: output} for output in outputs]

    return translate


async def _classify(question: Question) -> list[Any]:
    number = question.number("top_k")
    usual = "sigmoid" if question.model.text.labels == "several" else "softmax"
    if question.parameters.pop("function_to_apply", None) not in (None, usual):
        raise HTTPException(400, f"Invalid request: function_to_apply of this model is {usual}")
    question.refuse_others()
    texts = question.texts()
    return [label_scores(one, number) for one in await question.service.run(Classifying(question.model), texts)]


async def _extract(question: Question) -> list[list[float]]:
    is_normalized = question.parameters.pop("normalize", None) is True
    for name, only in (("truncation_direction", "right"), ("encoding_format", "float")):
        if str(question.parameters.pop(name, None) or only).lower() != only:
            raise HTTPException(400, f"Invalid request: {name} can only be {only}")
    question.refuse_others()
    texts = question.texts()
    encoded = await question.service.run(Encoding(question.model), texts)
    vectors = np.stack([each.vector for each in encoded])
    if is_normalized:
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors.tolist()


async def _reply(question: Question) -> Any:
    number = question.number("top_k") or 1
    question.refuse_others()
    row = question.inputs
    asked, context = (row.get(name) if isinstance(row, Mapping) else None for name in ("question", "context"))
    if not isinstance(asked, str) or not isinstance(context, str):
        raise HTTPException(400, "Invalid request: inputs is not an object with question and context, both texts")
    question.service.check_texts([asked, context])
    story = story_about(question.model, asked, context)
    (answer,) = await question.service.run(Answering(question.model), [story])
    results = placed_answers(answer, context, number)
    return results[0] if number == 1 else results


async def _describe(question: Question) -> list[dict[str, str]]:
    question.refuse_others()
    content = question.inputs
    if isinstance(content, str):
        try:
            content = b64decode(content.rpartition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            raise HTTPException(400, "Invalid request: inputs is not a picture in base64") from None
    picture = await checked_picture(question.service, question.model, content)
    (caption,) = await question.service.run(Captioning(question.model), [picture])
    return [{"generated_text": caption.text}]


async def checked_picture(service: Service, captioner: Captioner, content: object) -> bytes:
    """Check a picture before it is decoded.

    Returns:
        The content of its file.

    Raises:
        HTTPException: 400, it is no picture, or the model reads none.
        DataError: it cannot be read, or has too many pixels.
    """
    if captioner.images.kind == "features":
        raise HTTPException(
            400, "Invalid request: this model reads arrays of features, which this server does not take"
        )
    if not isinstance(content, bytes) or not content:
        raise HTTPException(400, "Invalid request: the body is no picture")
    limits = service.limits
    await run_in_threadpool(check_picture, content, limits.picture_pixels, limits.picture_bytes)
    return content


class _Task(NamedTuple):
    """Class of the models that do a task, and the function that answers."""

    kind: type[Predictor]
    run: Callable[[Question], Any]


TASKS: Final[Mapping[str, _Task]] = {
    "translation": _Task(Translator, _translating("translation_text")),
    "summarization": _Task(Translator, _translating("summary_text")),
    "text2text-generation": _Task(Translator, _translating("generated_text")),
    "text-classification": _Task(Classifier, _classify),
    "feature-extraction": _Task(Classifier, _extract),
    "question-answering": _Task(Answerer, _reply),
    "image-to-text": _Task(Captioner, _describe),
}
"""Tasks by their names at Hugging Face; the first of a class is the one of a model's own address."""
