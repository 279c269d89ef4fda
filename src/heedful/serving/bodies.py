"""Fields of a request, from its query string and a JSON, form or multipart body."""

import asyncio
import gc
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from python_multipart.exceptions import FormParserError
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

FORM: Final = "multipart/form-data"
"""Kind of a body whose files are kept on disk while they arrive; all else of it, and other bodies, are in memory."""
_MOST_FIELDS: Final = 1000
_LITTLE: Final = 1 << 15
"""Bytes of a form that is decoded at once; a larger one takes up to 0.1 s a megabyte, beside which others go on."""
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})++")
_REPEATABLE: Final = frozenset(("q", "text"))
"""Fields that forms may repeat for a list of texts, as clients of LibreTranslate and DeepL do."""


class UploadedFile(NamedTuple):
    """File of a multipart form, on disk if it is large."""

    name: str
    file: UploadFile

    async def content(self) -> bytes:
        """Read the file, as often as it is needed; while many clients wait for their turn, its bytes are on disk."""
        await self.file.seek(0)
        return await self.file.read()


PICTURE: Final = "picture"
"""Field of a picture that is the whole body of a request."""


def has_picture(headers: Headers) -> bool:
    """Say whether the body of a request is a picture itself, by its kind."""
    return kind_of(headers).startswith("image/") or kind_of(headers) in ("", "application/octet-stream")


async def read_picture_or_fields(request: Request) -> dict[str, Any]:
    """Read the fields of a request whose body may be a picture.

    Returns:
        The fields of `read_fields`; or those of the query string and the content of the picture, `PICTURE`.

    Raises:
        HTTPException: 400, the body cannot be read.
    """
    if not has_picture(request.headers) or (body := await request.body()).lstrip()[:1] == b"{":
        return await read_fields(request)
    fields = _pairs(request.scope["query_string"])
    _refuse_surrogates(fields)
    return fields | {PICTURE: body}


async def read_fields(
    request: Request, most_fields: int = _MOST_FIELDS, most_field_bytes: int = 1 << 20
) -> dict[str, Any]:
    """Read the fields of a request; those of the body win over those of the query string.

    Args:
        most_fields: largest number of texts of a multipart form, which are in memory while they arrive.
        most_field_bytes: largest size of each of them.

    Returns:
        Strings and files from forms; any JSON values from JSON. Line ends of form text are line feeds.

    Raises:
        HTTPException: 400, the body cannot be read.
    """
    fields: dict[str, Any] = _pairs(request.scope["query_string"])
    kind = kind_of(request.headers)
    if kind == FORM:
        fields |= await _multipart(request, most_fields, most_field_bytes)
    else:
        body = await request.body()
        if kind.endswith("json") or (body.lstrip()[:1] == b"{" and "form" not in kind):
            content = parse_json(body)
            if b"\\u" in body:  # only escapes can be surrogates
                try:
                    json.dumps(content, ensure_ascii=False).encode("utf-8")  # many times as fast as a search
                except (UnicodeEncodeError, RecursionError):
                    raise HTTPException(400, "Invalid request: a text is not valid Unicode") from None
            return fields | content
        elif body and request.method == "POST":
            fields |= _pairs(body) if len(body) <= _LITTLE else await asyncio.to_thread(_pairs, body)
    _refuse_surrogates(fields)
    return fields


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a JSON object, strictly.

    Args:
        body: UTF-8 text.

    Raises:
        HTTPException: 400, it is no JSON object, or nested too deeply, or holds NaN or Infinity.

    Example:
        >>> parse_json(b'{"q": "text"}')
        {'q': 'text'}
    """
    has_collector = gc.isenabled()
    gc.disable()  # else it looks through all of the server's objects again and again while lists within lists are made
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise HTTPException(400, "Invalid request: the body is not valid JSON") from None
    finally:
        if has_collector:
            gc.enable()
    if not isinstance(value, dict):
        raise HTTPException(400, "Invalid request: the body is not a JSON object")
    return cast(dict[str, Any], value)


def wants_faults(fields: Mapping[str, Any]) -> bool:
    """True for a request whose answer is to name the faults of sentences."""
    return str(fields.get("faults") or "").lower() in ("true", "1")


def text_field(fields: Mapping[str, Any], *names: str) -> str:
    """Return a field that must be a text.

    Args:
        names: the field's names, the first one for messages.

    Raises:
        HTTPException: 400, the field is missing, empty or no text.
    """
    value = next((fields[name] for name in names if name in fields), None)
    if value is None or value == "":
        raise HTTPException(400, f"Invalid request: missing {names[0]} parameter")
    if not isinstance(value, str):
        raise HTTPException(400, f"Invalid request: {names[0]} is not a text")
    return value


def whole_field(fields: Mapping[str, Any], name: str) -> int:
    """Return a field that is a whole number of 0 or more.

    Args:
        name: the field's name.

    Returns:
        The number; 0 where the field is missing or empty.

    Raises:
        HTTPException: 400, the field is something else.
    """
    value = fields.get(name)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise HTTPException(400, f"Invalid request: {name} is not a whole number")


def _pairs(text: bytes) -> dict[str, Any]:
    if text.count(b"&") >= _MOST_FIELDS:
        raise HTTPException(400, "Invalid request: the form has too many fields")
    try:
        parts = [part for part in text.decode("utf-8").split("&") if part]
        pairs = [(_decoded(name), _decoded(value)) for name, _, value in (part.partition("=") for part in parts)]
    except ValueError:
        raise HTTPException(400, "Invalid request: the form is not valid UTF-8") from None
    fields: dict[str, Any] = {}
    for name, value in pairs:
        _add_text(fields, name, value)
    return fields


def _decoded(text: str) -> str:
    """Text of a form without escapes; `urllib.parse` takes ten times as long for many of them.

    Raises:
        ValueError: it is not UTF-8.
    """
    return _ESCAPES.sub(lambda run: bytes.fromhex(run[0].replace("%", "")).decode("utf-8"), text.replace("+", " "))


def _add_text(fields: dict[str, Any], name: str, value: str) -> None:
    """Add a text of a form; a repeated field becomes a list where it may, and else has its last value."""
    plain = value.replace("\r\n", "\n").replace("\r", "\n")
    earlier = fields.get(name) if name in _REPEATABLE else None
    match earlier:
        case str():
            fields[name] = [earlier, plain]
        case list():
            fields[name] = [*cast(list[str], earlier), plain]
        case _:
            fields[name] = plain


def kind_of(headers: Headers) -> str:
    """Return the kind of a body, such as ``application/json``."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def _multipart(request: Request, most_fields: int, most_bytes: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    try:
        form = await request.form(max_files=1, max_fields=most_fields, max_part_size=most_bytes)
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                fields[name] = UploadedFile(value.filename or "", value)
            else:
                _add_text(fields, name, value)
    except (FormParserError, ValueError, KeyError):
        raise HTTPException(400, "Invalid request: the multipart body cannot be read") from None
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _refuse_surrogates(value: object) -> None:
    """Refuse a text that UTF-8 cannot hold, before it reaches a tokenizer.

    Raises:
        HTTPException: 400, there is one.
    """
    waiting: list[object] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                try:
                    text.encode("utf-8")
                except UnicodeEncodeError:
                    raise HTTPException(400, "Invalid request: a text is not valid Unicode") from None
            case dict() as members:
                waiting.extend(cast(dict[str, object], members).keys())
                waiting.extend(cast(dict[str, object], members).values())
            case list() as items:
                waiting.extend(cast(list[object], items))
            case _:
                pass
