"""OpenAPI descriptions of bodies that are accepted as JSON and as forms, and of the answers."""

from typing import Any, Final

_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
_CODE: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "examples": ["en"]}
_KEY: Final[dict[str, Any]] = {"type": "string"}


def _described(properties: dict[str, Any], required: list[str], kinds: tuple[str, ...]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


_BOTH: Final = ("application/json", "application/x-www-form-urlencoded")
TRANSLATE: Final = _described(
    {
        "q": {"anyOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 500}]},
        "source": _CODE,
        "target": _CODE,
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 10},
        "api_key": _KEY,
    },
    ["q", "source", "target"],
    _BOTH,
)
DETECT: Final = _described({"q": _TEXT, "api_key": _KEY}, ["q"], _BOTH)
SUGGEST: Final = _described(
    {"q": _TEXT, "s": _TEXT, "source": _CODE, "target": _CODE, "api_key": _KEY}, ["q", "s", "source", "target"], _BOTH
)
FILE: Final = _described(
    {"file": {"type": "string", "format": "binary"}, "source": _CODE, "target": _CODE, "api_key": _KEY},
    ["file", "source", "target"],
    ("multipart/form-data",),
)
_NAMES: Final[dict[str, Any]] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
DEEPL: Final = _described(
    {
        "text": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "source_lang": {"type": "string"},
        "target_lang": _CODE,
        "tag_handling": {"type": "string", "enum": ["html", "xml"]},
        "ignore_tags": _NAMES,
        "splitting_tags": _NAMES,
        "non_splitting_tags": _NAMES,
        "outline_detection": {"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["0", "1"]}]},
    },
    ["text", "target_lang"],
    _BOTH,
)
_TEXTS: Final[dict[str, Any]] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 500}]}
INFER: Final = _described(
    {
        "inputs": {
            "anyOf": [
                *_TEXTS["anyOf"],
                {
                    "type": "object",
                    "properties": {"question": _TEXT, "context": _TEXT},
                    "required": ["question", "context"],
                },
            ]
        },
        "parameters": {"type": "object"},
        "api_key": _KEY,
    },
    ["inputs"],
    ("application/json",),
)
EMBED: Final = _described(
    {
        "input": _TEXTS,
        "model": _TEXT,
        "encoding_format": {"type": "string", "enum": ["float", "base64"]},
        "dimensions": {"type": "integer", "minimum": 1},
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
