"""Texts of apps in JSON and ARB: values are translated; keys, identifiers, order and layout stay to the character."""

import json
import re
from collections.abc import Sequence
from typing import Final, final

from heedful.documents.interface import DocumentFile, decode_text
from heedful.errors import DataError
from heedful.text.identifiers import is_identifier
from heedful.text.tagged_text import TaggedText

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]', re.DOTALL)
_DEEPEST: Final = 200
"""Largest depth of nested objects."""


@final
class JsonFile(DocumentFile):
    """Object of texts by their keys; in ARB, keys that begin with @ hold no texts."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the texts.

        Raises:
            DataError: it is no JSON, or nested too deeply.
        """
        self._document: Final = decode_text(content)
        try:
            json.loads(self._document)
        except (ValueError, RecursionError) as error:
            raise DataError(f"not readable JSON: {error}") from None
        self._spans: Final[list[tuple[int, int]]] = []
        # Of each open object or array: is it an array, does it hold no texts, and its key.
        outer: list[tuple[bool, bool, str]] = []
        key, is_hidden, is_value = "", False, True
        for token in _TOKEN.finditer(self._document):
            match token[0]:
                case "{" | "[" as bracket:
                    is_value = bracket == "["
                    outer.append((is_value, is_hidden, key))
                    if len(outer) > _DEEPEST:
                        raise DataError(f"JSON that is nested deeper than {_DEEPEST}")
                case "}" | "]":
                    outer.pop()
                case ":":
                    is_value = True
                    is_hidden = outer[-1][1] or key.startswith("@")
                case ",":
                    is_value, is_hidden, key = outer[-1]
                case written if not is_value:
                    key = json.loads(written)
                case written if not is_hidden and _is_text(json.loads(written), key):
                    self._spans.append(token.span())
                case _:
                    pass

    @property
    def passages(self) -> list[TaggedText]:
        return [TaggedText(json.loads(self._document[start:end])) for start, end in self._spans]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        written: list[str] = []
        offset = 0
        has_escapes = self._document.isascii() and "\\u" in self._document
        has_tags = "<" in self._document
        for (start, end), output in zip(self._spans, outputs, strict=True):
            source = self._document[start:end]
            is_same = json.loads(source) == output.text
            written.append(self._document[offset:start])
            text = json.dumps(output.text, ensure_ascii=has_escapes)
            # Where the file has no tags, it may stand within a script of a page, which must not end there.
            text = text if has_tags else text.replace("<", "\\u003c")
            written.append(source if is_same else text)
            offset = end
        return "".join([*written, self._document[offset:]]).encode("utf-8")


def _is_text(value: str, key: str) -> bool:
    """True for a string to translate: no identifier, and without halves of surrogate pairs, which are no characters."""
    is_whole = not any("\ud800" <= character <= "\udfff" for character in value)
    return bool(value.strip()) and is_whole and not is_identifier(value, key)
