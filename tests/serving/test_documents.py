"""Documents that are taken apart, translated and written again."""

import io
import zipfile
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import pytest

from heedful.errors import DataError
from heedful.serving.documents import FORMATS, DocumentFile
from tests.serving.reversing import serve

MOST = 10_000_000
SUBTITLES = (
    "1\r\n00:00:01,000 --> 00:00:02,500\r\nGood\r\nday.\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n\r\n"
    "3\r\n00:00:05,000 --> 00:00:06,000 X1:40\r\n{\\an8}<i>Bye</i>, all.\r\n- Two\r\n- Three\r\n"
)


def word_document() -> bytes:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("title")
    paragraph = document.add_paragraph("a ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" word").add_break()
    paragraph.add_run("new line\tafter tab")
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "cell"
    document.sections[0].header.paragraphs[0].text = "head"
    return saved(document)


def open_document() -> bytes:
    odfdo = pytest.importorskip("odfdo")
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "title"))
    document.body.append(
        odfdo.Element.from_tag(
            "<text:p>a <text:span>bold</text:span> word<text:line-break/>new line<text:tab/>after tab"
            "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p>"
            "</text:note-body></text:note> end</text:p>"
        )
    )
    document.body.append(odfdo.List(["one", "two"]))
    return saved(document)


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def opened(ending: str, content: bytes) -> DocumentFile:
    return FORMATS[ending](content, MOST)


@pytest.mark.parametrize(
    ("ending", "make", "paragraphs"),
    [
        (".docx", word_document, ["title", "a bold word", "new line", "after tab", "cell", "head"]),
        (".odt", open_document, ["title", "a bold word", "new line", "after tab", " end", "note", "one", "two"]),
        (".srt", lambda: SUBTITLES.encode(), ["Good day.", "Bye", ", all.\n- Two\n- Three"]),
        (".txt", lambda: "\ufeffone\r\ntwo".encode(), ["one\ntwo"]),
    ],
)
def test_paragraphs_are_replaced_one_by_one(ending: str, make: Callable[[], bytes], paragraphs: list[str]):
    document = opened(ending, make())
    assert document.paragraphs() == paragraphs
    outputs = [f" {text.strip().upper()} & <x>" for text in paragraphs]
    if ending in (".srt", ".txt"):
        outputs = [text.upper() for text in paragraphs]
    assert opened(ending, document.write(outputs)).paragraphs() == outputs


def test_numbers_times_and_tags_of_subtitles_stay():
    document = opened(".srt", SUBTITLES.encode())
    assert document.write(["Guten Tag.", "Tschüs", ", alle.\n- Zwei\n- Drei"]).decode() == (
        "1\n00:00:01,000 --> 00:00:02,500\nGuten Tag.\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\n\n\n"
        "3\n00:00:05,000 --> 00:00:06,000 X1:40\n{\\an8}<i>Tschüs</i>, alle.\n- Zwei\n- Drei\n"
    )


def test_a_paragraph_keeps_the_format_of_its_first_words():
    docx = pytest.importorskip("docx")
    source = docx.Document()
    source.add_paragraph().add_run("bold").bold = True
    source.paragraphs[0].add_run(" plain").bold = False
    document = opened(".docx", saved(source))
    written = docx.Document(io.BytesIO(document.write(["fett und mager"])))
    assert [(run.text, run.bold) for run in written.paragraphs[0].runs] == [("fett und mager", True), ("", False)]


def test_the_text_around_a_text_box_stays_outside_it():
    docx = pytest.importorskip("docx")
    source = docx.Document()
    paragraph = source.add_paragraph("before ")
    paragraph.add_run()._element.append(
        docx.oxml.parse_xml(
            '<w:pict xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:txbxContent>'
            "<w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:pict>"
        )
    )
    paragraph.add_run("after")
    document = opened(".docx", saved(source))
    assert document.paragraphs() == ["before after", "box"]
    written = document.write(["outside", "inside"])
    assert docx.Document(io.BytesIO(written)).paragraphs[0].text == "outside"
    assert opened(".docx", written).paragraphs() == ["outside", "inside"]


@pytest.mark.parametrize("ending", [".docx", ".odt"])
def test_files_that_are_no_documents_are_refused(ending: str):
    pytest.importorskip({".docx": "docx", ".odt": "odfdo"}[ending])
    with pytest.raises(DataError, match="not a document of this kind"):
        opened(ending, b"text")
    with pytest.raises(DataError, match=r"not a readable \w+ \w+ \(\w+\)"):
        opened(ending, archive({"a.xml": b"<a/>"}))
    with pytest.raises(DataError, match="its content exceeds 10000000 bytes"):
        opened(ending, archive({"a.xml": bytes(MOST + 1)}))


def test_text_in_another_encoding_is_refused():
    with pytest.raises(DataError, match="not UTF-8 text"):
        opened(".txt", "día".encode("latin-1"))


def archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("ending", "make"), [(".docx", word_document), (".odt", open_document), (".srt", lambda: SUBTITLES.encode())]
)
def test_a_file_is_translated_and_downloaded(ending: str, make: Callable[[], bytes]):
    client = serve()
    content = make()
    answer = client.post(
        "/translate_file", data={"source": "de", "target": "en"}, files={"file": (f"my file{ending}", content)}
    )
    assert answer.status_code == 200, answer.text
    address = answer.json()["translatedFileUrl"]
    assert PurePath(address).name == f"my_file_en{ending}"
    download = client.get(address)
    first = opened(ending, content).paragraphs()[0]
    assert opened(ending, download.content).paragraphs()[0] == first[::-1]
