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


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "gb18030", "shift_jis", "cp1251"])
def test_text_in_another_encoding_is_written_in_it(encoding: str):
    text = {"cp1252": "für día „é“", "cp1251": "Привет, это файл с русским текстом."}.get(encoding, "你好，世界。我们")
    text = "こんにちは、せかいの みなさん" if encoding == "shift_jis" else text
    file = TextFile(text.encode(encoding), 0)
    assert file.passages == [TaggedText(text)]
    assert file.encoding != "UTF-8"
    assert file.write([TaggedText(text[::-1])]).decode(encoding) == text[::-1]


def test_letters_that_the_encoding_lacks_are_written_in_utf_8():
    assert TextFile("día más".encode("latin-1"), 0).write([TaggedText("“日”")]).decode() == "“日”"


@pytest.mark.parametrize(
    "content", [b"\x81\xff", b"a\0\xe4", "zażółć gęślą jaźń".encode("cp1250"), "für".encode() * 9 + b"\xe4"]
)
def test_bytes_of_no_known_encoding_are_refused(content: bytes):
    with pytest.raises(DataError, match="not UTF-8 text"):
        TextFile(content, 0)


def test_pages_are_utf_8():
    with pytest.raises(DataError, match="not UTF-8 text"):
        HtmlFile("día".encode("latin-1"), 0)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("doći će i život", "cp1250"),
        ("őrült nagy fű", "cp1250"),
        ("nasılsınız, güzel çocuk", "cp1254"),
        ("Dzień dobry", "cp1250"),
        ("Καλημέρα σας, τι κάνετε σήμερα", "cp1253"),
        ("שלום לכם מה שלומכם", "cp1255"),
        ("مرحبا بكم في هذا", "cp1256"),
        ("ÄÖ", "cp1252"),
        ("abc def", "utf-16le"),
    ],
)
def test_an_encoding_that_the_letters_do_not_tell_is_no_guess(text: str, encoding: str):
    with pytest.raises(DataError, match="convert the file to UTF-8"):
        TextFile(text.encode(encoding), 0)


def test_a_long_line_of_ascii_is_read_in_linear_time():
    content = b"a" * 2_000_000 + b"\nB\xe4r \xf6l\x1a"
    assert TextFile(content, 0).passages[0].text.endswith("\nBär öl")
