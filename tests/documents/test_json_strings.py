"""Texts in JSON and ARB."""

import pytest

from heedful.documents.json_strings import JsonFile
from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText
from tests.documents.changed import in_capitals, texts

ARB = r"""{ "@@locale": "de",
  "hi": "a {b}", "@hi": {"description": "no", "placeholders": {"b": {"type": "no"}}},
  "n": 3, "list": ["x", {"k": "\u00e4", "l": " "}], "quote": "\"q\"", "half": "\ud800" }
"""


def test_values_are_translated_and_all_else_stays():
    assert texts(".arb", ARB) == ["a {b}", "x", "ä", '"q"']
    changed = ARB.replace("a {b}", "A {B}").replace('"x"', '"X"').replace("\\u00e4", "\\u00c4").replace("q", "Q")
    assert in_capitals(".arb", ARB) == changed.replace("Quote", "quote")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": "b"', b"[" * 100_000, b"[" * 300 + b"]" * 300, b'"\xff"'])
def test_what_is_no_json_is_refused(content: bytes):
    with pytest.raises(DataError, match=r"JSON|UTF-8"):
        JsonFile(content, 0)


def test_texts_of_a_file_without_tags_end_no_script():
    for source, expected in (
        ('{"a": "b"}', r'{"a": "\u003c/script>"}'),
        ('{"a": "<b>"}', '{"a": "</script>"}'),
        (r'{"a": "\u003cb"}', r'{"a": "\u003c/script>"}'),
    ):
        file = JsonFile(source.encode(), 0)
        assert file.write([TaggedText("</script>")]).decode() == expected


def test_identifiers_stay():
    source = (
        '{"id": "user_name", "userId": "hund", "a": "#ff0000", "b": "./x/y.png", "c": "menu.file", "d": "userName", '
        '"e": "https://x.de", "f": {"id": "k-1", "list": ["hund", {"id": "z"}, "katze"]}, "g": "und/oder", '
        '"h": "t-shirt", "i": "z.B.", "key": "hund"}'
    )
    assert texts(".json", source) == ["hund", "katze", "und/oder", "t-shirt", "z.B.", "hund"]
    assert in_capitals(".json", '{"id": "a_b", "c": "d"}') == '{"id": "a_b", "c": "D"}'
    assert texts(".properties", "a.id=x\nb=logo.png\nc: MAX_SIZE\nd=hund\n") == ["hund"]
