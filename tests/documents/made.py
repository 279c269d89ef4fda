"""Documents made by the libraries of their formats."""

import io
import zipfile
from typing import Any

import pytest


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def word() -> bytes:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("title")
    paragraph = document.add_paragraph("a ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" word").add_break()
    paragraph.add_run("and more\tafter tab").italic = True
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "cell"
    document.sections[0].header.paragraphs[0].text = "head"
    return saved(document)


def presentation() -> bytes:
    pptx = pytest.importorskip("pptx")
    document = pptx.Presentation()
    slide = document.slides.add_slide(document.slide_layouts[1])
    slide.shapes.title.text = "title"
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    for text, is_bold in (("a ", None), ("bold", True), (" word", None)):
        run = paragraph.add_run()
        run.text, run.font.bold = text, is_bold
    slide.notes_slide.notes_text_frame.text = "note"
    return saved(document)


def open_text() -> bytes:
    odfdo = pytest.importorskip("odfdo")
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "title"))
    document.body.append(
        odfdo.Element.from_tag(
            '<text:p>a <text:span text:style-name="T1">bold</text:span> word<text:line-break/>and more'
            "<text:tab/>after tab<text:note><text:note-citation>1</text:note-citation>"
            "<text:note-body><text:p>note</text:p>"
            "</text:note-body></text:note> end</text:p>"
        )
    )
    document.body.append(odfdo.List(["one", "two"]))
    return saved(document)


def open_presentation() -> bytes:
    odfdo = pytest.importorskip("odfdo")
    document = odfdo.Document("presentation")
    document.body.clear()
    page = odfdo.DrawPage("page1", name="Page 1")
    frame = odfdo.Frame.text_frame("title")
    page.append(frame)
    document.body.append(page)
    return saved(document)


def archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return file.getvalue()
