"""Files of plain text and HTML."""

import pytest

from heedful.documents.plain import HtmlFile, TextFile
from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText


def test_plain_text_is_one_passage():
    file = TextFile("\ufeffone\r\ntwo".encode(), 0)
    assert file.passages == [TaggedText("one\ntwo")]
    assert file.write([TaggedText("eins\nzwei")]) == b"eins\nzwei"


def test_a_page_stays_but_for_its_texts():
    file = HtmlFile("<h1 class=a>é</h1>".encode(), 0)
    assert file.write([TaggedText("<")]) == b"<h1 class=a>&lt;</h1>"


def test_text_in_another_encoding_is_refused():
    with pytest.raises(DataError, match="not UTF-8 text"):
        TextFile("día".encode("latin-1"), 0)
