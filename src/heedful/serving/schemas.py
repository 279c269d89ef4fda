"""OpenAPI descriptions of bodies that are accepted as JSON and as forms, and of the answers."""

from typing import Any, Final

_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
_CODE: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "examples": ["en"]}
_TEXTS: Final[dict[str, Any]] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 500}]}
_NAMES: Final[dict[str, Any]] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_QUESTION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"question": _TEXT, "context": _TEXT},
    "required": ["question", "context"],
}


def _field(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


_SOURCE: Final = _field(_CODE, "Language of the source, as /languages lists it; auto = detected from the text.")
_TARGET: Final = _field(_CODE, "Language to translate into, as /languages lists it.")
_KEY: Final = _field({"type": "string"}, "Key of the client, where the server asks for keys.")


def _described(properties: dict[str, Any], required: list[str], kinds: tuple[str, ...]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


_FAULTS: Final = _field(
    {"type": "boolean", "default": False},
    "Whether to tell for which fault a sentence stands untranslated: loop, length or empty; or that its translation "
    "lacks a span that should stay as it is: lost.",
)
_BOTH: Final = ("application/json", "application/x-www-form-urlencoded")
TRANSLATE: Final = _described(
    {
        "q": _field(
            {"anyOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 500}]},
            "Text or texts to translate; texts of a list may be empty.",
        ),
        "source": _SOURCE,
        "target": _TARGET,
        "format": _field(
            {"type": "string", "enum": ["text", "html"], "default": "text"},
            "Kind of text; tags of html stay around the words that they mark.",
        ),
        "alternatives": _field(
            {"type": "integer", "minimum": 0, "maximum": 10, "default": 0}, "Number of further translations of a text."
        ),
        "faults": _FAULTS,
        "api_key": _KEY,
    },
    ["q", "source", "target"],
    _BOTH,
)
DETECT: Final = _described({"q": _field(_TEXT, "Text whose language is asked for."), "api_key": _KEY}, ["q"], _BOTH)
SUGGEST: Final = _described(
    {
        "q": _field(_TEXT, "Source text."),
        "s": _field(_TEXT, "Better translation of it."),
        "source": _SOURCE,
        "target": _TARGET,
        "api_key": _KEY,
    },
    ["q", "s", "source", "target"],
    _BOTH,
)
FILE: Final = _described(
    {
        "file": _field({"type": "string", "format": "binary"}, "File to translate; its suffix tells its format."),
        "source": _SOURCE,
        "target": _TARGET,
        "faults": _FAULTS,
        "api_key": _KEY,
    },
    ["file", "source", "target"],
    ("multipart/form-data",),
)
DEEPL: Final = _described(
    {
        "text": _field({"type": "array", "items": {"type": "string"}, "minItems": 1}, "Texts to translate."),
        "source_lang": _field({"type": "string"}, "Language of the source; without it, it is detected from the texts."),
        "target_lang": _field(_CODE, "Language to translate into."),
        "tag_handling": _field(
            {"type": "string", "enum": ["html", "xml"]}, "Kind of markup in the texts; without it, tags are text."
        ),
        "ignore_tags": _field(_NAMES, "Elements whose contents are not translated: a list, or separated by commas."),
        "splitting_tags": _field(_NAMES, "Elements that end a sentence."),
        "non_splitting_tags": _field(_NAMES, "Elements that never end a sentence."),
        "outline_detection": _field(
            {"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["0", "1"]}], "default": True},
            "Whether elements of XML that never stand beside text end a sentence too.",
        ),
    },
    ["text", "target_lang"],
    _BOTH,
)
DEEPL_LANGUAGES: Final = {
    "parameters": [
        {
            "name": "type",
            "in": "query",
            "required": False,
            "schema": {"type": "string", "enum": ["source", "target"], "default": "source"},
            "description": "Side of the languages to list.",
        }
    ]
}
INFER: Final = _described(
    {
        "inputs": _field(
            {"anyOf": [*_TEXTS["anyOf"], _QUESTION]},
            "Text or texts, or a question with its context; a picture is sent as the body itself.",
        ),
        "parameters": _field(
            {"type": "object"},
            "Options of the task, such as top_k, normalize, src_lang and tgt_lang; others are refused.",
        ),
        "api_key": _KEY,
    },
    ["inputs"],
    ("application/json",),
)
EMBED: Final = _described(
    {
        "input": _field(_TEXTS, "Text or texts to encode as vectors."),
        "model": _field(_TEXT, "Name of a classifier, as /v1/models lists it."),
        "encoding_format": _field(
            {"type": "string", "enum": ["float", "base64"], "default": "float"}, "Form of the vectors."
        ),
        "dimensions": _field(
            {"type": "integer", "minimum": 1}, "Length of the vectors; only that of the model is accepted."
        ),
    },
    ["input", "model"],
    ("application/json",),
)
_ERROR: Final[dict[str, Any]] = {
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
        }
    }
}
ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": description, **_ERROR}
    for status, description in {
        400: "A parameter is missing, wrong or too large.",
        403: "The key is missing or wrong, or the site is not allowed.",
        404: "There is no such file or model.",
        408: "The request did not arrive in time.",
        413: "The body is too large.",
        429: "Too many requests of this client; see Retry-After.",
        503: "The server is too busy; see Retry-After.",
    }.items()
}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


TRANSLATED: Final[dict[int | str, dict[str, Any]]] = ERRORS | {
    200: _object(
        {
            "translatedText": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "detectedLanguage": {"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
            "alternatives": {"type": "array"},
            "faults": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        },
        ["translatedText"],
    )
}
DEEPL_ANSWERS: Final[dict[int | str, dict[str, Any]]] = ERRORS | {
    200: _object({"translations": {"type": "array", "items": {"type": "object"}}}, ["translations"])
}
INFERRED: Final[dict[int | str, dict[str, Any]]] = ERRORS | {
    200: {"description": "Done.", "content": {"application/json": {"schema": {"type": ["array", "object"]}}}}
}
_OPENAI_ERROR: Final[dict[str, Any]] = {"type": "object", "properties": {"error": {}}, "required": ["error"]}
EMBEDDED: Final[dict[int | str, dict[str, Any]]] = {
    status: one | {"content": {"application/json": {"schema": _OPENAI_ERROR}}} for status, one in ERRORS.items()
} | {
    200: _object(
        {"data": {"type": "array", "items": {"type": "object"}}, "usage": {"type": "object"}}, ["data", "usage"]
    )
}
