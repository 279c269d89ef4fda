"""Files of each format, made by its own library, translated, and reopened by that library: is the formatting equal?

    pip install 'heedful[documents]' pysubs2 markdown-it-py
    python benchmarks/document_formats.py MODEL
    python benchmarks/document_formats.py libraries

Prints a row of a table for each format: the library, the passages, how many texts changed, and whether all that is not
text is equal: styles, runs, tables, times, keys and tags in their order. `libraries` writes the files in capitals, by
the texts of the paragraphs of their libraries and by ours, and says what is left of the rest.
"""

import io
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

Outline = tuple[list[Any], list[str]]
"""Formatting of a file without its texts, and these."""
FIRST, RED, SECOND = "Ein Hund läuft im Schnee.", "roter", "Zwei Frauen warten."


@dataclass(frozen=True)
class Format:
    """Format of files, with the library that makes and reads them."""

    ending: str
    library: str
    make: Callable[[], bytes]
    read: Callable[[bytes], Outline]


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def make_word() -> bytes:
    document = import_module("docx").Document()
    document.add_heading(FIRST, 2)
    paragraph = document.add_paragraph("Ein ", style="List Bullet")
    paragraph.add_run(RED).bold = True
    paragraph.add_run(" Hund läuft.").italic = True
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = SECOND, "4711"
    document.sections[0].header.paragraphs[0].text = SECOND
    document.core_properties.title = FIRST
    return saved(document)


def read_word(content: bytes) -> Outline:
    document = import_module("docx").Document(io.BytesIO(content))
    cells = [cell for table in document.tables for row in table.rows for cell in row.cells]
    paragraphs = [*document.paragraphs, *document.sections[0].header.paragraphs]
    paragraphs += [paragraph for cell in cells for paragraph in cell.paragraphs]
    styles = [
        (one.style.name, one.alignment, sorted({(run.bold, run.italic) for run in one.runs}, key=str))
        for one in paragraphs
    ]
    return [styles, len(cells)], [*(one.text for one in paragraphs), document.core_properties.title]


def make_slides() -> bytes:
    document = import_module("pptx").Presentation()
    slide = document.slides.add_slide(document.slide_layouts[1])
    slide.shapes.title.text = FIRST
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    for text, is_bold in (("Ein ", None), (RED, True), (" Hund läuft.", None)):
        run = paragraph.add_run()
        run.text, run.font.bold = text, is_bold
    slide.notes_slide.notes_text_frame.text = SECOND
    return saved(document)


def read_slides(content: bytes) -> Outline:
    slides = import_module("pptx").Presentation(io.BytesIO(content)).slides
    shapes = [shape for slide in slides for shape in (*slide.shapes, *slide.notes_slide.shapes) if shape.has_text_frame]
    paragraphs = [paragraph for shape in shapes for paragraph in shape.text_frame.paragraphs]
    bold = [sorted({str(run.font.bold) for run in paragraph.runs}) for paragraph in paragraphs]
    places = [(shape.name, shape.left, shape.top) for shape in shapes]
    return [places, bold], [paragraph.text for paragraph in paragraphs]


def make_open(kind: str) -> bytes:
    odfdo = import_module("odfdo")
    document = odfdo.Document(kind)
    document.body.clear()
    if kind == "presentation":
        page = odfdo.DrawPage("page1", name="Page 1")
        page.append(odfdo.Frame.text_frame(FIRST))
        document.body.append(page)
        return saved(document)
    document.body.append(odfdo.Header(1, FIRST))
    styled = f'<text:p>Ein <text:span text:style-name="T1">{RED}</text:span> Hund läuft.</text:p>'
    document.body.append(odfdo.Element.from_tag(styled))
    document.body.append(odfdo.List([SECOND, FIRST]))
    return saved(document)


def read_open(content: bytes) -> Outline:
    body = import_module("odfdo").Document(io.BytesIO(content)).body
    page = body.serialize()
    return tags_of(page), [one.inner_text for one in body.get_elements("//text:p | //text:h")]


def make_book() -> bytes:
    epub = import_module("ebooklib.epub")
    book = epub.EpubBook()
    book.set_identifier("i")
    book.set_title(SECOND)
    book.set_language("de")
    chapter = epub.EpubHtml(title=FIRST, file_name="c.xhtml")
    chapter.content = f'<h1>{FIRST}</h1><p class="x">Ein <b>{RED}</b> Hund läuft.<img src="x.png" alt=""/></p>'
    book.add_item(chapter)
    book.toc = (chapter,)
    for item in (epub.EpubNcx(), epub.EpubNav()):
        book.add_item(item)
    book.spine = ["nav", chapter]
    with tempfile.TemporaryDirectory() as folder:
        epub.write_epub(f"{folder}/a.epub", book)
        return Path(folder, "a.epub").read_bytes()


def read_book(content: bytes) -> Outline:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.epub")
        path.write_bytes(content)
        book = import_module("ebooklib.epub").read_epub(path)
    page = book.get_item_with_href("c.xhtml").content.decode()
    names = [item.file_name for item in book.get_items()]
    return [tags_of(page), names, book.spine], [*re.findall(r">([^<>]*\w[^<>]*)<", page), book.title, book.toc[0].title]


def make_subtitles(kind: str) -> bytes:
    pysubs2 = import_module("pysubs2")
    events = [("{\\i1}" + FIRST + "{\\i0}", 1000), (SECOND, 3000), ("Ein Mann wartet", 5000), ("vor dem Haus.", 7000)]
    file = pysubs2.SSAFile()
    for text, start in events:
        file.append(pysubs2.SSAEvent(start=start, end=start + 1500, text=text))
    return file.to_string(kind).encode()


def read_subtitles(content: bytes) -> Outline:
    file = import_module("pysubs2").SSAFile.from_string(content.decode())
    return [(one.start, one.end, re.findall(r"\{[^}]*\}", one.text)) for one in file], [one.plaintext for one in file]


def make_catalog() -> bytes:
    po = import_module("translate.storage.po")
    store = po.pofile()
    store.updateheader(add=True, Content_Type="text/plain; charset=UTF-8")
    for text in (FIRST, SECOND, "%d Hunde laufen."):
        unit = store.addsourceunit(text)
        unit.addnote("note", "developer")
        unit.addlocation("a.c:3")
    return bytes(store)


def read_catalog(content: bytes) -> Outline:
    units = import_module("translate.storage.po").pofile(io.BytesIO(content)).units
    return [(one.source, one.getnotes(), one.getlocations()) for one in units], [one.target for one in units]


XLIFF = {".xlf": ("xliff", "xlifffile"), ".xliff": ("xliff2", "Xliff2File")}
"""Module and class of translate-toolkit for version 1.1 and for version 2.0."""


def units_of(ending: str) -> Any:
    module, name = XLIFF[ending]
    return getattr(import_module(f"translate.storage.{module}"), name)


def make_units(ending: str) -> bytes:
    store = units_of(ending)(sourcelanguage="de", targetlanguage="en")
    for text in (FIRST, SECOND):
        store.addsourceunit(text)
    return bytes(store)


def read_units(ending: str, content: bytes) -> Outline:
    units = units_of(ending)(io.BytesIO(content)).units
    return [(one.getid(), one.source) for one in units], [one.target or "" for one in units]


def make_properties() -> bytes:
    store = import_module("translate.storage.properties").javautf8file()
    for name, text in (("first", FIRST), ("id", "user_name"), ("second", SECOND)):
        store.addsourceunit(text).name = name
        store.units[-1].addnote("# note", "developer")
    return bytes(store)


def read_properties(content: bytes) -> Outline:
    units = import_module("translate.storage.properties").javautf8file(io.BytesIO(content)).units
    return [(one.name, one.getnotes()) for one in units], [one.value for one in units]


def read_text(content: bytes) -> Outline:
    lines = content.decode().split("\n")
    return [len(line) - len(line.lstrip(" -")) for line in lines], [line for line in lines if line]


def read_markdown(content: bytes) -> Outline:
    tokens = import_module("markdown_it").MarkdownIt().parse(content.decode())
    inner = [child for token in tokens for child in token.children or ()]
    marks = [(token.type, token.markup, token.attrs) for token in [*tokens, *inner] if token.type != "text"]
    return marks, [child.content for child in inner if child.type == "text"]


def read_page(content: bytes) -> Outline:
    root = import_module("lxml.html").document_fromstring(content.decode())
    elements = [one for one in root.iter() if isinstance(one.tag, str)]
    return [(one.tag, {**one.attrib} | {"title": ""}) for one in elements], [
        text for text in root.itertext() if text.strip()
    ]


def read_json(content: bytes) -> Outline:
    values = json.loads(content)
    hidden = {key: value for key, value in values.items() if key.startswith("@")}
    return [[*values], hidden], [str(value) for key, value in values.items() if key not in hidden]


def tags_of(page: str) -> list[str]:
    return re.findall(r"<[^>]*>", page)


MARKDOWN = f"# {FIRST}\n\n- Ein **{RED}** Hund [läuft](https://example.org).\n- `x = 1`\n\n> {SECOND}\n"
PAGE = (
    f"<!doctype html><title>{FIRST}</title><h1 class=a>{SECOND}</h1><p>Ein <b>{RED}</b> Hund "
    f'<a href="#" title="{FIRST}">läuft</a>.<br>{SECOND}'
)
APP = {"@@locale": "de", "a": FIRST, "@a": {"description": FIRST}, "greeting": f"{{name}}: {SECOND}"}
FORMATS = [
    Format(".txt", "", f"{FIRST}\n\n  - {SECOND}\n".encode, read_text),
    Format(".docx", "python-docx", make_word, read_word),
    Format(".pptx", "python-pptx", make_slides, read_slides),
    Format(".odt", "odfdo", lambda: make_open("text"), read_open),
    Format(".odp", "odfdo", lambda: make_open("presentation"), read_open),
    Format(".epub", "EbookLib", make_book, read_book),
    Format(".srt", "pysubs2", lambda: make_subtitles("srt"), read_subtitles),
    Format(".vtt", "pysubs2", lambda: make_subtitles("vtt"), read_subtitles),
    Format(".po", "translate-toolkit", make_catalog, read_catalog),
    *(Format(one, "translate-toolkit", partial(make_units, one), partial(read_units, one)) for one in XLIFF),
    Format(".properties", "translate-toolkit", make_properties, read_properties),
    Format(".md", "markdown-it-py", MARKDOWN.encode, read_markdown),
    Format(".html", "lxml", PAGE.encode, read_page),
    Format(".json", "json", json.dumps({"a": FIRST, "user_name": "user_name", "b": SECOND}).encode, read_json),
    Format(".arb", "json", json.dumps(APP).encode, read_json),
]


SUBTITLES = """WEBVTT Film

STYLE
::cue(.red) { color: red }

NOTE by hand

first
00:01.000 --> 00:02.000 align:start line:90%
<v Anna><c.red>Ein</c> Hund läuft.
"""


def word_by_library(content: bytes) -> bytes:
    document = import_module("docx").Document(io.BytesIO(content))
    cells = [cell for table in document.tables for row in table.rows for cell in row.cells]
    for one in (paragraph for part in (document, *cells) for paragraph in part.paragraphs):
        one.text = one.text.upper()
    return saved(document)


def slides_by_library(content: bytes) -> bytes:
    document = import_module("pptx").Presentation(io.BytesIO(content))
    shapes = [shape for slide in document.slides for shape in slide.shapes if shape.has_text_frame]
    for one in (paragraph for shape in shapes for paragraph in shape.text_frame.paragraphs):
        one.text = one.text.upper()
    return saved(document)


def open_by_library(content: bytes) -> bytes:
    document = import_module("odfdo").Document(io.BytesIO(content))
    for one in document.body.get_elements("//text:p | //text:h"):
        one.text_content = one.inner_text.upper()
    return saved(document)


def subtitles_by_library(content: bytes) -> bytes:
    file = import_module("pysubs2").SSAFile.from_string(content.decode())
    for one in file:
        one.plaintext = one.plaintext.upper()
    return file.to_string("vtt").encode()


def members(content: bytes) -> dict[str, bytes]:
    """Members of an archive, or lines of a text."""
    if not content.startswith(b"PK"):
        return {line: b"" for line in content.decode().splitlines() if line}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def measure_libraries() -> None:
    from heedful.documents.table import FORMATS as READERS
    from heedful.text.tagged_text import TaggedText

    def by_ours(ending: str, content: bytes) -> bytes:
        document = READERS[ending](content, 1 << 24)
        return document.write([TaggedText(one.text.upper(), one.tags) for one in document.passages])

    own = {one.ending: one for one in FORMATS}
    print("| format | library | members or lines equal: by the library, by ours | formats equal |\n|---|---|---|---|")
    for ending, before, write in (
        (".docx", make_word(), word_by_library),
        (".pptx", make_slides(), slides_by_library),
        (".odt", make_open("text"), open_by_library),
        (".vtt", SUBTITLES.encode(), subtitles_by_library),
    ):
        written = [write(before), by_ours(ending, before)]
        counts = [sum(members(one).get(name) == part for name, part in members(before).items()) for one in written]
        outline = own[ending].read(before)[0]
        is_equal = ["yes" if own[ending].read(one)[0] == outline else "no" for one in written]
        equal = ", ".join(f"{count} of {len(members(before))}" for count in counts)
        print(f"| {ending} | {own[ending].library} | {equal} | {', '.join(is_equal)} |")


def main(model: Path) -> None:
    import heedful
    from heedful.documents.table import FORMATS as READERS
    from heedful.predictors.tagged import translate_tagged
    from heedful.predictors.translator import Translator

    translator = heedful.load(model, kind=Translator)
    print("| format | made and reopened by | passages | texts changed | all else equal | cut in half |")
    print("|---|---|---|---|---|---|")
    for one in FORMATS:
        before = one.make()
        document = READERS[one.ending](before, 1 << 24)
        after = document.write([tagged for tagged, _ in translate_tagged(translator, document.passages)])
        (old, old_texts), (new, new_texts) = one.read(before), one.read(after)
        changed = sum(left != right for left, right in zip(old_texts, new_texts, strict=True))
        try:
            half = READERS[one.ending](before[: len(before) // 2], 1 << 24)
            damaged = f"read, {len(half.passages)} passages"
        except Exception as error:
            damaged = f"{type(error).__name__}: {error}"
        has_version = one.library not in ("", "json")
        library = f"{one.library} {version(one.library)}" if has_version else one.library or "Python"
        cells = one.ending, library, len(document.passages), f"{changed} of {len(old_texts)}", old == new, damaged
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["libraries"]:
        measure_libraries()
    else:
        main(Path(sys.argv[1]))
