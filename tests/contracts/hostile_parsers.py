"""Parsers of what others send, each as a function of a text that somebody else has written."""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

from heedful.data.corpus import find_pairs
from heedful.data.tmx import tmx_rows
from heedful.documents.html import HtmlMarkup
from heedful.documents.markup_rules import TagHandling
from heedful.documents.table import FORMATS
from heedful.errors import DataError
from heedful.text.segments import split
from heedful.text.stories import parse_story
from heedful.text.tbx import tbx_pairs
from heedful.text.term_files import read_terms
from heedful.text.written_forms import written_form_spans
from tests.documents import made

MOST_BYTES = 10_000_000


def cue(text: str) -> str:
    return f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"


def plain(text: str) -> str:
    """Text that XML can hold, with its markup escaped."""
    return escape(re.sub(r"[^\t\n\x20-\ud7ff]", "x", text))


def xliff(text: str) -> str:
    return (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de"><file id="f"><unit id="u">'
        f"<segment><source>{plain(text)}</source></segment></unit></file></xliff>"
    )


def catalogue(text: str) -> str:
    quoted = json.dumps(text.replace("\0", "x"), ensure_ascii=False)
    return f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid {quoted}\nmsgstr ""\n'


def memory(text: str) -> str:
    return (
        '<tmx version="1.4"><header srclang="de"/><body><tu><tuv xml:lang="de"><seg>'
        f'{plain(text)}</seg></tuv><tuv xml:lang="en"><seg>{plain(text)}</seg></tuv></tu></body></tmx>'
    )


def term_base(text: str) -> str:
    sets = "".join(
        f'<langSet xml:lang="{code}"><tig><term>{plain(text)}</term></tig></langSet>' for code in ("de", "en")
    )
    return f"<martif><text><body><termEntry>{sets}</termEntry></body></text></martif>"


def chapter(text: str) -> bytes:
    """Book of one chapter."""
    container = '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>'
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
        '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine>'
        "</package>"
    )
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{text}</p></body></html>'
    members = {"META-INF/container.xml": container, "a.opf": package, "c.xhtml": page}
    return made.archive({name: content.encode("utf-8", "replace") for name, content in members.items()})


def open_text(text: str) -> bytes:
    names = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    names += ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    parts = [plain(text[start : start + 50]) for start in range(0, len(text), 50)]
    runs = "".join(f"<text:span>{part}</text:span><text:line-break/>" for part in parts)
    content = f"<office:document-content {names}><office:body><office:text><text:p>{runs}</text:p></office:text>"
    content += "</office:body></office:document-content>"
    members = {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": content.encode()}
    return made.archive(members)


def nested(text: str, opening: str, closing: str, point: str, depth: int = 30) -> str:
    """Words of a text with an empty element behind each, within many others."""
    words = "".join(f"{plain(text[start : start + 10])}<{point}/>" for start in range(0, len(text), 10))
    return opening * depth + words + closing * depth


def nested_text(text: str) -> bytes:
    names = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    names += ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    paragraph = nested(text, "<text:span>", "</text:span>", "text:line-break")
    content = f"<office:document-content {names}><office:body><office:text><text:p>{paragraph}</text:p></office:text>"
    content += "</office:body></office:document-content>"
    members = {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": content.encode()}
    return made.archive(members)


def word(text: str) -> bytes:
    parts = [plain(text[start : start + 50]) for start in range(0, len(text), 50)]
    runs = "".join(f"<w:r><w:t>{part}</w:t><w:br/></w:r>" for part in parts)
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    part = f"<w:document {namespace}><w:body><w:p>{runs}</w:p></w:body></w:document>"
    return made.archive({"word/document.xml": part.encode()})


def slide(text: str) -> bytes:
    parts = [plain(text[start : start + 50]) for start in range(0, len(text), 50)]
    runs = "".join(f"<a:r><a:t>{part}</a:t></a:r><a:br/>" for part in parts)
    names = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    names += ' xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    body = f"<p:cSld><p:spTree><p:sp><p:txBody><a:p>{runs}</a:p></p:txBody></p:sp></p:spTree></p:cSld>"
    return made.archive({"ppt/slides/slide1.xml": f"<p:sld {names}>{body}</p:sld>".encode()})


def document(ending: str, frame: Callable[[str], str | bytes] = str) -> Callable[[str], int]:
    """Parser of a kind of file, which writes its passages again.

    Returns:
        A function of a text, which gives the number of passages; 0 = the file was refused.
    """

    def run(text: str) -> int:
        content = frame(text)
        try:
            opened = FORMATS[ending](content if isinstance(content, bytes) else content.encode(), MOST_BYTES)
            opened.write([type(each)(each.text + "x", each.tags) for each in opened.passages])
        except DataError:
            return 0  # a refusal is an answer
        return len(opened.passages)

    return run


def file(name: str, read: Callable[[Path], int], frame: Callable[[str], str] = str) -> Callable[[str], int]:
    """Parser of a file on the disk.

    Returns:
        A function of a text, which gives the number of rows; 0 = the file was refused.
    """

    def run(text: str) -> int:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(frame(text).encode("utf-8", "replace"))
            try:
                return read(path)
            except DataError:
                return 0

    return run


def _story(text: str) -> int:
    try:
        return len(parse_story(f"{text} | {text}\tx\ty".replace("\n", " "), "x", 1).facts)
    except DataError:
        return 0


def _cell(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'text,label\n"{quoted}",a\n"{quoted}",b\n'


def memory_file(frame: Callable[[str], str]) -> Callable[[str], int]:
    return file("a.tmx", lambda path: sum(1 for _ in tmx_rows(path)), frame)


def term_base_file(frame: Callable[[str], str]) -> Callable[[str], int]:
    return file("a.tbx", lambda path: sum(1 for _ in tbx_pairs(path, "de", "en")), frame)


def pairs(path: Path) -> int:
    return sum(1 for _ in find_pairs([path]))


PARSERS: dict[str, Callable[[str], object]] = {
    "html": document(".html"),
    "xml": lambda text: HtmlMarkup(text, TagHandling("xml").rules(text)),
    "srt": document(".srt", cue),
    "srt cues": document(".srt", lambda text: "".join(map(cue, text.split(" ")))[: len(text)]),
    "vtt": document(".vtt", lambda text: "WEBVTT\n\n" + cue(text)),
    "md": document(".md"),
    "txt": document(".txt"),
    "json": document(".json", lambda text: json.dumps({"a": text})),
    "raw json": document(".json"),
    "properties": document(".properties"),
    "xliff": document(".xlf", xliff),
    "nested xliff": document(".xlf", lambda text: xliff("@").replace("@", nested(text, '<pc id="1">', "</pc>", "ph"))),
    "po": document(".po", catalogue),
    "docx": document(".docx", word),
    "odt": document(".odt", open_text),
    "nested odt": document(".odt", nested_text),
    "pptx": document(".pptx", slide),
    "epub": document(".epub", chapter),
    "tmx": memory_file(memory),
    "tbx": term_base_file(term_base),
    "terms": file("a.tsv", lambda path: bool(read_terms(path)), lambda text: f"{text}\tb\n"),
    "csv": file("a.csv", pairs, _cell),
    "raw csv": file("a.csv", pairs),
    "tsv": file("a.tsv", pairs, lambda text: 2 * (text.replace("\n", " ") + "\ta\n")),
    "jsonl": file("a.jsonl", pairs, lambda text: json.dumps({"source": text, "target": text}) + "\n"),
    "story": _story,
    "segments": split,
    "written forms": written_form_spans,
}
